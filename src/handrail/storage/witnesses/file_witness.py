"""A file as witness: whole checkpoints, one per line, appended and synced.

Best on another machine's disk, or append-only (`chattr +a`). Its folder must exist: a backup disk that is not mounted
must not be mistaken for an empty one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from handrail.domain.errors import HandrailError, Unavailable
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_line
from handrail.domain.journal.witnessed import witnessed_from
from handrail.foundation.open_flags import BINARY
from handrail.storage.witnesses.one_store import require_same_store

TAIL_BYTES: int = 1_000_000
"""How much of the end is read to see whose checkpoints are in the file."""


@dataclass(frozen=True)
class FileWitness:
    """A file that grows."""

    name: str
    path: Path

    async def copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        """Append these checkpoints, durably."""
        await asyncio.to_thread(self._copy, sealed)

    def _copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        try:
            require_same_store(_last_line(self.path), sealed, self.name)
            file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | BINARY, 0o600)
            with os.fdopen(file, "ab") as stream:
                torn = b"" if _ends_whole(self.path) else b"\n"  # left by a crash: the new line must stand alone
                stream.write(torn + b"".join(map(checkpoint_line, sealed)))
                stream.flush()
                os.fsync(file)
        except OSError as error:
            raise Unavailable(
                f"{self.path} can't be written: {error.strerror}", hint="create its folder, or check its permissions"
            ) from error


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            return file.read(TAIL_BYTES)
    except FileNotFoundError:
        return b""


def _ends_whole(path: Path) -> bool:
    tail = _tail(path)
    return not tail or tail.endswith(b"\n")


def _last_line(path: Path) -> bytes:
    """The last line that has a checkpoint, of those that are not too far from the end."""
    for line in reversed(_tail(path).splitlines()):
        try:
            if witnessed_from(line) is not None:
                return line
        except HandrailError:
            continue  # torn by a crash, or cut because reading starts in the middle
    return b""
