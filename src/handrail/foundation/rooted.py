"""Opening paths below a root folder without ever leaving it, not even by a link that is swapped in at the same time.

Each folder on the path is opened by its own name in the folder before it. Where the system has no handles for folders,
the path is resolved and compared. The callers decide which names are allowed and how a refusal is worded:
tools/files/rooted.py and rules/files/project.py."""

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
REPARSE_POINT: Final = 0x400  # links and junctions on Windows

Identity: TypeAlias = tuple[int, int]
"""Device and inode of a folder, because its name can be spelled in many ways."""

_unprintable = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


class EntryKind(StrEnum):
    """What a name in a folder refers to."""

    NOTHING = "nothing"
    FILE = "file"
    FOLDER = "folder"
    OTHER = "other"


class BlockReason(Enum):
    """Why a path can't be opened."""

    NO_FOLDER = auto()
    NOT_A_FOLDER = auto()
    """It is a file, or a link, which is not followed."""
    CLOSED = auto()
    NOTHING_THERE = auto()
    NOT_A_FILE = auto()
    REPLACED = auto()
    """The file was swapped for another one between the check and the opening."""


class Blocked(Exception):
    """A path can't be opened; `shown` is the part of it that was reached."""

    def __init__(self, why: BlockReason, shown: str, what: EntryKind = EntryKind.NOTHING) -> None:
        super().__init__(why, shown, what)
        self.why, self.shown, self.what = why, shown, what


@dataclass(frozen=True)
class FolderEntry:
    """A name in a folder: reached by the folder's handle where the system has those, elsewhere by its path."""

    shown: str
    name: str
    folder: str
    handle: int | None

    def spelled(self, name: str) -> str:
        """A name in the same folder, in the form that system calls with this handle expect."""
        return name if self.handle is not None else f"{self.folder}{os.sep}{name}"

    def status(self) -> os.stat_result | None:
        """The status of the name itself, never of what it links to; None if nothing is there."""
        try:
            return os.stat(self.spelled(self.name), dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open_file(self) -> int:
        """The plain file of this name, open for reading; Blocked if it is not one."""
        seen = self.status()
        if seen is None:
            raise Blocked(BlockReason.NOTHING_THERE, self.shown)
        if kind_of(seen) is not EntryKind.FILE:  # checked before opening: opening a device can have an effect
            raise Blocked(BlockReason.NOT_A_FILE, self.shown, kind_of(seen))
        file = os.open(self.spelled(self.name), os.O_RDONLY | NO_FOLLOW | NO_BLOCK | BINARY, dir_fd=self.handle)
        # Some systems have no flag against following links, so this check is the guard there.
        if identity(seen) != identity(os.fstat(file)):
            os.close(file)
            raise Blocked(BlockReason.REPLACED, self.shown)
        return file


@contextmanager
def entered(
    root: Path, parts: Sequence[str], *, closed: frozenset[Identity] = frozenset(), by_handle: bool = HAS_HANDLES
) -> Iterator[FolderEntry]:
    """The last of these names, with its folder held open; Blocked if the path goes through a link or a closed folder.

    Each part is one name: never empty, `.` or `..`, and without a separator. Anything else could leave the root."""
    if not parts or any(part in {"", ".", ".."} or os.sep in part or (os.altsep or os.sep) in part for part in parts):
        raise ValueError(f"{parts!r} are not the parts of a path")
    with ExitStack() as held:
        found = _by_handles(root, parts, closed, held) if by_handle else _by_path(root, parts, closed)
        require_open(found.status(), closed, found.shown)
        yield found


def is_printable_path(path: str) -> bool:
    """Whether a path can be given to the system and shown to people."""
    return len(path) <= PATH_LENGTH_MAX and _unprintable.search(path) is None


def require_open(status: os.stat_result | None, closed: frozenset[Identity], shown: str) -> None:
    """Raise Blocked for one of the closed folders."""
    if status is not None and identity(status) in closed:
        raise Blocked(BlockReason.CLOSED, shown)


def identities(folders: Iterable[Path]) -> frozenset[Identity]:
    """The identities of those of these folders that exist."""
    return frozenset(identity(folder.stat()) for folder in folders if folder.exists())


def identity(status: os.stat_result) -> Identity:
    """What distinguishes one file or folder from all others."""
    return (status.st_dev, status.st_ino)


def kind_of(status: os.stat_result | None) -> EntryKind:
    """The kind of entry that a status describes."""
    if status is None:
        return EntryKind.NOTHING
    if getattr(status, "st_file_attributes", 0) & REPARSE_POINT:
        return EntryKind.OTHER
    if stat.S_ISREG(status.st_mode):
        return EntryKind.FILE
    return EntryKind.FOLDER if stat.S_ISDIR(status.st_mode) else EntryKind.OTHER


def _by_handles(root: Path, parts: Sequence[str], closed: frozenset[Identity], held: ExitStack) -> FolderEntry:
    here = _opened(str(root), os.O_RDONLY | FOLDER_ONLY, None, held)
    for count, part in enumerate(parts[:-1], 1):
        shown = "/".join(parts[:count])
        try:
            here = _opened(part, os.O_RDONLY | NO_FOLLOW | FOLDER_ONLY, here, held)
        except FileNotFoundError:
            raise Blocked(BlockReason.NO_FOLDER, shown) from None
        except OSError:
            what = kind_of(os.stat(part, dir_fd=here, follow_symlinks=False))
            if what is EntryKind.FOLDER:
                raise  # the system's own refusal
            raise Blocked(BlockReason.NOT_A_FOLDER, shown, what) from None
        if closed:
            require_open(os.fstat(here), closed, shown)
    return FolderEntry("/".join(parts), parts[-1], "", here)


def _opened(name: str, flags: int, folder: int | None, held: ExitStack) -> int:
    handle = os.open(name, flags, dir_fd=folder)
    held.callback(os.close, handle)
    return handle


def _by_path(root: Path, parts: Sequence[str], closed: frozenset[Identity]) -> FolderEntry:
    here = root.resolve(strict=True)
    for count, part in enumerate(parts[:-1], 1):
        here, shown = here / part, "/".join(parts[:count])
        status = here.lstat() if here.exists() or here.is_symlink() else None
        if status is None:
            raise Blocked(BlockReason.NO_FOLDER, shown)
        if kind_of(status) is not EntryKind.FOLDER or here.resolve(strict=True) != here:
            raise Blocked(BlockReason.NOT_A_FOLDER, shown, kind_of(status))
        require_open(status, closed, shown)
    return FolderEntry("/".join(parts), parts[-1], str(here), None)
