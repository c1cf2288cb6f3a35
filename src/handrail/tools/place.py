"""A place: one name in a folder that is held open, and all that can be done to it without following a link.

Whether a place may be touched is rooted.py's judgement; why it is touched, the file tools know."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from msgspec import Struct

from handrail.domain.definition import Category
from handrail.engine.tool import ToolFailed

BLOCK_BYTES: Final = 1_000_000
NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
NO_BLOCK: Final = getattr(os, "O_NONBLOCK", 0)  # else opening a pipe waits for its other end
BINARY: Final = getattr(os, "O_BINARY", 0)  # else some systems change line ends
NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
REPARSE_POINT: Final = 0x400  # what links and junctions are on Windows


class What(StrEnum):
    """What stands at a place."""

    NOTHING = "nothing"
    FILE = "file"
    FOLDER = "folder"
    OTHER = "other"


class State(Struct, frozen=True, kw_only=True):
    """What stands at a place, as far as two looks at it can be compared."""

    what: What
    bytes: int = 0
    sha256: str = ""


NOTHING: Final = State(what=What.NOTHING)


def file_state(content: bytes) -> State:
    """The state of a file with that content."""
    return State(what=What.FILE, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


@dataclass(frozen=True)
class Place:
    """A name in a folder: by the folder's handle where the system has those, by its path elsewhere."""

    shown: str
    name: str
    folder: str
    handle: int | None

    def status(self) -> os.stat_result | None:
        """What the system knows of the name itself, never of what it links to; None if nothing is there."""
        try:
            return os.stat(self._spelled(self.name), dir_fd=self.handle, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def what(self) -> What:
        """What stands here."""
        return what_is(self.status())

    def state(self) -> State:
        """What stands here; a file by its content."""
        match self.what():
            case What.FILE:
                digest, size = hashlib.sha256(), 0
                with os.fdopen(self._opened(), "rb") as file:
                    while block := file.read(BLOCK_BYTES):
                        digest.update(block)
                        size += len(block)
                return State(what=What.FILE, bytes=size, sha256=digest.hexdigest())
            case what:
                return State(what=what)

    def read(self, *, bytes_max: int) -> bytes:
        """The content of a file of at most that size."""
        with os.fdopen(self._opened(), "rb") as file:
            content = file.read(bytes_max + 1)
        if len(content) > bytes_max:
            raise ToolFailed(Category.INVALID_INPUT, f"{self.shown} is larger than {bytes_max:,} bytes")
        return content

    def write(self, content: bytes, *, mode: int | None, part: str, is_new: bool) -> None:
        """Put a whole file here, synced, or none; a new one never replaces what somebody else put here meanwhile."""
        self.discard(part)  # left behind by a crash
        # A new file gets the mode that everybody's new files get, one that was here keeps its own.
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | NO_FOLLOW | BINARY
        file = os.open(self._spelled(part), flags, 0o666 if mode is None else 0o600, dir_fd=self.handle)
        try:
            with os.fdopen(file, "wb") as writer:
                writer.write(content)
                writer.flush()
                _set_mode(file, mode)
                os.fsync(file)
            self._put(part, is_new=is_new)
        finally:
            self.discard(part)
        self.sync()

    def move_to(self, target: Place) -> None:
        """Give what stands here another name, which nobody has."""
        if self.what() is What.FILE:
            self._link(self.name, target)
        else:
            self._rename(self.name, target)  # a folder replaces nothing but an empty folder
        target.sync()
        self.sync()

    def make_folder(self, mode: int | None = None) -> None:
        """Make a folder here, with the mode that everybody's new folders get unless another is given."""
        os.mkdir(self._spelled(self.name), dir_fd=self.handle)
        if self.handle is not None:
            folder = os.open(self.name, os.O_RDONLY | NO_FOLLOW, dir_fd=self.handle)
            try:
                _set_mode(folder, mode)
            finally:
                os.close(folder)
        self.sync()

    def remove(self) -> None:
        """Remove the file or the empty folder that stands here."""
        if self.what() is What.FOLDER:
            os.rmdir(self._spelled(self.name), dir_fd=self.handle)
        else:
            os.unlink(self._spelled(self.name), dir_fd=self.handle)
        self.sync()

    def discard(self, name: str) -> None:
        """Remove a file of ours from the same folder, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self._spelled(name), dir_fd=self.handle)

    def sync(self) -> None:
        """Make a change of names in the folder survive a power cut; without handles there is nothing to sync."""
        if self.handle is not None:
            os.fsync(self.handle)

    def _opened(self) -> int:
        """The file that stands here, open for reading, and surely a file."""
        seen = self.status()
        if seen is None:
            raise ToolFailed(Category.NOT_FOUND, f"there is no {self.shown}; see what is there and name that")
        self._require_file(seen)  # before opening: to open a device can be an effect
        file = os.open(self._spelled(self.name), os.O_RDONLY | NO_FOLLOW | NO_BLOCK | BINARY, dir_fd=self.handle)
        now = os.fstat(file)
        # Also for systems that can't be told not to follow a link.
        if (seen.st_ino, seen.st_dev) != (now.st_ino, now.st_dev):
            os.close(file)
            raise ToolFailed(Category.CONFLICT, f"{self.shown} was replaced while it was opened; try again")
        return file

    def _require_file(self, status: os.stat_result) -> None:
        if what_is(status) is not What.FILE:
            kind = "a folder" if what_is(status) is What.FOLDER else "no plain file"
            raise ToolFailed(Category.INVALID_INPUT, f"{self.shown} is {kind}; name a plain file")

    def _put(self, part: str, *, is_new: bool) -> None:
        if is_new:
            self._link(part, self)
        elif self.handle is None:
            os.replace(self._spelled(part), self._spelled(self.name))  # noqa: PTH105 - the twin of the next line
        else:
            os.rename(part, self.name, src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def _link(self, name: str, target: Place) -> None:
        """Rename a file without ever replacing another: a link can't, a rename would."""
        if sys.platform == "win32":  # where a rename can't, either
            self._rename(name, target)
            return
        try:
            os.link(
                self._spelled(name),
                target._spelled(target.name),
                src_dir_fd=self.handle,
                dst_dir_fd=target.handle,
                follow_symlinks=False,
            )
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if target.status() is not None:
                raise FileExistsError(errno.EEXIST, "it exists", target.shown) from None
            self._rename(name, target)
            return
        os.unlink(self._spelled(name), dir_fd=self.handle)

    def _rename(self, name: str, target: Place) -> None:
        source_name, target_name = self._spelled(name), target._spelled(target.name)
        os.rename(source_name, target_name, src_dir_fd=self.handle, dst_dir_fd=target.handle)

    def _spelled(self, name: str) -> str:
        return name if self.handle is not None else f"{self.folder}{os.sep}{name}"


def _set_mode(file: int, mode: int | None) -> None:
    if mode is not None and sys.platform != "win32":  # where files have no such modes
        os.fchmod(file, mode)


def what_is(status: os.stat_result | None) -> What:
    """What such a status is of."""
    if status is None:
        return What.NOTHING
    if getattr(status, "st_file_attributes", 0) & REPARSE_POINT:
        return What.OTHER
    if stat.S_ISREG(status.st_mode):
        return What.FILE
    return What.FOLDER if stat.S_ISDIR(status.st_mode) else What.OTHER
