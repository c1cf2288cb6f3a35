"""What is remembered about a project to look at it quickly is asked again as soon as something has changed."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.engine.checking import shared_call
from handrail.engine.checking.shared_call import SharedLooks
from handrail.foundation.locked_cache import LockedCache
from handrail.rules.files import git as git_module
from handrail.rules.files import git_facts, tree
from handrail.rules.files.git import changes, commit_of, known_files
from handrail.rules.files.git_facts import facts_of
from handrail.rules.files.project import project_at
from handrail.rules.files.tree import tree_digest
from handrail.rules.toolchain import site
from handrail.rules.toolchain.site import site_at
from rules.on_project import committed, git, write
from virtual_time import in_virtual_time

FILES = {"a.py": "a", "src/b.py": "b"}
FUTURE_NS = -(10**18)
"""As if every file had been written long ago: what is remembered needs no rest."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without settings of git; nothing is remembered yet, and everything may be."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    for module, name in ((git_facts, "SETTLED_NS"), (git_facts, "TICK_NS"), (tree, "TICK_NS"), (site, "SETTLED_NS")):
        monkeypatch.setattr(module, name, FUTURE_NS)
    monkeypatch.setattr(git_facts, "_facts", LockedCache(10))
    monkeypatch.setattr(git_facts, "_listings", LockedCache(1_000))
    monkeypatch.setattr(tree, "_trees", LockedCache(1_000))
    monkeypatch.setattr(site, "_known", LockedCache(1_000))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(home: Path) -> Path:
    return committed(home.parent / "p", FILES)


def counted(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> list[object]:
    """Every call of a function from now on."""
    calls: list[object] = []
    real: Callable[..., object] = getattr(module, name)

    def call(*words: object, **more: object) -> object:
        calls.append(words)
        return real(*words, **more)

    monkeypatch.setattr(module, name, call)
    return calls


async def test_a_repository_is_asked_for_its_parts_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = project_at(project, [])
    first = await facts_of(place)
    calls = counted(monkeypatch, git_facts, "run_git")
    write(project, {"c.py": "c"})
    git(project, "add", "-A")
    git(project, "commit", "-qm", "second")
    assert await facts_of(place) == first
    assert calls == []


async def test_another_configuration_is_noticed_at_once(project: Path, home: Path) -> None:
    place = project_at(project, [])
    write(project, {"new.py": "", "newer.py": ""})
    assert await known_files(place) == ["a.py", "new.py", "newer.py", "src/b.py"]
    write(home, {"ignored": "new.py\n", "others": "newer.py\n"})
    git(project, "config", "core.excludesFile", str(home / "ignored"))
    assert await known_files(place) == ["a.py", "newer.py", "src/b.py"]
    git(project, "config", "--unset", "core.excludesFile")
    assert await known_files(place) == ["a.py", "new.py", "newer.py", "src/b.py"]
    write(home, {".gitconfig": f"[core]\n\texcludesFile = {home / 'others'}\n"})
    assert await known_files(place) == ["a.py", "new.py", "src/b.py"], "a file that was not there before"


async def test_a_configuration_that_includes_others_is_always_asked_for(project: Path, home: Path) -> None:
    place = project_at(project, [])
    git(project, "config", "include.path", str(home / "more"))
    write(project, {"new.py": ""})
    assert "new.py" in await known_files(place)
    write(home, {"more": f"[core]\n\texcludesFile = {home / 'ignored'}\n", "ignored": "new.py\n"})
    assert "new.py" not in await known_files(place)


async def test_a_repository_that_is_made_nearer_is_noticed(project: Path) -> None:
    inner = project_at(project / "src", [])
    before = await facts_of(inner)
    assert before.parts.top == project
    git(project / "src", "init", "-q")
    assert (await facts_of(inner)).parts.top == project / "src"


async def test_a_branch_moves_and_a_hash_does_not(project: Path) -> None:
    place = project_at(project, [])
    first = await commit_of(place, "HEAD")
    assert await commit_of(place, first) == first
    git(project, "commit", "-qm", "second", "--allow-empty")
    assert await commit_of(place, "HEAD") != first
    assert await commit_of(place, first) == first


async def test_a_branch_that_is_named_like_a_hash_is_no_hash(project: Path) -> None:
    place, name = project_at(project, []), "f" * 64  # as long as the other kind of hash
    git(project, "checkout", "-qb", name)
    first = await commit_of(place, name)
    git(project, "commit", "-qm", "second", "--allow-empty")
    assert await commit_of(place, name) != first


async def test_a_change_is_seen_by_whoever_looks_next(project: Path) -> None:
    place, file = project_at(project, []), project / "a.py"
    before = file.stat()
    assert (await changes(place)).files == ()
    file.write_text("b")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [one.path for one in (await changes(place)).files] == ["a.py"]
    git(project, "update-index", "--assume-unchanged", "a.py")
    assert [one.path for one in (await changes(place)).files] == ["a.py"]
    git(project, "update-index", "--no-assume-unchanged", "a.py")
    git(project, "commit", "-qam", "second")
    assert (await changes(place)).files == ()
    assert [one.path for one in (await changes(place, "HEAD~1")).files] == ["a.py"]


async def test_the_files_of_a_repository_are_asked_for_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, {".gitignore": "*.log\nnode_modules/\n", "logs/x.log": "", "node_modules/m/n/o.js": ""})
    place = project_at(project, [])
    first = await known_files(place)
    calls = counted(monkeypatch, git_module, "run_git")
    write(project, {"node_modules/m/n/p.js": "", "node_modules/q/r.js": "", "a.py": "another"})
    assert await known_files(place) == first == [".gitignore", "a.py", "src/b.py"]
    assert calls == []


