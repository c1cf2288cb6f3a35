"""The checkpoint log: one sealed checkpoint per line, in a file beside the database, appended by one process at a time.

A last line without a line end is left from a crash while writing: it was never acknowledged, so it is ignored, and cut
off at the next append. Any other line that handrail would not write is reported as IntegrityBroken with its number.
The content of checkpoints is defined in domain/journal/checkpoint.py."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator
from itertools import count, islice
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_digest, checkpoint_from, checkpoint_line
from handrail.foundation.atomic_file import make_private_folder, sync_folder
from handrail.foundation.open_flags import BINARY
from handrail.storage.file_lock import locked

LOG_FILE: Final = "log.jsonl"
LOCK_FILE: Final = "lock"
BLOCK_BYTES: Final = 4_096
LINES_AT_ONCE: Final = 100

Answer = TypeVar("Answer")


class CheckpointFile:
    """The checkpoints in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._path = folder / LOG_FILE

    async def last(self) -> SealedCheckpoint | None:
        """The newest checkpoint, found from the end of the file."""
        return await asyncio.to_thread(_translated, self._last)

    async def all(self) -> AsyncIterator[SealedCheckpoint]:
        """Every checkpoint, oldest first; IntegrityBroken at the first that can't be read."""
        lines = _whole_lines(self._path)
        number = count(1)
        try:
            while batch := await asyncio.to_thread(_translated, lambda: list(islice(lines, LINES_AT_ONCE))):
                for line in batch:
                    yield _read(line, f"line {next(number)}")
        finally:
            lines.close()

    async def append(self, sealed: SealedCheckpoint, *, after: str) -> bool:
        """Append durably, unless the newest checkpoint's digest is not `after`: then False."""
        return await asyncio.to_thread(_translated, lambda: self._append(sealed, after))

    async def restart(self, sealed: SealedCheckpoint) -> None:
        """Move the log to another name, whatever its state, and start a new one with this checkpoint."""
        await asyncio.to_thread(_translated, lambda: self._restart(sealed))

    def _last(self) -> SealedCheckpoint | None:
        try:
            with self._path.open("rb") as file:
                line, _ = _last_line(file)
        except FileNotFoundError:
            return None
        return _read(line, "the last line") if line else None

    def _append(self, sealed: SealedCheckpoint, after: str) -> bool:
        make_private_folder(self._folder)
        with locked(self._folder / LOCK_FILE):
            return self._write(sealed, after)

    def _restart(self, sealed: SealedCheckpoint) -> None:
        make_private_folder(self._folder)
        with locked(self._folder / LOCK_FILE):
            if self._path.exists():
                aside = next(path for k in count(1) if not (path := self._path.with_name(f"log.{k}.jsonl")).exists())
                # Never deleted: an old log that does not fit is the evidence of what happened.
                self._path.rename(aside)
                sync_folder(self._folder)
            self._write(sealed, "")

    def _write(self, sealed: SealedCheckpoint, after: str) -> bool:
        """Append after the checkpoint with the digest `after`; the caller holds the lock."""
        is_new = not self._path.exists()
        with os.fdopen(os.open(self._path, os.O_CREAT | os.O_RDWR | BINARY, 0o600), "r+b") as file:
            line, end = _last_line(file)
            present = checkpoint_digest(_read(line, "the last line").checkpoint) if line else ""
            if present != after:
                return False  # another process sealed a checkpoint in the meantime: the log must not fork
            # What stands behind the last whole line is a write that was cut off by a crash. It was never acknowledged.
            file.truncate(end)
            file.seek(end)
            file.write(checkpoint_line(sealed))
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            self._path.chmod(0o600)
            sync_folder(self._folder)
        return True


def _translated(work: Callable[[], Answer]) -> Answer:
    """The result of some file work, with errors of the system raised as Unavailable."""
    try:
        return work()
    except OSError as error:
        raise Unavailable(
            f"the checkpoint log can't be used: {error.strerror}", hint="check the disk and the folder's permissions"
        ) from error


def _read(line: bytes, name: str) -> SealedCheckpoint:
    try:
        return checkpoint_from(line)
    except IntegrityBroken as error:
        raise IntegrityBroken(f"{name} of the checkpoint log is damaged: {error}") from error


def _whole_lines(path: Path) -> Generator[bytes, None, None]:
    try:
        with path.open("rb") as file:
            # A line without an end is still being written, or was cut off: in both cases it does not count yet.
            yield from (line for line in file if line.endswith(b"\n"))
    except FileNotFoundError:
        return


def _last_line(file: BinaryIO) -> tuple[bytes, int]:
    """The last whole line, and where the whole lines end; read from the end, a block at a time."""
    place, tail, size = file.seek(0, os.SEEK_END), b"", BLOCK_BYTES
    while place:
        step = min(size, place)
        place = file.seek(place - step)
        tail = file.read(step) + tail
        size *= 2  # a line can be long: reading stays linear in its length
        end = tail.rfind(b"\n") + 1
        start = tail.rfind(b"\n", 0, max(end - 1, 0)) + 1
        if end and (start or not place):
            return tail[start:end], place + end
    return b"", 0
