"""Whole files of strangers: regular, bounded, inside; anything else is refused before it is read."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.foundation.plain_file import NotPlain, is_within, open_plain, read_plain, read_start, root_around

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and links are POSIX's")
both = pytest.mark.parametrize("is_rooted", [False, True])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "deep").mkdir(parents=True)
    (tmp_path / "root" / "deep" / "file").write_bytes(b"12345")
    (tmp_path / "outside").write_bytes(b"secret")
    return tmp_path / "root"


@both
def test_a_regular_file_is_read_up_to_its_limit(root: Path, is_rooted: bool) -> None:
    within = root if is_rooted else None
    assert read_plain(root / "deep" / "file", bytes_max=5, within=within) == b"12345"
    with pytest.raises(NotPlain, match="is larger than 4 bytes"):
        read_plain(root / "deep" / "file", bytes_max=4, within=within)


@both
def test_what_is_no_file_is_refused_without_waiting_for_it(root: Path, is_rooted: bool) -> None:
    os.mkfifo(root / "pipe")
    (root / "zero").symlink_to("/dev/zero")
    (root / "loop").symlink_to("loop")
    for name in ("pipe", "zero", "loop", "deep"):
        with pytest.raises(NotPlain):
            read_plain(root / name, bytes_max=5, within=root if is_rooted else None)


def test_of_a_large_file_the_start_is_read_and_of_what_is_no_file_nothing(root: Path) -> None:
    assert read_start(root / "deep" / "file", bytes_max=3) == b"123"
    os.mkfifo(root / "pipe")
    (root / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero", "deep"):
        with pytest.raises(NotPlain):
            read_start(root / name, bytes_max=3)
        with pytest.raises(NotPlain):
            open_plain(root / name)


@both
def test_a_file_that_is_not_there_is_for_the_caller_to_judge(root: Path, is_rooted: bool) -> None:
    (root / "broken").symlink_to("gone")
    for name in ("gone", "gone/deeper", "broken"):
        with pytest.raises(FileNotFoundError):
            read_plain(root / name, bytes_max=5, within=root if is_rooted else None)


def test_links_are_followed_only_inside(root: Path) -> None:
    (root / "inner").symlink_to("deep/file")
    (root / "outer").symlink_to("../outside")
    (root / "away").symlink_to("..")
    assert read_plain(root / "inner", bytes_max=5, within=root) == b"12345"
    for path in (root / "outer", root / "away" / "outside", root / ".." / "outside", root):
        with pytest.raises(NotPlain, match="leads out of"):
            read_plain(path, bytes_max=10, within=root)
    assert read_plain(root / "outer", bytes_max=10) == b"secret"


def test_a_file_that_is_swapped_while_it_is_opened_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def swapping(path: Any, *more: Any, **named: Any) -> int:
        (root / "deep" / "file").unlink()
        (root / "deep" / "file").symlink_to(root.parent / "outside")
        return real(path, *more, **named)

    monkeypatch.setattr("handrail.foundation.plain_file.os.open", swapping)
    with pytest.raises(NotPlain, match="was replaced"):
        read_plain(root / "deep" / "file", bytes_max=10)


def test_a_file_that_the_system_refuses_is_not_plain(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("handrail.foundation.plain_file.os.open", refused)
    with pytest.raises(NotPlain, match="can't be read: Permission denied"):
        read_plain(root / "deep" / "file", bytes_max=10)


def test_a_path_is_in_a_folder_as_it_is_written_or_as_it_really_is(root: Path) -> None:
    (root.parent / "alias").symlink_to(root)
    (root / "outer").symlink_to("../outside")
    assert root_around(root / "outer", root) == root
    assert root_around(root.parent / "alias" / "outer", root) == root
    assert root_around(root / ".." / "outside", root) is None
    assert is_within(root.parent / "alias" / "deep", root)
    assert not is_within(root / "outer", root)
