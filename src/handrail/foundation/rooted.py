"""Ways into a folder that lead nowhere else: not by a link, not even by one that is swapped in meanwhile.

Each folder on the way is opened by its own name in the one before it. Where the system has no handles for folders, the
way is resolved and compared. Which names may be asked for, and what a refusal is called, is the caller's business."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Final, TypeAlias

from handrail.foundation.open_flags import BINARY, FOLDER_ONLY, NO_BLOCK, NO_FOLLOW

PATH_LENGTH_MAX: Final = 1_000
HAS_HANDLES: Final = bool(NO_FOLLOW) and {os.open, os.stat, os.rename, os.mkdir, os.link} <= os.supports_dir_fd
REPARSE_POINT: Final = 0x400  # what links and junctions are on Windows

Identity: TypeAlias = tuple[int, int]
"""What a folder is on its disk: its name can be spelled in many ways."""

_unprintable = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class What(StrEnum):
    """What stands at a place."""

    NOTHING = "nothing"
    FILE = "file"
    FOLDER = "folder"
    OTHER = "other"


class Why(Enum):
    """Why a way ends."""

    NO_FOLDER = auto()
    NOT_A_FOLDER = auto()
    """A file stands there, or a link, which is not followed."""
    CLOSED = auto()
    NOTHING_THERE = auto()
    NOT_A_FILE = auto()
    REPLACED = auto()
    """Another file stood there when it was looked at, just before it was opened."""


class Blocked(Exception):
    """A way that ends before its place; `shown` is how far it led."""

    def __init__(self, why: Why, shown: str, what: What = What.NOTHING) -> None:
        super().__init__(why, shown, what)
        self.why, self.shown, self.what = why, shown, what


@dataclass(frozen=True)
class Entry:
    """A name in a folder: by the folder's handle where the system has those, by its path elsewhere."""

    shown: str
    name: str
    folder: str
    handle: int | None

    def spelled(self, name: str) -> str:
        """A name in the same folder, as system calls that are given the handle want it."""
        return name if self.handle is not None else f"{self.folder}{os.sep}{name}"

    def status(self) -> os.stat_result | None:
        """What the system knows of the name itself, never of what it links to; None if nothing is there."""
        try:
            return os.stat(self.spelled(self.name), dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self) -> int:
        """The plain file that stands here, open for reading; Blocked if it is none."""
        seen = self.status()
        if seen is None:
            raise Blocked(Why.NOTHING_THERE, self.shown)
        if what_is(seen) is not What.FILE:  # before opening: to open a device can be an effect
            raise Blocked(Why.NOT_A_FILE, self.shown, what_is(seen))
        file = os.open(self.spelled(self.name), os.O_RDONLY | NO_FOLLOW | NO_BLOCK | BINARY, dir_fd=self.handle)
        # Also for systems that can't be told not to follow a link.
        if identity(seen) != identity(os.fstat(file)):
            os.close(file)
            raise Blocked(Why.REPLACED, self.shown)
        return file


@contextmanager
def entered(
    root: Path, parts: Sequence[str], *, closed: frozenset[Identity] = frozenset(), by_handle: bool = HAS_HANDLES
) -> Iterator[Entry]:
    """The last of these names, with its folder held open; Blocked if the way leads through a link or a closed folder.

    Each part is one name: never empty, `.` or `..`, and without a separator. Anything else would leave the root."""
    if not parts or any(part in {"", ".", ".."} or os.sep in part or (os.altsep or os.sep) in part for part in parts):
        raise ValueError(f"{parts!r} are not names on a way")
    with ExitStack() as held:
        found = _by_handles(root, parts, closed, held) if by_handle else _by_path(root, parts, closed)
        require_open(found.status(), closed, found.shown)
        yield found


def is_printable_path(path: str) -> bool:
    """Whether a path can be given to the system and shown to people."""
    return len(path) <= PATH_LENGTH_MAX and _unprintable.search(path) is None


def require_open(status: os.stat_result | None, closed: frozenset[Identity], shown: str) -> None:
    """Blocked for what is one of the closed folders."""
    if status is not None and identity(status) in closed:
        raise Blocked(Why.CLOSED, shown)


def identities(folders: Iterable[Path]) -> frozenset[Identity]:
    """What these folders are, as far as they exist."""
    return frozenset(identity(folder.stat()) for folder in folders if folder.exists())


def identity(status: os.stat_result) -> Identity:
    """What tells one file or folder from all others."""
    return (status.st_dev, status.st_ino)


def what_is(status: os.stat_result | None) -> What:
    """What such a status is of."""
    if status is None:
        return What.NOTHING
    if getattr(status, "st_file_attributes", 0) & REPARSE_POINT:
        return What.OTHER
    if stat.S_ISREG(status.st_mode):
        return What.FILE
    return What.FOLDER if stat.S_ISDIR(status.st_mode) else What.OTHER


def _by_handles(root: Path, parts: Sequence[str], closed: frozenset[Identity], held: ExitStack) -> Entry:
    here = _opened(str(root), os.O_RDONLY | FOLDER_ONLY, None, held)
    for count, part in enumerate(parts[:-1], 1):
        shown = "/".join(parts[:count])
        try:
            here = _opened(part, os.O_RDONLY | NO_FOLLOW | FOLDER_ONLY, here, held)
        except FileNotFoundError:
            raise Blocked(Why.NO_FOLDER, shown) from None
        except OSError:
            what = what_is(os.stat(part, dir_fd=here, follow_symlinks=False))
            if what is What.FOLDER:
                raise  # the system's own refusal
            raise Blocked(Why.NOT_A_FOLDER, shown, what) from None
        if closed:
            require_open(os.fstat(here), closed, shown)
    return Entry("/".join(parts), parts[-1], "", here)


def _opened(name: str, flags: int, folder: int | None, held: ExitStack) -> int:
    handle = os.open(name, flags, dir_fd=folder)
    held.callback(os.close, handle)
    return handle


def _by_path(root: Path, parts: Sequence[str], closed: frozenset[Identity]) -> Entry:
    here = root.resolve(strict=True)
    for count, part in enumerate(parts[:-1], 1):
        here, shown = here / part, "/".join(parts[:count])
        status = here.lstat() if here.exists() or here.is_symlink() else None
        if status is None:
            raise Blocked(Why.NO_FOLDER, shown)
        if what_is(status) is not What.FOLDER or here.resolve(strict=True) != here:
            raise Blocked(Why.NOT_A_FOLDER, shown, what_is(status))
        require_open(status, closed, shown)
    return Entry("/".join(parts), parts[-1], str(here), None)
