"""A file is written whole or not at all, for the owner's eyes unless said otherwise, and no part of it stays behind."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from handrail.foundation.atomic_file import make_private_folder, write_new, write_whole

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="files have no such modes there")


@pytest.fixture
def _open_to_all() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was synced, in order."""
    found: list[str] = []
    fsync = os.fsync

    def noted(file: int) -> None:
        found.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        fsync(file)

    monkeypatch.setattr(os, "fsync", noted)
    return found


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("takes_turns", [True, False])
def test_a_file_is_replaced_and_nothing_else_stays(tmp_path: Path, takes_turns: bool) -> None:
    for content in (b"one\n", b"two\r\n"):
        write_whole(tmp_path / "a", content, takes_turns=takes_turns)
        assert (tmp_path / "a").read_bytes() == content
    assert names_in(tmp_path) == ["a"]


@posix_only
@pytest.mark.usefixtures("_open_to_all")
@pytest.mark.parametrize("mode", [0o600, 0o644, 0o400])
def test_the_mode_is_the_one_asked_for_whatever_the_umask(tmp_path: Path, mode: int) -> None:
    write_whole(tmp_path / "a", b"x", mode=mode)
    assert write_new(tmp_path / "b", b"x", mode=mode)
    assert (mode_of(tmp_path / "a"), mode_of(tmp_path / "b")) == (mode, mode)


@posix_only
def test_the_content_is_synced_before_its_name_and_not_at_all_if_not_wanted(tmp_path: Path, synced: list[str]) -> None:
    write_whole(tmp_path / "a", b"x", finish=lambda part: synced.append("renamed next"))
    assert synced == ["file", "renamed next", "folder"]
    synced.clear()
    write_whole(tmp_path / "a", b"y", is_synced=False)
    assert synced == []
    write_new(tmp_path / "b", b"x")
    assert synced == ["file", "folder"]


@pytest.mark.parametrize("failing", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("takes_turns", [True, False])
def test_what_fails_midway_leaves_the_old_file_and_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, takes_turns: bool
) -> None:
    (tmp_path / "a").write_bytes(b"old")

    def fails(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, failing, fails)
    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a", b"new", takes_turns=takes_turns)
    assert ((tmp_path / "a").read_bytes(), names_in(tmp_path)) == (b"old", ["a"])


def test_a_part_that_a_crash_left_behind_is_removed_by_writers_that_take_turns(tmp_path: Path) -> None:
    (tmp_path / "a.part").write_bytes(b"half")
    write_whole(tmp_path / "a", b"whole", takes_turns=True)
    assert ((tmp_path / "a").read_bytes(), names_in(tmp_path)) == (b"whole", ["a"])


@posix_only
def test_a_link_in_the_place_of_the_part_or_the_file_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"mine")
    (tmp_path / "a.part").symlink_to(tmp_path / "outside")
    (tmp_path / "a").symlink_to(tmp_path / "outside")
    write_whole(tmp_path / "a", b"new", takes_turns=True)
    assert (tmp_path / "outside").read_bytes() == b"mine"
    assert not (tmp_path / "a").is_symlink()


def test_many_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    contents = [bytes([number]) * 100_000 for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda content: write_whole(tmp_path / "a", content, is_synced=False), contents))
    assert (tmp_path / "a").read_bytes() in contents
    assert names_in(tmp_path) == ["a"]


def test_a_new_file_never_replaces_another(tmp_path: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(lambda number: write_new(tmp_path / "a", b"%d" % number), range(8)))
    assert made.count(True) == 1
    assert (tmp_path / "a").read_bytes() == b"%d" % made.index(True)
    assert not write_new(tmp_path / "a", b"late")
    assert names_in(tmp_path) == ["a"]


def test_a_relative_name_is_written_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_whole("a", b"x")
    make_private_folder("b/c")
    assert names_in(tmp_path) == ["a", "b"]


@posix_only
@pytest.mark.usefixtures("_open_to_all")
def test_every_folder_that_is_made_is_private_and_those_that_were_there_stay_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    make_private_folder(tmp_path / "a" / "b" / "c")
    make_private_folder(tmp_path / "a" / "b" / "c")
    assert [mode_of(tmp_path / path) for path in ("a", "a/b", "a/b/c")] == [0o755, 0o700, 0o700]


def test_a_folder_that_another_process_makes_meanwhile_is_as_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = os.mkdir

    def late(path: str, mode: int) -> None:
        mkdir(path, mode)
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", late)
    make_private_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(OSError, match="file"):
        make_private_folder(tmp_path / "file" / "a")
    if sys.platform != "win32":
        (tmp_path / "dangling").symlink_to("nowhere")
        with pytest.raises(FileExistsError):
            make_private_folder(tmp_path / "dangling")
