"""Rules that ask git: changes are reported as they are, whatever a repository tries to do or hide."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from handrail.rules.files import diff_within as diff_within_module
from handrail.rules.files import git as git_module
from handrail.rules.files import git_process
from handrail.rules.files.diff_within import diff_within
from handrail.rules.files.files_changed import files_changed, files_unchanged
from handrail.rules.files.git import changes, known_files, version_of
from handrail.rules.files.git_clean import git_clean
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.no_secrets import no_secrets
from handrail.rules.files.project import project_at
from handrail.rules.function_rule import FunctionRule
from rules.on_project import committed, found, git, reported, setting_of, write

Asking: TypeAlias = tuple[tuple[FunctionRule, dict[str, Any]], ...]

FILES = {"src/a.py": "a\n", "src/b.py": "b\n", "docs/c.md": "c\n", ".gitignore": "*.log\n"}
ASKING: Asking = (
    (files_changed, {"paths": ["."]}),
    (files_unchanged, {"paths": ["."]}),
    (git_clean, {}),
    (diff_within, {"paths": ["."]}),
    (no_secrets, {}),
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return committed(tmp_path / "project", FILES)


def is_alive(pid: int) -> bool:
    """Whether a process is alive, not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_nothing_changed(project: Path) -> None:
    write(project, {"x.log": "ignored"})
    assert await reported(git_clean, project) == []
    assert await reported(files_unchanged, project, paths=["."]) == []
    assert await reported(diff_within, project, paths=["none"], max_files=0, max_lines=0) == []
    [(where, message)] = await reported(files_changed, project, paths=["src/**"])
    assert where == "src/**"
    assert message.startswith("no file of src/** has changed since HEAD (")


async def test_changed_new_and_deleted_files_are_all_changes(project: Path) -> None:
    write(project, {"src/a.py": "A\nA\n", "new/d.py": "1\n2\n3"})
    (project / "docs/c.md").unlink()
    for paths in (["src"], ["new/*.py"], ["docs/**"]):
        assert await reported(files_changed, project, paths=paths) == []
        assert len(await reported(files_unchanged, project, paths=paths)) == 1
    assert await reported(files_unchanged, project, paths=["src/b.py"]) == []
    assert await reported(git_clean, project) == [
        ("docs/c.md", "docs/c.md has changes that are not committed"),
        ("new/d.py", "new/d.py was never committed"),
        ("src/a.py", "src/a.py has changes that are not committed"),
    ]
    assert await reported(git_clean, project, untracked=False, paths=["src", "new"]) == [
        ("src/a.py", "src/a.py has changes that are not committed")
    ]


async def test_changes_are_counted_from_any_commit(project: Path) -> None:
    write(project, {"src/a.py": "A\n"})
    git(project, "commit", "-qam", "second")
    assert await reported(files_changed, project, paths=["src"], against="HEAD~1") == []
    assert len(await reported(files_changed, project, paths=["src"])) == 1
    [finding] = await found(files_changed, project, paths=["src"], against="no-such")
    assert (finding.where, finding.message) == ("checks", "there is no commit `no-such` here")
    [finding] = await found(files_changed, project, paths=["src"], against="--output=x")
    assert "is not the name of a commit" in finding.message
    assert not (project / "x").exists()


async def test_a_change_must_lie_where_it_may_and_be_small(project: Path) -> None:
    write(project, {"src/a.py": "A\nA\n", "new/d.py": "1\n2\n3"})
    assert await reported(diff_within, project, paths=["src", "new"], max_files=2, max_lines=6) == []
    assert await reported(diff_within, project, paths=["src"], max_files=1, max_lines=5) == [
        ("new/d.py, src/a.py", "2 files changed since HEAD, at most 1 may"),
        ("src/a.py", "6 lines changed since HEAD, at most 5 may"),
        ("new/d.py", "new/d.py has changed since HEAD, and is not in src"),
    ]


async def test_what_came_is_counted_within_a_bound(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {"big": "x\n" * 100, "pair": "x"})
    (project / "link").symlink_to("/etc")
    assert await reported(diff_within, project, paths=["."], max_lines=102) == []
    monkeypatch.setattr(diff_within_module, "NEW_BYTES_MAX", 150)
    [(where, message)] = await reported(diff_within, project, paths=["."])
    assert (where, message) == ("checks", "new files have more than 150 bytes")


