"""The digest of a project's tree: the same for the same files, another for any change, and cheap the second time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from handrail.foundation.locked_cache import LockedCache
from handrail.rules.files import tree
from handrail.rules.files.project import PathRefused, ProjectFiles, project_at
from handrail.rules.files.tree import files_digest, paths_digest, tree_digest, tree_files
from rules.on_project import committed, git, write


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "_known", LockedCache(tree.REMEMBERED_MAX))


@pytest.fixture(params=[True, False], ids=["git", "no git"])
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    files = {"a.py": "a", "src/b.py": "b", "src/c d.py": ""}
    if request.param:
        return committed(tmp_path / "p", files)
    write(tmp_path / "p", files)
    return tmp_path / "p"


async def test_every_change_of_the_tree_is_another_digest(project: Path) -> None:
    seen = [await tree_digest(project)]
    assert seen[0].startswith("sha256:")

    async def is_another() -> bool:
        seen.append(await tree_digest(project))
        return len(set(seen)) == len(seen)

    assert await tree_digest(project) == seen[0]
    write(project, {"a.py": "A"})
    assert await is_another()
    write(project, {"new.py": "A"})
    assert await is_another()
    (project / "new.py").rename(project / "newer.py")
    assert await is_another()
    (project / "newer.py").chmod(0o755)
    assert await is_another()
    (project / "a.py").unlink()
    assert await is_another()
    (project / "link").symlink_to("src/b.py")
    assert await is_another()
    (project / "link").unlink()
    (project / "link").symlink_to("src/c d.py")
    assert await is_another()
    os.mkfifo(project / "pipe")
    await tree_digest(project)  # and nobody waits for its other end


async def test_names_and_contents_can_not_be_taken_for_each_other(tmp_path: Path) -> None:
    write(tmp_path / "one", {"ab": "c"})
    write(tmp_path / "two", {"a": "bc"})
    assert await tree_digest(tmp_path / "one") != await tree_digest(tmp_path / "two")


async def test_what_tools_fill_by_themselves_does_not_matter(project: Path) -> None:
    write(project, {".gitignore": "node_modules\n__pycache__\n"})
    before = await tree_digest(project)
    write(project, {"node_modules/x/y.js": "x", "src/__pycache__/b.pyc": "x"})
    assert await tree_digest(project) == before
    write(project, {"dist": "a file of that name matters"})
    assert await tree_digest(project) != before


async def test_git_says_which_files_matter(tmp_path: Path) -> None:
    project = committed(tmp_path, {"a.py": "a", ".gitignore": "*.log\n", "build/made.py": "known to git"})
    write(project, {"x.log": "", "new.py": ""})
    (project / "a.py").unlink()
    assert await tree_files(project_at(project, [])) == [".gitignore", "build/made.py", "new.py"]


async def test_another_repository_inside_is_looked_into(tmp_path: Path) -> None:
    project = committed(tmp_path, {"a.py": "a"})
    committed(project / "inner", {"x.py": "x"})
    before = await tree_digest(project)
    write(project, {"inner/x.py": "y"})
    assert await tree_digest(project) != before
    git(project, "add", "inner")
    assert await tree_files(project_at(project, [])) == ["a.py", "inner/x.py"]


async def test_links_lead_nowhere(tmp_path: Path) -> None:
    write(tmp_path, {"out/secret": "1", "p/a": ""})
    (tmp_path / "p/door").symlink_to("../out")
    before = await tree_digest(tmp_path / "p")
    write(tmp_path, {"out/secret": "2"})
    assert await tree_digest(tmp_path / "p") == before


async def test_private_folders_do_not_matter(project: Path) -> None:
    write(project, {"home/key": "1"})
    before = await tree_digest(project, private=[project / "home"])
    write(project, {"home/key": "2"})
    assert await tree_digest(project, private=[project / "home"]) == before
    assert await tree_digest(project) != before


async def test_a_file_that_is_as_it_was_is_not_read_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    later = 10**18 * 4
    monkeypatch.setattr("time.time_ns", lambda: later)
    before = await tree_digest(project)

    def read(_file: int) -> bytes:
        raise AssertionError("read again")

    monkeypatch.setattr(tree, "_hashed", read)
    assert await tree_digest(project) == before
    write(project, {"a.py": "A"})
    with pytest.raises(AssertionError, match="read again"):
        await tree_digest(project)


async def test_a_change_that_leaves_size_and_time_as_they_were_is_seen(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 10**18 * 4)
    before, status = await tree_digest(project), (project / "a.py").stat()
    with (project / "a.py").open("r+") as file:
        file.write("A")
    os.utime(project / "a.py", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert await tree_digest(project) != before


async def test_what_was_written_just_now_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a": "x"})
    written_ns = (tmp_path / "a").stat().st_mtime_ns
    monkeypatch.setattr("time.time_ns", lambda: written_ns + 1)
    await tree_digest(tmp_path)
    assert len(tree._known) == 0


@pytest.mark.parametrize(
    ("mtime_ns", "age_ns", "is_old"),
    [(1_500_000_001, 60_000_000, True), (1_500_000_001, 40_000_000, False), (2_000_000_000, 1_000_000_000, False)],
)
def test_times_are_trusted_when_they_are_older_than_the_clock_is_coarse(
    mtime_ns: int, age_ns: int, is_old: bool
) -> None:
    assert tree._has_settled((mtime_ns, mtime_ns, 1, 1, 1), mtime_ns + age_ns) is is_old


async def test_a_file_that_does_not_hold_still_has_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a": "x"})
    hashed, count = tree._hashed, 0

    def busy(file: int) -> bytes:
        nonlocal count
        count += 1
        with (tmp_path / "a").open("a") as writer:
            writer.write("more")
        return hashed(file)

    monkeypatch.setattr(tree, "_hashed", busy)
    assert await tree_digest(tmp_path) == ""
    assert count == tree.READS_MAX
    assert (await files_digest(project_at(tmp_path, []), ["a"]))[0] == ""


async def test_more_than_is_looked_at_has_no_digest(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tree, "BYTES_MAX", 1)
    assert await tree_digest(project) == ""
    monkeypatch.undo()
    monkeypatch.setattr(tree, "FILES_MAX", 2)
    assert await tree_digest(project) == ""


async def test_a_file_that_grows_while_it_is_read_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a": "x" * 10})
    file = os.open(tmp_path / "a", os.O_RDONLY)
    monkeypatch.setattr(tree, "BYTES_MAX", 5)
    try:
        with pytest.raises(tree._TooMuch):
            tree._hashed(file)
    finally:
        os.close(file)


async def test_what_is_remembered_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 10**18 * 4)
    monkeypatch.setattr(tree, "_known", LockedCache(3))
    write(tmp_path, {str(count): "x" for count in range(10)})
    await tree_digest(tmp_path)
    assert len(tree._known) == 3


async def test_what_vanishes_or_can_not_be_entered_meanwhile_is_passed_over(tmp_path: Path) -> None:
    place = project_at(tmp_path, [])
    assert tree._names(tmp_path / "gone") == []
    assert list(tree._walked(place, "gone")) == []
    assert tree._digest_at(place, ["gone"]) == tree._digest_at(place, [])


async def test_files_by_name_have_a_digest_unless_they_are_too_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a": "xx"})
    place = project_at(tmp_path, [])
    first = await paths_digest(place, ["a", "gone"], since="1")
    assert first != await paths_digest(place, ["a"], since="1")
    assert first != await paths_digest(place, ["a", "gone"], since="2")
    monkeypatch.setattr(tree, "BYTES_MAX", 1)
    assert await paths_digest(place, ["a"]) == ""


async def test_a_file_that_can_not_be_read_has_no_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a": "x"})

    def refused(_place: ProjectFiles, path: str) -> int:
        raise PathRefused(path)

    monkeypatch.setattr(ProjectFiles, "opened", refused)
    assert await tree_digest(tmp_path) == ""