@pytest.mark.parametrize(
    ("deed", "gone", "new"),
    [
        (lambda at: write(at, {"src/deep/er/new.py": ""}), set(), {"src/deep/er/new.py"}),
        (lambda at: write(at, {"logs/new.py": ""}), set(), {"logs/new.py"}),
        (lambda at: write(at, {"logs/deep/new.py": ""}), set(), {"logs/deep/new.py"}),
        (lambda at: write(at, {"empty/new.py": ""}), set(), {"empty/new.py"}),
        (lambda at: (at / "new.py").unlink(), {"new.py"}, set()),
        (lambda at: (at / "new.py").rename(at / "newer.py"), {"new.py"}, {"newer.py"}),
        (lambda at: git(at, "rm", "-q", "--cached", "a.log"), {"a.log"}, set()),
        (lambda at: git(at, "add", "-f", "logs/x.log"), set(), {"logs/x.log"}),
        (lambda at: write(at, {"kept/.gitignore": "/w.py\n.gitignore\n"}), {"kept/w.py"}, {"kept/v.py"}),
        (lambda at: write(at, {".git/info/exclude": "new.py\n"}), {"new.py"}, set()),
        (lambda at: git(at / "nested", "init", "-q"), {"nested/n.py"}, {"nested/"}),
        (lambda at: git(at, "config", "core.excludesFile", str(at / "mine")), {"new.py"}, set()),
    ],
)
async def test_other_files_are_noticed_at_once(
    project: Path, deed: Callable[[Path], object], gone: set[str], new: set[str]
) -> None:
    write(project, {".gitignore": "*.log\n", "a.log": "", "logs/x.log": "", "new.py": "", "nested/n.py": ""})
    write(project, {"kept/.gitignore": "/v.py\n.gitignore\n", "kept/v.py": "", "kept/w.py": "", "mine": "new.py\n"})
    (project / "empty").mkdir()
    git(project, "add", "-f", "a.log")
    place = project_at(project, [])
    before = set(await known_files(place))
    await asyncio.sleep(0.02)  # the clock of files is coarse, and here everything is remembered at once
    deed(project)
    assert set(await known_files(place)) == before - gone | new


async def test_patterns_above_the_project_are_noticed(project: Path) -> None:
    place = project_at(project / "src", [])
    assert await known_files(place) == ["b.py"]
    write(project / "src", {"c.py": ""})
    assert await known_files(place) == ["b.py", "c.py"]
    write(project, {".gitignore": "c.py\n"})
    assert await known_files(place) == ["b.py"]