async def test_a_record_says_what_was_asked_of_which_git(project: Path) -> None:
    write(project, {"src/a.py": "A\n"})
    for rule, parameters in ASKING:
        outcome = await rule.apply(parameters, setting_of(project))
        assert outcome.evidence is not None
        assert outcome.evidence.ran[0] == "git"
        assert outcome.evidence.tools["git"][0].isdigit()
        assert outcome.evidence.digest.startswith("sha256:")
        assert str(project.parent) not in " ".join(outcome.evidence.ran)
    outcome = await diff_within.apply({"paths": ["src"]}, setting_of(project))
    assert outcome.evidence is not None
    assert outcome.evidence.counts == {"changed": 1, "named": 1, "lines": 2}
    assert outcome.evidence.excerpt == "src/a.py"


async def test_a_project_in_a_folder_of_a_repository_is_looked_at_alone(project: Path) -> None:
    write(project, {"docs/c.md": "changed", "new.md": "", "src/n.py": "", "src/a.py": "A"})
    assert [where for where, _ in await reported(git_clean, project / "src")] == ["a.py", "n.py"]
    assert [where for where, _ in await reported(files_unchanged, project / "src", paths=["."])] == ["a.py", "n.py"]
    assert await reported(files_changed, project / "src", paths=["a.py"]) == []


async def test_a_worktree_and_a_repository_without_commits_are_repositories_too(project: Path) -> None:
    git(project, "worktree", "add", "-q", "../beside")
    beside = project.parent / "beside"
    assert await reported(git_clean, beside) == []
    write(beside, {"src/a.py": "A"})
    assert [where for where, _ in await reported(git_clean, beside)] == ["src/a.py"]
    young = project.parent / "young"
    young.mkdir()
    git(young, "init", "-q")
    assert await reported(git_clean, young) == []
    write(young, {"a": "x", "b": "y"})
    git(young, "add", "a")
    assert [where for where, _ in await reported(git_clean, young)] == ["a", "b"]
    assert [where for where, _ in await reported(files_unchanged, young, paths=["."])] == ["a", "b"]


async def test_objects_may_be_counted_the_new_way(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256", "p")
    project = committed(tmp_path / "p", FILES)
    assert await reported(git_clean, project) == []
    write(project, {"src/a.py": "A"})
    assert [where for where, _ in await reported(git_clean, project)] == ["src/a.py"]


async def test_without_a_repository_nothing_passes(tmp_path: Path) -> None:
    for rule, parameters in ASKING:
        outcome = await rule.apply(parameters, setting_of(tmp_path))
        [finding] = outcome.findings
        assert outcome.evidence is not None
        assert not outcome.evidence.is_settled
        assert finding.where == "checks"
        assert finding.message == "the project is not in a readable git repository"
        assert "git init" in finding.fix
    assert await no_secrets.inputs({}, setting_of(tmp_path)) == ""


async def test_without_git_nothing_passes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    for rule, parameters in ASKING:
        [finding] = await found(rule, project, **parameters)
        assert (finding.where, finding.message) == ("checks", "git is not installed here")
        assert "install git" in finding.fix


async def test_a_git_that_lies_in_the_project_is_not_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {"bin/git": "#!/bin/sh\ntouch was-here\n"})
    (project / "bin/git").chmod(0o755)
    outside = project.parent / "links"
    outside.mkdir()
    (outside / "git").symlink_to(project / "bin/git")
    write(project.parent, {"elsewhere/bin/git": ""})  # what `bin` means depends on who asks
    (project.parent / "elsewhere/bin/git").chmod(0o755)
    monkeypatch.chdir(project.parent / "elsewhere")
    monkeypatch.setenv("PATH", f"{project / 'bin'}:bin:{outside}:{os.environ['PATH']}")
    assert await reported(files_changed, project, paths=["bin"]) == []
    assert not (project / "was-here").exists()


