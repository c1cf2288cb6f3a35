"""Private files: for the owner's eyes only, whole after a power cut, and written by one process at a time.

What is in them is the caller's business."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from handrail.domain.errors import Unavailable

LOCK_WAIT_S: Final = 10.0
LOCK_RETRY_S: Final = 0.005
BINARY: Final = getattr(os, "O_BINARY", 0)  # without it, some systems write line ends of their own

if sys.platform == "win32":
    import msvcrt

    def try_lock(file: int) -> None:
        """Lock an open file for this process alone, or raise OSError at once."""
        msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def try_lock(file: int) -> None:
        """Lock an open file for this process alone, or raise OSError at once."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(path: Path, *, wait_s: float = LOCK_WAIT_S) -> Iterator[None]:
    """Hold the lock that this file stands for; closing the file, even by a crash, gives it back.

    The file holds nothing: on some systems a locked file can't be read by others, so what is read is never locked."""
    file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                try_lock(file)
                break
            except OSError as error:
                if time.monotonic() >= deadline:
                    raise Unavailable(f"another process holds {path.name} in {path.parent.name}") from error
                time.sleep(LOCK_RETRY_S)
        yield
    finally:
        os.close(file)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, if they are missing, for the owner only whatever the umask is."""
    for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)
        missing.chmod(0o700)
        sync_folder(missing.parent)


def write_whole(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put a file in place, complete and synced, or not at all; the caller holds the lock."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)  # left behind by a crash
    file = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | BINARY, mode)
    with os.fdopen(file, "wb") as writer:
        writer.write(content)
        writer.flush()
        os.fsync(file)
    part.chmod(mode)
    part.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a new name in a folder survive a power cut."""
    if sys.platform == "win32":  # folders can't be synced there, and need not be
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
