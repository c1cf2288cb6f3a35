"""The way into a folder: whatever links lie about or are swapped in, it ends inside or is refused.

The file tools and the rules have escape tests of their own, which end here: tests/tools/test_rooted.py,
tests/tools/test_root_escapes.py, tests/rules/test_files.py."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.foundation import rooted
from handrail.foundation.rooted import (
    HAS_HANDLES,
    PATH_LENGTH_MAX,
    Blocked,
    BlockReason,
    EntryKind,
    entered,
    identities,
    is_printable_path,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
both_ways = pytest.mark.parametrize("by_handle", [HAS_HANDLES, False])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    outside, root = tmp_path / "outside", tmp_path / "root"
    (outside / "sub").mkdir(parents=True)
    (outside / "secret").write_text("secret")
    (root / "folder").mkdir(parents=True)
    (root / "folder" / "file").write_text("mine")
    (root / "out").symlink_to(outside)
    (root / "folder" / "up").symlink_to("../../outside")
    (root / "inner").symlink_to("folder")
    (root / "leaf").symlink_to(outside / "secret")
    (root / "dangling").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    return root


def read(root: Path, path: str, **more: Any) -> bytes:
    with entered(root, path.split("/"), **more) as entry, os.fdopen(entry.open_file(), "rb") as file:
        return file.read()


def handles() -> int:
    """How many files this process has open, where the system says so."""
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


@both_ways
def test_a_file_below_is_opened_and_no_handle_stays_open(root: Path, by_handle: bool) -> None:
    before = handles()
    assert read(root, "folder/file", by_handle=by_handle) == b"mine"
    with pytest.raises(Blocked):
        read(root, "folder/up/secret", by_handle=by_handle)
    assert handles() == before


@both_ways
@pytest.mark.parametrize(
    ("path", "why", "shown"),
    [
        ("out/secret", BlockReason.NOT_A_FOLDER, "out"),
        ("out/sub/x", BlockReason.NOT_A_FOLDER, "out"),
        ("inner/file", BlockReason.NOT_A_FOLDER, "inner"),  # also a link that stays inside
        ("folder/up/secret", BlockReason.NOT_A_FOLDER, "folder/up"),
        ("folder/file/x", BlockReason.NOT_A_FOLDER, "folder/file"),
        ("dangling/x", BlockReason.NOT_A_FOLDER, "dangling"),
        ("pipe/x", BlockReason.NOT_A_FOLDER, "pipe"),
        ("none/x", BlockReason.NO_FOLDER, "none"),
        ("none", BlockReason.NOTHING_THERE, "none"),
        ("leaf", BlockReason.NOT_A_FILE, "leaf"),
        ("dangling", BlockReason.NOT_A_FILE, "dangling"),
        ("out", BlockReason.NOT_A_FILE, "out"),
        ("folder", BlockReason.NOT_A_FILE, "folder"),
        ("pipe", BlockReason.NOT_A_FILE, "pipe"),
    ],
)
def test_no_link_is_followed_and_only_plain_files_are_opened(
    root: Path, by_handle: bool, path: str, why: BlockReason, shown: str
) -> None:
    with pytest.raises(Blocked) as blocked:
        read(root, path, by_handle=by_handle)
    assert (blocked.value.why, blocked.value.shown) == (why, shown)


def test_a_folder_is_distinguished_from_what_is_neither_folder_nor_file(root: Path) -> None:
    for path, what in (("folder", EntryKind.FOLDER), ("pipe", EntryKind.OTHER), ("leaf", EntryKind.OTHER)):
        with pytest.raises(Blocked) as blocked:
            read(root, path)
        assert blocked.value.what is what


@both_ways
@pytest.mark.parametrize("path", ["..", "../outside/secret", "folder/../../outside/secret", "/etc/passwd", ".", "a//b"])
def test_what_is_no_name_is_refused_before_the_disk_is_asked(root: Path, by_handle: bool, path: str) -> None:
    with pytest.raises(ValueError, match="are not the parts"):
        read(root, path, by_handle=by_handle)
    for parts in ([], ["folder/up"], [str(root)]):
        with pytest.raises(ValueError, match="are not the parts"), entered(root, parts, by_handle=by_handle):
            pass


@both_ways
@pytest.mark.parametrize("path", ["folder", "folder/file", "folder/sub/x"])
def test_a_closed_folder_is_neither_named_nor_entered_whatever_it_is_called(
    root: Path, by_handle: bool, path: str
) -> None:
    (root / "folder" / "sub").mkdir()
    closed = identities([root / "inner", root / "none"])  # by a link to it: what counts is what it is
    with pytest.raises(Blocked) as blocked:
        read(root, path, closed=closed, by_handle=by_handle)
    assert blocked.value.why is BlockReason.CLOSED


@pytest.mark.skipif(not HAS_HANDLES, reason="only folders with handles can be held")
def test_a_folder_that_is_held_stays_the_same_when_a_link_takes_its_name(root: Path) -> None:
    with entered(root, ["folder", "secret"]) as entry:
        (root / "folder").rename(root / "elsewhere")
        (root / "folder").symlink_to(root.parent / "outside")
        assert entry.status() is None
        (root / "elsewhere" / "secret").write_text("mine")
        with os.fdopen(entry.open_file(), "rb") as file:
            assert file.read() == b"mine"


@both_ways
@pytest.mark.parametrize("swapped", ["link", "file"])
def test_a_file_that_is_replaced_between_look_and_opening_is_not_read(
    root: Path, by_handle: bool, swapped: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open
    # As on systems that can't be told not to follow a link.
    monkeypatch.setattr(rooted, "NO_FOLLOW", 0)

    def swapping(name: Any, *rest: Any, **named: Any) -> int:
        if str(name).endswith("file"):
            (root / "folder" / "file").rename(root / "folder" / "old")
            if swapped == "link":
                (root / "folder" / "file").symlink_to(root.parent / "outside" / "secret")
            else:
                (root / "folder" / "file").write_text("another")
        return opened(name, *rest, **named)

    with entered(root, ["folder", "file"], by_handle=by_handle) as entry:
        monkeypatch.setattr(os, "open", swapping)
        with pytest.raises(Blocked) as blocked:
            entry.open_file()
    assert blocked.value.why is BlockReason.REPLACED


@pytest.mark.skipif(not HAS_HANDLES, reason="only folders with handles can be held")
def test_what_the_system_refuses_by_itself_stays_its_own_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = os.open

    def refusing(name: Any, *rest: Any, **named: Any) -> int:
        if name == "folder":
            raise PermissionError(13, "no")
        return opened(name, *rest, **named)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(PermissionError), entered(root, ["folder", "file"]):
        pass


def test_paths_that_can_not_be_given_or_shown_are_known() -> None:
    assert is_printable_path("a b/ü…~")
    assert is_printable_path("x" * PATH_LENGTH_MAX)
    for path in ("a\0b", "a\nb", "a\x7f", "a\ud800", "x" * (PATH_LENGTH_MAX + 1)):
        assert not is_printable_path(path)