async def test_files_that_are_as_they_were_are_not_compared_again(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await tree_digest(project)
    calls = counted(monkeypatch, tree, "_digest")
    assert await tree_digest(project) == first
    assert calls == []
    file = project / "a.py"
    before = file.stat()
    while file.stat().st_ctime_ns == before.st_ctime_ns:  # the clock of files is coarse
        file.write_text("b")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert await tree_digest(project) != first, "it has the same size and time"
    file.unlink()
    gone = await tree_digest(project)
    assert gone != first
    write(project, {"c/d.py": ""})
    assert await tree_digest(project) not in {first, gone}
    write(project, {"a.py": "a"})
    (project / "c" / "d.py").unlink()
    assert await tree_digest(project) == first, "and so is what was there at first"


async def test_another_name_for_the_same_file_is_another_tree(project: Path) -> None:
    write(project, {"x.py": "x"})
    (project / "y.py").hardlink_to(project / "x.py")
    write(project, {".git/info/exclude": "x.py\n"})
    first = await tree_digest(project)
    write(project, {".git/info/exclude": "y.py\n"})
    assert await tree_digest(project) != first


def test_a_folder_that_has_changed_is_listed_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = project_at(project, [])
    assert site_at(place).files == ("a.py", "src/b.py")
    calls = counted(monkeypatch, site, "_read")
    assert site_at(place).files == ("a.py", "src/b.py")
    assert calls == []
    before = (project / "src").stat().st_mtime_ns
    while (project / "src").stat().st_mtime_ns == before:
        write(project, {"src/c.py": ""})
        (project / "src" / "d.py").write_text("")
        (project / "src" / "d.py").unlink()
    (project / "link").symlink_to("src")
    assert site_at(place).files == ("a.py", "src/b.py", "src/c.py"), "a link to a folder is no file"
    (project / "src" / "c.py").unlink()
    assert "src/c.py" not in site_at(place).files


def test_what_a_link_leads_to_is_looked_at_each_time(project: Path) -> None:
    place, target = project_at(project, []), project.parent / "target"
    target.mkdir()
    (project / "linked.py").symlink_to(target)
    assert "linked.py" not in site_at(place).files
    target.rmdir()
    target.write_text("x = 1")
    assert "linked.py" in site_at(place).files


def test_a_folder_that_could_not_be_read_is_tried_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = project_at(project, [])

    def refuse(_folder: str) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    with monkeypatch.context() as now:
        now.setattr(os, "scandir", refuse)
        assert site_at(place).files == ()
    assert site_at(place).files == ("a.py", "src/b.py")


def test_checks_of_one_output_share_a_look_as_long_as_it_is_fresh() -> None:
    asked: list[int] = []

    async def ask() -> int:
        asked.append(len(asked))
        await asyncio.sleep(0.1)
        return asked[-1]

    async def scene() -> list[int]:
        looks = SharedLooks()
        first = await asyncio.gather(looks.once("tree", ask), looks.once("tree", ask))
        second = await looks.once("tree", ask)
        await asyncio.sleep(shared_call.FRESH_S)
        return [*first, second, await looks.once("tree", ask), await SharedLooks().once("tree", ask)]

    assert in_virtual_time(scene) == [0, 0, 0, 1, 2]


def test_a_look_that_fails_fails_for_all_who_asked_and_is_not_kept_by_one_who_gave_up() -> None:
    async def fail() -> int:
        await asyncio.sleep(0.1)
        raise OSError("no")

    async def answer() -> int:
        return 1

    async def scene() -> list[BaseException]:
        looks = SharedLooks()
        given_up = asyncio.ensure_future(looks.once("tree", fail))
        others = [asyncio.ensure_future(looks.once("tree", fail)) for _ in range(2)]
        await asyncio.sleep(0)
        given_up.cancel()
        ended = await asyncio.gather(*others, return_exceptions=True)
        assert await looks.once("tree", answer) == 1, "an error is not kept"
        return [one for one in ended if isinstance(one, BaseException)]

    assert [type(one) for one in in_virtual_time(scene)] == [OSError, OSError]
