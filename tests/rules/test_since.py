"""Rules compare with the beginning of the run: "commit, then submit" works, and what was committed is still seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.domain.run.baseline import Baseline
from handrail.engine.checking.rule import Baselines, Rule, Setting
from handrail.rules.files import baseline as baseline_module
from handrail.rules.files.baseline import observed
from handrail.rules.files.diff_within import diff_within
from handrail.rules.files.files_changed import files_changed, files_unchanged
from handrail.rules.files.git_clean import git_clean
from handrail.rules.files.no_secrets import no_secrets
from handrail.rules.files.tree import tree_digest
from rules.on_project import committed, git, setting_of, write

FILES = {"src/a.py": "a\n", "LICENSE": "mine\n", "docs/c.md": "c\n", ".gitignore": "*.log\n"}
KEY = "AKIAZ7QW3ERT5YUI9OPL"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return committed(tmp_path / "project", FILES)


async def baseline(project: Path) -> Baseline:
    found = await observed(project)
    assert found is not None
    return found


async def started(project: Path) -> Setting:
    """The setting of a run that starts now."""
    return replace(setting_of(project), baselines=Baselines(run=await baseline(project)))


async def said(rule: Rule, setting: Setting, **parameters: Any) -> list[str]:
    return [one.message for one in (await rule.apply(parameters, setting)).findings]


def commit(project: Path, files: dict[str, str | bytes]) -> None:
    write(project, files)
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "work")


async def test_work_that_was_committed_before_it_is_submitted_has_changed_files(project: Path) -> None:
    run = await started(project)
    [message] = await said(files_changed, run, paths=["src"])
    assert message.startswith("no file of src has changed since the start of the run (")
    commit(project, {"src/a.py": "A\n"})
    assert await said(files_changed, run, paths=["src"]) == []
    assert await said(files_changed, setting_of(project), paths=["src"]) != [], "without a run: since HEAD, as before"
    assert await said(files_changed, run, paths=["src"], since="HEAD") != []


async def test_a_committed_change_to_a_protected_file_is_found(project: Path) -> None:
    run = await started(project)
    commit(project, {"LICENSE": "yours\n"})
    [message] = await said(files_unchanged, run, paths=["LICENSE"])
    assert message.startswith("LICENSE has changed since the start of the run (")
    commit(project, {"LICENSE": "mine\n"})
    assert await said(files_unchanged, run, paths=["LICENSE"]) == []


async def test_a_committed_stray_change_is_found(project: Path) -> None:
    run = await started(project)
    commit(project, {"src/a.py": "A\n", "docs/c.md": "C\n"})
    [message] = await said(diff_within, run, paths=["src"])
    assert message == "docs/c.md has changed since the start of the run, and is not in src"
    assert await said(diff_within, run, paths=["src", "docs"], max_files=2, max_lines=4) == []
    assert len(await said(diff_within, run, paths=["src", "docs"], max_files=1, max_lines=3)) == 2


async def test_a_committed_secret_is_found_even_after_a_later_commit_removed_it(project: Path) -> None:
    run = await started(project)
    commit(project, {"src/a.py": f"key = '{KEY}'\n"})
    found = (await no_secrets.apply({}, run)).findings
    assert [one.where.split(":")[0] for one in found] == ["src/a.py"]
    commit(project, {"src/a.py": "key = read()\n"})
    [old] = (await no_secrets.apply({}, run)).findings
    head = git(project, "rev-parse", "HEAD~1")
    assert old.where == f"src/a.py:1:8 (commit {head[:12]})"
    assert KEY not in old.excerpt
    assert (await no_secrets.apply({"paths": ["docs"], "since": "run"}, run)).findings == ()
    assert await no_secrets.inputs({}, run) != await no_secrets.inputs({}, setting_of(project))


async def test_what_was_not_committed_before_the_run_is_not_its_change(project: Path) -> None:
    write(project, {"docs/c.md": "my own note\n", "scratch.txt": "mine\n"})
    run = await started(project)
    write(project, {"src/a.py": "A\n"})
    assert await said(diff_within, run, paths=["src"]) == []
    assert await said(files_unchanged, run, paths=["docs", "scratch.txt"]) == []
    assert await said(git_clean, run) == ["src/a.py has changes that are not committed"]
    assert len(await said(git_clean, run, since="HEAD")) == 3
    git(project, "commit", "-qam", "work, and the note with it")
    assert await said(diff_within, run, paths=["src"]) == []
    assert await said(git_clean, run) == []


async def test_what_was_not_committed_before_the_run_and_has_changed_since_is_its_change(project: Path) -> None:
    write(project, {"docs/c.md": "my own note\n", "scratch.txt": "mine\n", "old.txt": "old\n"})
    run = await started(project)
    git(project, "checkout", "-q", "docs/c.md")
    (project / "old.txt").unlink()
    write(project, {"scratch.txt": "yours\n"})
    messages = await said(files_unchanged, run, paths=["."])
    assert [message.split(" ")[0] for message in messages] == ["docs/c.md", "old.txt", "scratch.txt"]
    assert await said(git_clean, run) == ["scratch.txt was never committed"]


async def test_since_step_compares_with_when_the_step_was_given_out(project: Path) -> None:
    run = await started(project)
    commit(project, {"src/a.py": "A\n"})
    step = replace(run, baselines=replace(run.baselines, step=await baseline(project)))
    [message] = await said(files_changed, step, paths=["src"], since="step")
    assert "since the start of the step" in message
    assert await said(files_changed, step, paths=["src"]) == []
    assert await said(files_changed, run, paths=["src"], since="step") == [], "a step that nobody recorded: the run"


async def test_the_beginning_of_a_repository_without_commits_is_nothing(tmp_path: Path) -> None:
    project = tmp_path / "new"
    project.mkdir()
    git(project, "init", "-q", "-b", "main")
    run = await started(project)
    assert run.baselines.run is not None
    assert run.baselines.run.branch == "main"
    commit(project, {"a.py": "a\n", "b.py": "b\n"})
    assert await said(files_changed, run, paths=["a.py"]) == []
    assert len(await said(diff_within, run, paths=["a.py"])) == 1


async def test_a_beginning_that_was_rewritten_away_is_never_a_pass(project: Path) -> None:
    run = await started(project)
    gone = replace(run, baselines=Baselines(run=Baseline(commit="0" * 39 + "1")))
    for rule in (files_changed, files_unchanged, diff_within, no_secrets):
        parameters = {} if rule is no_secrets else {"paths": ["."]}
        [found] = (await rule.apply(parameters, gone)).findings
        assert found.unapplied, rule
        assert "is gone: it was amended or rebased away" in found.message


async def test_a_beginning_is_commit_branch_tree_and_what_was_not_committed(project: Path) -> None:
    write(project, {"docs/c.md": "C\n"})
    (project / "LICENSE").unlink()
    found = await baseline(project)
    assert (found.commit, found.branch) == (git(project, "rev-parse", "HEAD"), "main")
    assert found.tree.startswith("sha256:")
    assert set(found.dirty) == {"docs/c.md", "LICENSE", ".git/info/exclude"}
    assert found.dirty["LICENSE"] == ""
    git(project, "checkout", "-q", "--detach")
    assert (await baseline(project)).branch == ""


async def test_marks_in_the_index_do_not_hide_what_was_not_committed_at_the_beginning(project: Path) -> None:
    git(project, "update-index", "--assume-unchanged", "docs/c.md")
    write(project, {"docs/c.md": "my own note\n"})
    run = await started(project)
    assert run.baselines.run is not None
    assert set(run.baselines.run.dirty) == {"docs/c.md", ".git/info/exclude"}
    assert await said(files_unchanged, run, paths=["docs"]) == []


async def test_only_so_many_files_are_listed_and_the_others_count_as_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline_module, "DIRTY_MAX", 2)
    write(project, {f"new/{number}.txt": "x\n" for number in range(5)})
    run = await started(project)
    assert run.baselines.run is not None
    assert (len(run.baselines.run.dirty), run.baselines.run.more) == (2 + 1, 3)
    assert len(await said(files_unchanged, run, paths=["new"])) == 3


async def test_a_project_that_takes_too_long_has_a_beginning_that_is_not_known(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline_module, "OBSERVED_S_MAX", 0.0)
    assert (await baseline(project)).missing == baseline_module.TOO_SLOW


async def test_the_digest_of_all_files_is_left_out_if_it_takes_long(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await baseline(project)).tree == await tree_digest(project)
    monkeypatch.setattr(baseline_module, "TREE_S_MAX", -1.0)
    write(project, {"another.py": ""})  # what has not changed is known in no time
    assert (await baseline(project)).tree == ""


async def test_an_index_in_two_parts_is_read(project: Path) -> None:
    git(project, "update-index", "--split-index")
    run = await started(project)
    commit(project, {"docs/c.md": "C\n"})
    [message] = await said(diff_within, run, paths=["src"])
    assert message.startswith("docs/c.md has changed since the start of the run")


async def test_changes_inside_a_submodule_are_seen(project: Path, tmp_path: Path) -> None:
    inner = committed(tmp_path / "inner", {"x.py": "x\n", "y.py": "y\n"})
    git(project, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner), "sub")
    git(project, "commit", "-q", "-m", "with a submodule")
    write(project, {"sub/y.py": "not committed before\n"})
    run = await started(project)
    assert await said(diff_within, run, paths=["src"]) == []
    write(project, {"sub/x.py": f"key = '{KEY}'\n"})
    [message] = await said(diff_within, run, paths=["src"])
    assert message.startswith("sub/x.py has changed since the start of the run")
    assert [one.where for one in (await no_secrets.apply({}, run)).findings] == ["sub/x.py:1:8"]
    assert await said(git_clean, run) == ["sub/x.py has changes that are not committed"]


@pytest.mark.parametrize("rule", [files_changed, no_secrets])
async def test_a_start_that_git_has_removed_is_for_a_person_to_fix(rule: Rule, tmp_path: Path) -> None:
    project = committed(tmp_path / "project", {"a.py": "a = 1\n"})
    setting = replace(setting_of(project), baselines=Baselines(run=await observed(project)))
    write(project, {"a.py": "a = 2\n"})
    git(project, "add", "-A")
    git(project, "commit", "-q", "--amend", "-m", "another")
    git(project, "reflog", "expire", "--expire=now", "--all")
    git(project, "gc", "-q", "--prune=now")
    parameters = {"paths": ["a.py"]} if rule is files_changed else {}
    [found] = (await rule.apply(parameters, setting)).findings
    assert "is gone: it was amended or rebased away" in found.message
    assert found.fixed_by is FixedBy.PERSON
    assert found.fix.startswith("start the run again")


async def test_what_a_sparse_checkout_leaves_out_since_then_has_changed(project: Path) -> None:
    run = await started(project)
    git(project, "sparse-checkout", "set", "--no-cone", "/*", "!/docs")
    assert not (project / "docs").exists()
    assert "docs/c.md has changed" in " ".join(await said(files_unchanged, run, paths=["docs"]))
    of_sparse = await started(project)
    assert await said(files_unchanged, of_sparse, paths=["docs", "src"]) == [], "it was so at the start"
    git(project, "sparse-checkout", "disable")
    assert await said(files_unchanged, of_sparse, paths=["src"]) == []
