"""Rooted paths: which places a plan may touch, and how to get there without being led elsewhere.

Nothing outside the project's folder, by no `..`, absolute path or link, not even one that is swapped in meanwhile: each
folder on the way is opened by its own name in the one before it. Where the system has no handles for folders, the way
is resolved and compared. What is done at a place, place.py does."""

from __future__ import annotations

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from handrail.domain.definition import Category
from handrail.engine.tool import ToolFailed
from handrail.tools.place import NO_FOLLOW, Place, What, what_is

OWN_FOLDER: Final = ".handrail"
PATH_LENGTH_MAX: Final = 1_000
NAME_BYTES_MAX: Final = 255
HAS_HANDLES: Final = bool(NO_FOLLOW) and {os.open, os.stat, os.rename, os.mkdir, os.link} <= os.supports_dir_fd
FOLDER_FLAGS: Final = os.O_RDONLY | NO_FOLLOW | getattr(os, "O_DIRECTORY", 0)

_control = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_drive = re.compile(r"^[A-Za-z]:")
# Names that mean a device or another name on Windows, whatever their case and ending.
_windows_trap = re.compile(r'(?i)[<>:"|?*]|[ .]$|^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])(\..*)?$')


def path_parts(path: str, *, windows: bool = sys.platform == "win32") -> tuple[str, ...]:
    """The names on the way to a place; ToolFailed for a path that does not stay inside, whatever is on the disk."""
    if len(path) > PATH_LENGTH_MAX or _control.search(path):
        raise _refused("the path", f"holds control characters or is longer than {PATH_LENGTH_MAX} characters")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    flaws = (_way_flaw(path, parts), *(_name_flaw(part, windows=windows) for part in parts))
    if flaw := next(filter(None, flaws), ""):
        raise _refused(path or "the empty path", flaw)
    return parts


def _way_flaw(path: str, parts: tuple[str, ...]) -> str:
    if path.startswith("/") or _drive.match(path):
        return "is absolute"
    if "\\" in path:
        return "holds a backslash; write / between folders"
    if ".." in parts:
        return "holds `..`"
    return "" if parts else "is the project's folder itself"


def _name_flaw(name: str, *, windows: bool) -> str:
    is_trap = windows and _windows_trap.search(name)
    return "holds a name that the system can't keep" if is_trap or len(name.encode()) > NAME_BYTES_MAX else ""


class Root:
    """The project's folder, with the folders in it that are not a plan's business."""

    def __init__(self, folder: Path, *, private: Sequence[Path] = (), by_handle: bool = HAS_HANDLES) -> None:
        self._folder = folder
        self._private = (*private,)
        self._by_handle = by_handle

    @contextmanager
    def place(self, path: str, *, writing: bool) -> Iterator[Place]:
        """The place that a path names, with its folder held open; ToolFailed if a plan may not go there."""
        parts = path_parts(path)
        if writing and _folded(parts[0]) == OWN_FOLDER:
            raise _own_folder(path)
        closed = self._closed(writing=writing)
        with ExitStack() as held:
            found = self._by_handles(parts, closed, held) if self._by_handle else self._by_path(parts, closed)
            self._require_open(found.status(), closed, found.shown)
            yield found

    def require_movable(self, place: Place) -> None:
        """Refuse to move a folder that holds one of handrail's own."""
        status = place.status()
        named = (path for folder in self._private for path in (folder.absolute(), folder.resolve()))
        around = {parent for path in named for parent in path.parents}
        self._require_open(status, _identities(around), place.shown)

    def _by_handles(self, parts: tuple[str, ...], closed: frozenset[tuple[int, int]], held: ExitStack) -> Place:
        here = self._opened(str(self._folder), os.O_RDONLY | getattr(os, "O_DIRECTORY", 0), None, held)
        for count, part in enumerate(parts[:-1], 1):
            shown = "/".join(parts[:count])
            try:
                here = self._opened(part, FOLDER_FLAGS, here, held)
            except FileNotFoundError:
                raise _no_folder(shown) from None
            except OSError as error:
                raise self._blocked(part, here, shown) or error from None
            self._require_open(os.fstat(here), closed, shown)
        return Place("/".join(parts), parts[-1], "", here)

    def _opened(self, name: str, flags: int, folder: int | None, held: ExitStack) -> int:
        handle = os.open(name, flags, dir_fd=folder)
        held.callback(os.close, handle)
        return handle

    def _blocked(self, name: str, folder: int, shown: str) -> ToolFailed | None:
        """Why a name on the way can't be entered, if it is not the system's own refusal."""
        what = what_is(os.stat(name, dir_fd=folder, follow_symlinks=False))
        return None if what is What.FOLDER else _not_a_folder(shown)

    def _by_path(self, parts: tuple[str, ...], closed: frozenset[tuple[int, int]]) -> Place:
        root = self._folder.resolve(strict=True)
        here = root
        for count, part in enumerate(parts[:-1], 1):
            here, shown = here / part, "/".join(parts[:count])
            status = here.lstat() if here.exists() or here.is_symlink() else None
            if status is None:
                raise _no_folder(shown)
            if what_is(status) is not What.FOLDER or here.resolve(strict=True) != here:
                raise _not_a_folder(shown)
            self._require_open(status, closed, shown)
        return Place("/".join(parts), parts[-1], str(here), None)

    def _closed(self, *, writing: bool) -> frozenset[tuple[int, int]]:
        """The folders not to be entered, by what they are: a name can be spelled in many ways."""
        folders = [*self._private, *([self._folder / OWN_FOLDER] if writing else [])]
        return _identities(folders)

    def _require_open(self, status: os.stat_result | None, closed: frozenset[tuple[int, int]], shown: str) -> None:
        if status is not None and (status.st_dev, status.st_ino) in closed:
            raise _own_folder(shown)


def _identities(folders: Iterable[Path]) -> frozenset[tuple[int, int]]:
    found = [folder.stat() for folder in folders if folder.exists()]
    return frozenset((status.st_dev, status.st_ino) for status in found)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold()


def _refused(path: str, why: str) -> ToolFailed:
    message = f"{path[:200]} {why}; file tools stay inside the project: name a path below its folder"
    return ToolFailed(Category.INVALID_INPUT, message)


def _own_folder(shown: str) -> ToolFailed:
    return ToolFailed(Category.PERMISSION, f"{shown} belongs to handrail itself; choose another folder")


def _no_folder(shown: str) -> ToolFailed:
    return ToolFailed(Category.NOT_FOUND, f"there is no folder {shown}; make it first, with file.mkdir")


def _not_a_folder(shown: str) -> ToolFailed:
    message = f"{shown} is no folder but a file or a link; links are not followed: name the way without it"
    return ToolFailed(Category.PERMISSION, message)
