"""Presence: whether the process that owns leases is still alive on this machine, shown by a lock on a file.

The operating system releases the lock when the process dies, however it dies; a process that is only paused keeps it.
The leases alone decide who may claim which run (engine/running/lease.py); presence only saves waiting for a dead owner.

A forked process must not keep its parent's lock. Programs that are started do not inherit the file (Python opens files
with O_CLOEXEC), and a fork made by Python closes its copy at once. Only a fork made outside of Python keeps the lock
for as long as the child lives: the parent's runs are then taken over when its beat stops."""

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
"""Held while a process enters or looks: so a locked presence file means its owner, never another process that looks."""

_owner = re.compile("[a-z0-9-]{1,100}")


class ProcessPresence:
    """The presence of this process; starts with `enter`, ends with `leave` or with the process."""

    def __init__(self, folder: Path, owner: str, file: int) -> None:
        self._folder = folder
        self._owner = owner
        self._file: int | None = file
        _entered.add(self)

    @classmethod
    def enter(cls, folder: Path, owner: str) -> Self:
        """Be present under this name for as long as the process lives; Conflict if another process already is."""
        path = _path(folder, owner)
        with _translated_errors(owner):
            make_private_folder(folder)
            with locked(folder / LOOK_FILE, wait_s=LOOK_WAIT_S):
                # Under the lock for looking: otherwise a process that looks could hold the file for a moment, and this
                # one would believe that its name is taken.
                file = _locked(path, os.O_CREAT)
        if file is None:
            raise Conflict(f"another process already works as {owner}", hint="choose another name for this one")
        return cls(folder, owner, file)

    def is_alive(self, owner: str) -> bool:
        """Whether the process of an owner is alive, this one included."""
        return is_alive(self._folder, owner)

    def leave(self) -> None:
        """Stop being present."""
        if self._file is None:
            return
        self._release()
        # The lock is gone with the file descriptor; what is left is to remove the file.
        with suppress(Unavailable):  # if this fails, the next process that looks removes the file
            is_alive(self._folder, self._owner)

    def _release(self) -> None:
        """Close this process's copy of the file; closing the last copy releases the lock."""
        _entered.discard(self)
        if self._file is not None:
            os.close(self._file)
            self._file = None


_entered: Final[set[ProcessPresence]] = set()
"""Kept here so that a fork finds them, and so that dropping a ProcessPresence does not end it."""


def is_alive(folder: Path, owner: str) -> bool:
    """Whether the process of an owner is alive; the file of a dead one is removed.

    If other processes that look block this one for too long, the owner counts as alive, and its beat decides."""
    path = _path(folder, owner)
    with _translated_errors(owner):
        if not path.exists():
            return False
        try:
            with locked(folder / LOOK_FILE, wait_s=LOOK_WAIT_S):
                return not _is_removed(path)
        except Unavailable:
            return True


def _is_removed(path: Path) -> bool:
    """Whether a file had no owner and is removed now; the caller holds the lock for looking."""
    try:
        file = _locked(path)
    except FileNotFoundError:
        return True
    if file is None:
        return False
    os.close(file)  # first: some systems can't remove an open file
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
        raise Invalid(
            f"{owner[:100]!r} is not a worker name", hint="use small letters, digits and hyphens, at most 100 in all"
        )
    return folder / f"{owner}.lock"


@contextmanager
def _translated_errors(owner: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"can't tell whether {owner} is alive: {error.strerror}", hint="check the permissions of handrail's folder"
        ) from error


def _release_all() -> None:
    for presence in tuple(_entered):
        presence._release()


# A lock belongs to the open file, which a forked child shares: a child that outlives its parent would keep it present.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_all)
