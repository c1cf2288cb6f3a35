"""The checkpoint log of a shared store: a table beside the events, appended by one node at a time.

A checkpoint is appended only to the one whose digest it follows, so that the log can't fork. Each node also has a copy
in its own home (storage/checkpoint_log.py): who replaces the database can't replace those."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_digest, checkpoint_from, checkpoint_line
from handrail.storage.postgres import queries
from handrail.storage.postgres.connections import Connections

PAGE: Final = 100
SEALER: Final = "sealer"
TURN_S: Final = 30.0
WAIT_S: Final = 0.1
WAITS_MAX: Final = 600


class CheckpointTable:
    """The checkpoints in a PostgreSQL store."""

    def __init__(self, connections: Connections, node: str) -> None:
        self._connections = connections
        self._node = node

    async def last(self) -> SealedCheckpoint | None:
        """The newest checkpoint."""
        rows = await self._connections.ask(queries.LAST_CHECKPOINT)
        return _read(rows[0][0], "the last row") if rows else None

    async def all(self) -> AsyncIterator[SealedCheckpoint]:
        """Every checkpoint of the present log, oldest first; IntegrityBroken at the first that can't be read."""
        after = 0
        while rows := await self._connections.ask(queries.CHECKPOINTS, after, PAGE):
            for number, line in rows:
                yield _read(line, f"row {number}")
                after = number

    async def append(self, sealed: SealedCheckpoint, *, after: str) -> bool:
        """Append durably; False if the newest checkpoint's digest is not `after`."""
        rows = await self._connections.ask(queries.PUT_CHECKPOINT, after, *_columns(sealed))
        return bool(rows)

    async def restart(self, sealed: SealedCheckpoint) -> None:
        """Set the log aside, in any state, and start a new one with this checkpoint."""
        await self._connections.ask(queries.RESTART_CHECKPOINTS, *_columns(sealed))

    async def has(self, sealed: SealedCheckpoint) -> bool:
        """Whether the present log has this checkpoint in its place."""
        number, digest = sealed.checkpoint.number, checkpoint_digest(sealed.checkpoint)
        return bool((await self._connections.ask(queries.HAS_CHECKPOINT, number, digest))[0][0])

    @contextlib.asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Be the one that signs, from here to the end of the block; wait while another does."""
        # Signing is done by one node at a time: two checkpoints after the same one would be a fork of the log. A turn
        # ends by itself, because the node that has it may die.
        for _ in range(WAITS_MAX):
            if await self._connections.ask(queries.TAKE_TURN, SEALER, self._node, TURN_S):
                break
            await asyncio.sleep(WAIT_S)
        else:
            raise Unavailable("another node has been signing for too long", hint="handrail tries again by itself")
        try:
            yield
        finally:
            await self._connections.ask(queries.END_TURN, SEALER, self._node)


def _columns(sealed: SealedCheckpoint) -> tuple[int, str, bytes]:
    return sealed.checkpoint.number, checkpoint_digest(sealed.checkpoint), checkpoint_line(sealed)


def _read(line: bytes, name: str) -> SealedCheckpoint:
    try:
        return checkpoint_from(line)
    except IntegrityBroken as error:
        raise IntegrityBroken(f"{name} of the checkpoint log is damaged: {error}") from error
