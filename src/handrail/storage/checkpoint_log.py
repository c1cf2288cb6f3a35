"""The checkpoint log: one sealed checkpoint a line, in a file beside the database, appended by one process at a time.

A last line without its end is a crash while writing: nobody was told of it, so it is ignored, and cut at the next
append. Any other line that is not as handrail writes is told as IntegrityBroken, with its number. What checkpoints say
is domain/checkpoint.py's business."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Generator
from itertools import count, islice
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

from handrail.domain.checkpoint import SealedCheckpoint, checkpoint_digest, checkpoint_from, checkpoint_line
from handrail.domain.errors import IntegrityBroken, Unavailable
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
        return await asyncio.to_thread(_told, self._last)

    async def all(self) -> AsyncIterator[SealedCheckpoint]:
        """Every checkpoint, oldest first; IntegrityBroken at the first that can't be read."""
        lines = _whole_lines(self._path)
        number = count(1)
        try:
            while batch := await asyncio.to_thread(_told, lambda: list(islice(lines, LINES_AT_ONCE))):
                for line in batch:
                    yield _read(line, f"line {next(number)}")
        finally:
            lines.close()

    async def append(self, sealed: SealedCheckpoint, *, after: str) -> bool:
        """Append durably, unless the newest checkpoint's digest is not `after`: then False."""
        return await asyncio.to_thread(_told, lambda: self._append(sealed, after))

    async def restart(self, sealed: SealedCheckpoint) -> None:
        """Set the log aside under another name, whatever its state, and begin another with this checkpoint."""
        await asyncio.to_thread(_told, lambda: self._restart(sealed))

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
                self._path.rename(aside)
                sync_folder(self._folder)
            self._write(sealed, "")

    def _write(self, sealed: SealedCheckpoint, after: str) -> bool:
        """Append behind the line that `after` stands for, with the lock held: nobody else is writing now."""
        is_new = not self._path.exists()
        with os.fdopen(os.open(self._path, os.O_CREAT | os.O_RDWR | BINARY, 0o600), "r+b") as file:
            line, end = _last_line(file)
            present = checkpoint_digest(_read(line, "the last line").checkpoint) if line else ""
            if present != after:
                return False  # another process has sealed meanwhile: a fork would help nobody
            file.truncate(end)
            file.seek(end)
            file.write(checkpoint_line(sealed))
            file.flush()
            os.fsync(file.fileno())
        if is_new:
            self._path.chmod(0o600)
            sync_folder(self._folder)
        return True


def _told(work: Callable[[], Answer]) -> Answer:
    """What goes wrong below the log, told as an error of ours."""
    try:
        return work()
    except OSError as error:
        raise Unavailable(
            f"the checkpoint log can't be used: {error.strerror}", hint="look after the disk and the folder's rights"
        ) from error


def _read(line: bytes, name: str) -> SealedCheckpoint:
    try:
        return checkpoint_from(line)
    except IntegrityBroken as error:
        raise IntegrityBroken(f"{name} of the checkpoint log is damaged: {error}") from error


def _whole_lines(path: Path) -> Generator[bytes, None, None]:
    try:
        with path.open("rb") as file:
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