async def test_marks_in_the_index_hide_nothing(project: Path) -> None:
    git(project, "update-index", "--assume-unchanged", "src/a.py")
    git(project, "update-index", "--skip-worktree", "src/b.py")
    assert await reported(git_clean, project) == []
    before = (project / ".git/index").read_bytes()
    write(project, {"src/a.py": "A\n", "src/b.py": "B\n"})
    assert git(project, "--no-optional-locks", "status", "--porcelain") == ""  # git itself is blind to it
    assert [where for where, _ in await reported(git_clean, project)] == ["src/a.py", "src/b.py"]
    assert [where for where, _ in await reported(files_unchanged, project, paths=["."])] == ["src/a.py", "src/b.py"]
    assert (project / ".git/index").read_bytes() == before


async def test_times_that_were_set_back_hide_nothing(project: Path) -> None:
    status = (project / "src/a.py").stat()
    write(project, {"src/a.py": "A\n"})
    os.utime(project / "src/a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    git(project, "config", "core.trustctime", "false")
    git(project, "config", "core.checkStat", "minimal")
    assert [where for where, _ in await reported(git_clean, project)] == ["src/a.py"]


async def test_a_change_in_the_moment_of_a_commit_is_seen_later(project: Path) -> None:
    """Git notes times in seconds: an index that seems younger than it is would be believed."""
    index = project / ".git/index"
    for path in (project / "src/a.py", index):
        os.utime(path, (1_600_000_000, 1_600_000_000))
    git(project, "-c", "core.trustctime=false", "update-index", "--refresh")
    os.utime(index, (1_600_000_000, 1_600_000_000))
    git(project, "config", "core.trustctime", "false")
    write(project, {"src/a.py": "A\n"})
    os.utime(project / "src/a.py", (1_600_000_000, 1_600_000_000))
    assert [where for where, _ in await reported(git_clean, project)] == ["src/a.py"]
    assert [where for where, _ in await reported(files_unchanged, project, paths=["."])] == ["src/a.py"]


async def test_what_is_staged_or_taken_out_of_the_index_is_not_clean(project: Path) -> None:
    write(project, {"src/a.py": "A\n"})
    git(project, "add", "src/a.py")
    write(project, {"src/a.py": "a\n"})  # as committed, but another is staged
    git(project, "rm", "-q", "--cached", "src/b.py")
    assert [where for where, _ in await reported(git_clean, project)] == ["src/a.py", "src/b.py"]


async def test_attributes_do_not_make_a_change_small(project: Path) -> None:
    write(project, {".gitattributes": "*.py -diff\n"})
    git(project, "add", "-A")
    git(project, "commit", "-qm", "attributes")
    write(project, {"src/a.py": "A\0\n" * 1_000})
    assert len(await reported(diff_within, project, paths=["src"], max_lines=100)) == 1


async def test_nothing_that_a_repository_names_is_run(project: Path) -> None:
    """Filters, monitors, hooks, drivers, transports, aliases: each would leave a file behind."""
    trap = project.parent / "trap"
    trap.write_text(f'#!/bin/sh\ntouch "{project.parent}/sprung-$1"\nexec cat\n')
    trap.chmod(0o755)
    for key in ("filter.x.clean", "filter.x.smudge", "filter.x.process", "diff.x.command", "diff.x.textconv"):
        git(project, "config", key, f"{trap} {key}")
    for key in ("core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "diff.external", "core.askPass"):
        git(project, "config", key, f"{trap} {key}")
    for key in ("alias.status", "alias.diff", "gpg.program", "credential.helper", "pager.diff", "pager.status"):
        git(project, "config", key, f"!{trap} {key}")
    git(project, "config", "extensions.partialClone", "origin")
    git(project, "config", "core.repositoryFormatVersion", "1")
    git(project, "config", "remote.origin.url", f"ext::{trap} transport")
    git(project, "config", "remote.origin.promisor", "true")
    git(project, "config", "protocol.ext.allow", "always")
    for hook in ("post-index-change", "fsmonitor-watchman", "post-checkout", "pre-auto-gc"):
        write(project, {f".git/hooks/{hook}": trap.read_bytes()})
        (project / f".git/hooks/{hook}").chmod(0o755)
    write(project, {".gitattributes": "* filter=x diff=x\n", "src/a.py": "A\n", "new.py": "n"})
    blob = git(project, "rev-parse", "HEAD:src/b.py")
    (project / ".git/objects" / blob[:2] / blob[2:]).unlink()  # to be fetched, it seems
    write(project, {".git/refs/heads/far": "1" * 40 + "\n"})  # so is this commit
    for rule, parameters in (*ASKING, (files_changed, {"paths": ["."], "against": "far"})):
        assert await rule.apply(parameters, setting_of(project))
    await known_files(project_at(project, []))
    assert sorted(path.name for path in project.parent.glob("sprung-*")) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are a matter of POSIX")
async def test_a_pipe_that_a_repository_names_holds_nothing_up(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_process, "TIME_S", 3.0)
    pipe = project.parent / "pipe"
    os.mkfifo(pipe)
    git(project, "config", "core.excludesFile", str(pipe))
    exclude = project / ".git" / "info" / "exclude"
    exclude.unlink(missing_ok=True)
    exclude.parent.mkdir(exist_ok=True)
    os.mkfifo(exclude)
    write(project, {"new.py": "", "x.log": "ignored"})
    assert [one.path for one in (await changes(project_at(project, ()))).files] == ["new.py"]
    assert "new.py" in await known_files(project_at(project, ()))
    assert [where for where, _ in await reported(git_clean, project)] == ["new.py"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name are a matter of POSIX")
@pytest.mark.parametrize(
    "name",
    [
        *("src/.gitignore", "src/.gitattributes", ".git/HEAD", ".git/config", ".git/packed-refs", ".git/shallow"),
        *(".git/commondir", ".git/objects/info/alternates"),
    ],
)
async def test_a_pipe_in_place_of_a_file_of_git_is_named_instead_of_waited_for(
    name: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_process, "LOOK_S", 0.05)
    monkeypatch.setattr(git_process, "TIME_S", 10.0)
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).unlink(missing_ok=True)
    os.mkfifo(project / name)
    write(project, {"src/a.py": "changed\n"})
    with pytest.raises(GitUnavailable, match=f"{name} is not a regular file"):
        await changes(project_at(project, ()))


async def test_patterns_of_the_user_and_of_the_repository_are_used(project: Path) -> None:
    write(project.parent, {"mine": "*.mine\n"})
    git(project, "config", "core.excludesFile", str(project.parent / "mine"))
    write(project, {".git/info/exclude": "*.theirs\n", "a.mine": "", "b.theirs": "", "c.log": "", "new.py": ""})
    assert [one.path for one in (await changes(project_at(project, ()))).files] == ["new.py"]
    assert not {"a.mine", "b.theirs", "c.log"} & set(await known_files(project_at(project, ())))
    assert [where for where, _ in await reported(git_clean, project)] == ["new.py"]


async def test_the_users_own_list_is_used_where_git_looks_for_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(project.parent / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    write(project.parent, {"home/.config/git/ignore": "*.mine\n", "xdg/git/ignore": "*.other\n"})
    write(project, {"a.mine": "", "b.other": ""})
    assert [one.path for one in (await changes(project_at(project, ()))).files] == ["b.other"]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(project.parent / "xdg"))
    assert [one.path for one in (await changes(project_at(project, ()))).files] == ["a.mine"]


async def test_a_broken_repository_is_reported_and_passes_nothing(project: Path) -> None:
    write(project, {"src/a.py": "A"})
    (project / ".git/index").write_bytes(b"DIRC nonsense" * 10)
    for rule, parameters in ASKING:
        [finding] = await found(rule, project, **parameters)
        assert finding.where == "checks"
        assert finding.message.startswith("git failed: ")
        assert "\n" not in finding.message


async def test_a_worktree_that_points_elsewhere_is_refused(project: Path) -> None:
    git(project, "config", "core.worktree", "/usr")
    [finding] = await found(git_clean, project)
    assert finding.message.startswith("the project is not in a readable git repository")


async def test_another_repository_inside_is_one_thing_that_came(project: Path) -> None:
    committed(project / "inner", {"x.py": "x"})
    assert [where for where, _ in await reported(git_clean, project)] == ["inner/"]
    assert len(await reported(diff_within, project, paths=["src"])) == 1


async def test_private_folders_are_nobodys_change(project: Path) -> None:
    write(project, {"home/key": "secret"})
    assert await reported(git_clean, project, project / "home") == []
    assert await reported(files_unchanged, project, project / "home", paths=["."]) == []


async def test_unreadable_names_are_reported_all_the_same(project: Path) -> None:
    with Path(os.fsdecode(os.fsencode(project) + b"/\xff\n\x1b[31m.py")).open("w") as file:
        file.write("x")
    [(where, message)] = await reported(git_clean, project)
    assert where == "???[31m.py"
    message.encode()


async def test_changes_against_a_digest_need_no_git(tmp_path: Path) -> None:
    write(tmp_path, {"a/x.py": "x", "a/y.md": "y", "build/out": "o"})
    outcome = await files_unchanged.apply({"paths": ["a/*.py"], "digest": "sha256:" + "0" * 64}, setting_of(tmp_path))
    assert outcome.evidence is not None
    now = outcome.evidence.digest
    assert outcome.findings[0].message == f"a/*.py have changed; their digest now is {now}"
    assert await reported(files_unchanged, tmp_path, paths=["a/*.py"], digest=now) == []
    [(_, message)] = await reported(files_changed, tmp_path, paths=["a/*.py"], digest=now)
    assert message == f"a/*.py have not changed; their digest now is {now}"
    write(tmp_path, {"a/y.md": "other", "a/z": ""})
    assert await reported(files_unchanged, tmp_path, paths=["a/*.py"], digest=now) == []
    write(tmp_path, {"a/z.py": ""})
    assert await reported(files_changed, tmp_path, paths=["a/*.py"], digest=now) == []
    built: dict[str, Any] = {"paths": ["build/out"], "digest": now}
    assert len(await reported(files_unchanged, tmp_path, **built)) == 1


async def test_too_many_files_for_a_digest_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.rules.files.tree.FILES_MAX", 3)
    write(tmp_path, {f"a/{count}": "" for count in range(5)})
    [(where, message)] = await reported(files_unchanged, tmp_path, paths=["a"], digest="sha256:" + "0" * 64)
    assert (where, message) == ("checks", "a are more than 100,000 files, or can't be read")


async def test_git_is_stopped_when_it_takes_or_says_too_much(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = project_at(project, [])
    monkeypatch.setattr(git_process, "OUTPUT_BYTES_MAX", 10)
    with pytest.raises(GitUnavailable, match="wrote more than 10 bytes"):
        await changes(place)
    monkeypatch.undo()
    monkeypatch.setattr(git_module, "INDEX_BYTES_MAX", 10)
    with pytest.raises(GitUnavailable, match="index of the repository is larger"):
        await changes(place)
    monkeypatch.undo()
    slow = project.parent / "slow"
    write(slow, {"git": "#!/bin/sh\nexec /bin/sleep 60\n"})
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(slow))
    monkeypatch.setattr(git_process, "TIME_S", 0.1)
    with pytest.raises(GitUnavailable, match="took longer"):
        await changes(place)


async def test_git_is_gone_when_its_caller_is_cancelled(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow, began = project.parent / "slow", project.parent / "began"
    write(slow, {"git": f'#!/bin/sh\n/bin/sleep 60 &\necho $! >> "{began}"\nwait\n'})
    (slow / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(slow))
    waiting = asyncio.ensure_future(changes(project_at(project, [])))
    async with asyncio.timeout(10):
        while not began.exists() or not began.read_text().strip():
            await asyncio.sleep(0.01)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(10):
        while any(is_alive(int(process)) for process in began.read_text().split()):
            await asyncio.sleep(0.01)


async def test_a_git_that_can_not_be_started_or_talks_nonsense_is_reported(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = project.parent / "odd"
    write(odd, {"git": "no program"})
    (odd / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(odd))
    with pytest.raises(GitUnavailable, match="can't be started"):
        await version_of(project_at(project, []))
    write(odd, {"git": "#!/bin/sh\necho hello\n"})
    with pytest.raises(GitUnavailable, match="not in a readable git repository"):
        await changes(project_at(project, []))
    assert stat.S_IMODE((odd / "git").stat().st_mode) == 0o755
