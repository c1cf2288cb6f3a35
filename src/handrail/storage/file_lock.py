"""Locks between processes, each on an empty file. The system releases them when a process crashes.

What is protected by a lock is up to the caller."""

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
    """Hold the lock on this file; closing the file, even by a crash, releases it.

    The lock file is always empty: on some systems others can't read a locked file, so data files are never locked."""
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
                # Polled, not waited for: a lock that blocks can't be given up when the time is over.
                time.sleep(LOCK_RETRY_S)
        yield
    finally:
        os.close(file)
