"""Presence: whether the process behind an owner of leases is still there, on this machine, by a lock on a file.

The operating system gives the lock back when the process dies, however it dies; one that is only stopped keeps it.
Who may take which run is decided by the leases alone (engine/lease.py): a dead owner's just need not be waited for.

A forked process must not keep its parent's lock alive. What another program is started with does not include the file
(Python opens files with O_CLOEXEC), and a plain fork closes its copy first of all. Only a fork made below Python keeps
the parent alive for as long as the child lives: its runs are then taken over when its beat stands still."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from handrail.domain.errors import Conflict, Invalid, Unavailable
from handrail.foundation.atomic_file import make_private_folder
from handrail.foundation.open_flags import NO_FOLLOW
from handrail.storage.file_lock import locked, try_lock

LOOK_WAIT_S: Final = 2.0
LOOK_FILE: Final = "look"
"""Whoever enters or looks holds this meanwhile: so a locked file means its owner, never someone else who looks."""

_owner = re.compile("[a-z0-9-]{1,100}")


class Presence:
    """A process that is there; made by `enter`, and gone by `leave` or by the end of the process."""

    def __init__(self, folder: Path, owner: str, file: int) -> None:
        self._folder = folder
        self._owner = owner
        self._file: int | None = file
        _entered.add(self)

    @classmethod
    def enter(cls, folder: Path, owner: str) -> Self:
        """Be there under this name for as long as the process lives; Conflict if another process is already."""
        path = _path(folder, owner)
        with _told(owner):
            make_private_folder(folder)
            with locked(folder / LOOK_FILE, wait_s=LOOK_WAIT_S):
                file = _locked(path, os.O_CREAT)
        if file is None:
            raise Conflict(f"another process works as {owner} already", hint="choose another name for this one")
        return cls(folder, owner, file)

    def is_alive(self, owner: str) -> bool:
        """Whether the process behind an owner is there, this one included."""
        return is_alive(self._folder, owner)

    def leave(self) -> None:
        """Be gone for all who look from now on."""
        if self._file is None:
            return
        self._let_go()
        with suppress(Unavailable):  # whoever looks later removes the file otherwise
            is_alive(self._folder, self._owner)

    def _let_go(self) -> None:
        """Close this process's copy of the file; the last copy that is closed gives the lock back."""
        _entered.discard(self)
        if self._file is not None:
            os.close(self._file)
            self._file = None


_entered: Final[set[Presence]] = set()
"""Kept here so that a fork finds them, and so that dropping a Presence does not end it."""


def is_alive(folder: Path, owner: str) -> bool:
    """Whether the process behind an owner is there; what a dead one left behind is removed.

    When others who look are in the way for too long, nothing is known: that counts as alive, and its beat decides."""
    path = _path(folder, owner)
    with _told(owner):
        if not path.exists():
            return False
        try:
            with locked(folder / LOOK_FILE, wait_s=LOOK_WAIT_S):
                return not _is_removed(path)
        except Unavailable:
            return True


def _is_removed(path: Path) -> bool:
    """Whether a file was nobody's, and is gone now; the caller holds the lock of those who look."""
    try:
        file = _locked(path)
    except FileNotFoundError:
        return True
    if file is None:
        return False
    os.close(file)  # before it is removed: some systems remove no open file
    path.unlink()
    return True


def _locked(path: Path, flags: int = 0) -> int | None:
    """The file, open and locked; None if a process holds it."""
    file = os.open(path, os.O_RDWR | flags | NO_FOLLOW, 0o600)
    try:
        try_lock(file)
    except OSError:
        os.close(file)
        return None
    return file


def _path(folder: Path, owner: str) -> Path:
    if not _owner.fullmatch(owner):
        raise Invalid(f"{owner[:100]!r} is no name of a worker: small letters, digits and hyphens, at most 100")
    return folder / f"{owner}.lock"


@contextmanager
def _told(owner: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"whether {owner} is there can't be known: {error.strerror}", hint="check the rights of handrail's folder"
        ) from error


def _let_go_of_all() -> None:
    for presence in tuple(_entered):
        presence._let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_of_all)
