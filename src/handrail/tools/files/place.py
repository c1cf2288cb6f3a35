"""A path in the project whose folder is held open, and the operations on it, none of which follows a link.

Which paths are allowed is decided in rooted.py; reading the status and opening is done in foundation/rooted.py."""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, assert_never

from msgspec import Struct

from handrail.domain.definition.model import Category
from handrail.engine.tool import ToolFailed
from handrail.foundation.open_flags import BINARY, NO_FOLLOW
from handrail.foundation.rooted import Blocked, BlockReason, EntryKind, FolderEntry, kind_of

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

BLOCK_BYTES: Final = 1_000_000
ALONE_S: Final = 5.0
LOCK_RETRY_S: Final = 0.002
NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


class State(Struct, frozen=True, kw_only=True):
    """The state of a path, for comparing it at two times."""

    what: EntryKind
    bytes: int = 0
    sha256: str = ""


NOTHING: Final = State(what=EntryKind.NOTHING)


def file_state(content: bytes) -> State:
    """The state of a file with that content."""
    return State(what=EntryKind.FILE, bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


@dataclass(frozen=True)
class GuardedPath:
    """A name in a folder that is held open."""

    entry: FolderEntry

    @property
    def shown(self) -> str:
        """The path, as shown to people."""
        return self.entry.shown

    @property
    def name(self) -> str:
        """The name in its folder."""
        return self.entry.name

    @property
    def handle(self) -> int | None:
        """The folder's handle; None on systems without them."""
        return self.entry.handle

    def status(self) -> os.stat_result | None:
        """The status of the name itself, never of what it links to; None if nothing is there."""
        return self.entry.status()

    def what(self) -> EntryKind:
        """The kind of entry at this path."""
        return kind_of(self.status())

    def state(self) -> State:
        """The state of this path; for a file, with the digest of its content."""
        match self.what():
            case EntryKind.FILE:
                digest, size = hashlib.sha256(), 0
                with os.fdopen(self._opened(), "rb") as file:
                    while block := file.read(BLOCK_BYTES):
                        digest.update(block)
                        size += len(block)
                return State(what=EntryKind.FILE, bytes=size, sha256=digest.hexdigest())
            case what:
                return State(what=what)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes of handrail from changing anything in the folder: between a look and a change, another
        change would be lost. ToolFailed if one of them does so for long."""
        if fcntl is None or self.handle is None:
            yield
            return
        deadline_s = time.monotonic() + ALONE_S
        while not _locked(self.handle):
            if time.monotonic() >= deadline_s:
                raise ToolFailed(Category.TRANSIENT, f"another process has locked the folder of {self.shown}")
            time.sleep(LOCK_RETRY_S)
        yield  # closing the folder releases it

    def read(self, *, bytes_max: int) -> bytes:
        """The content of a file of at most that size."""
        with os.fdopen(self._opened(), "rb") as file:
            content = file.read(bytes_max + 1)
        if len(content) > bytes_max:
            raise ToolFailed(Category.INVALID_INPUT, f"{self.shown} is larger than {bytes_max:,} bytes")
        return content

    def write(self, content: bytes, *, mode: int | None, part: str, is_new: bool) -> None:
        """Write a complete, synced file or none; a new file never replaces one that was created in the meantime."""
        self.discard(part)  # left behind by a crash
        # A new file gets its mode from the umask; an existing file keeps its own.
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | NO_FOLLOW | BINARY
        # Not readable for others until it has its own mode: the content may be secret.
        file = os.open(self.entry.spelled(part), flags, 0o666 if mode is None else 0o600, dir_fd=self.handle)
        try:
            with os.fdopen(file, "wb") as writer:
                writer.write(content)
                writer.flush()
                _set_mode(file, mode)
                os.fsync(file)
            # The content is on the disk before the name leads to it: after a power cut the file is the old or the new
            # one.
            self._put(part, is_new=is_new)
        finally:
            self.discard(part)
        self.sync()

    def move_to(self, target: GuardedPath) -> None:
        """Rename this file or folder to a path that is free."""
        if self.what() is EntryKind.FILE:
            self._link(self.name, target)
        else:
            self._rename(self.name, target)  # a folder replaces nothing but an empty folder
        # The new name first: after a power cut in between there are two names, not none.
        target.sync()
        self.sync()

    def make_folder(self, mode: int | None = None) -> None:
        """Create a folder here, with its mode from the umask unless one is given."""
        os.mkdir(self.entry.spelled(self.name), dir_fd=self.handle)
        if self.handle is not None:
            folder = os.open(self.name, os.O_RDONLY | NO_FOLLOW, dir_fd=self.handle)
            try:
                _set_mode(folder, mode)
            finally:
                os.close(folder)
        self.sync()

    def remove(self) -> None:
        """Remove the file or the empty folder at this path."""
        if self.what() is EntryKind.FOLDER:
            os.rmdir(self.entry.spelled(self.name), dir_fd=self.handle)
        else:
            os.unlink(self.entry.spelled(self.name), dir_fd=self.handle)
        self.sync()

    def discard(self, name: str) -> None:
        """Remove a temporary file from the same folder, if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(self.entry.spelled(name), dir_fd=self.handle)

    def sync(self) -> None:
        """Make changed names in the folder survive a power cut; does nothing without handles."""
        if self.handle is not None:
            os.fsync(self.handle)

    def _opened(self) -> int:
        try:
            return self.entry.open_file()
        except Blocked as blocked:
            raise tool_failure(blocked) from None

    def _put(self, part: str, *, is_new: bool) -> None:
        if is_new:
            self._link(part, self)
        elif self.handle is None:
            os.replace(self.entry.spelled(part), self.entry.spelled(self.name))  # noqa: PTH105 - like the line below
        else:
            os.rename(part, self.name, src_dir_fd=self.handle, dst_dir_fd=self.handle)

    def _link(self, name: str, target: GuardedPath) -> None:
        """Rename a file without ever replacing another one: linking fails if the target exists, renaming would not."""
        if sys.platform == "win32":  # there renaming fails too if the target exists
            self._rename(name, target)
            return
        try:
            os.link(
                self.entry.spelled(name),
                target.entry.spelled(target.name),
                src_dir_fd=self.handle,
                dst_dir_fd=target.handle,
                follow_symlinks=False,
            )
        except OSError as error:
            if error.errno not in NO_LINKS:
                raise
            if target.status() is not None:
                raise FileExistsError(errno.EEXIST, "it already exists", target.shown) from None
            self._rename(name, target)
            return
        os.unlink(self.entry.spelled(name), dir_fd=self.handle)

    def _rename(self, name: str, target: GuardedPath) -> None:
        source_name, target_name = self.entry.spelled(name), target.entry.spelled(target.name)
        os.rename(source_name, target_name, src_dir_fd=self.handle, dst_dir_fd=target.handle)


def _locked(folder: int) -> bool:
    """Whether the lock on a folder was free."""
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some file systems have no locks
        return True
    return True


def _set_mode(file: int, mode: int | None) -> None:
    if mode is not None and sys.platform != "win32":  # Windows has no such file modes
        os.fchmod(file, mode)


def own_folder(shown: str) -> ToolFailed:
    """The failure of a plan that uses one of handrail's own folders."""
    return ToolFailed(Category.PERMISSION, f"{shown} belongs to handrail itself; choose another folder")


def starts_programs(shown: str) -> ToolFailed:
    """The failure of a plan that would change what git, a client or a shell starts programs from."""
    message = f"{shown} can make other programs start commands; file tools don't change it: leave that to a person"
    return ToolFailed(Category.PERMISSION, message)


def tool_failure(blocked: Blocked) -> ToolFailed:
    """Why a path can't be opened, with what to do about it."""
    shown = blocked.shown
    match blocked.why:
        case BlockReason.NO_FOLDER:
            return ToolFailed(Category.NOT_FOUND, f"there is no folder {shown}; create it first with file.mkdir")
        case BlockReason.NOT_A_FOLDER:
            message = f"{shown} is a file or a link, not a folder; links are not followed: use the real path"
            return ToolFailed(Category.PERMISSION, message)
        case BlockReason.CLOSED:
            return own_folder(shown)
        case BlockReason.NOTHING_THERE:
            return ToolFailed(Category.NOT_FOUND, f"there is no {shown}; check the path")
        case BlockReason.NOT_A_FILE:
            kind = "a folder" if blocked.what is EntryKind.FOLDER else "not a plain file"
            return ToolFailed(Category.INVALID_INPUT, f"{shown} is {kind}; choose a plain file")
        case BlockReason.REPLACED:
            return ToolFailed(Category.CONFLICT, f"{shown} was replaced while it was opened; try again")
        case _:
            assert_never(blocked.why)
