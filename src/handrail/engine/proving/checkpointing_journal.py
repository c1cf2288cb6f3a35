"""A journal that has a checkpoint signed at the end of each run and after every `every` events.

Async; wraps a Journal. An append never waits for a checkpoint, and a failed checkpoint never fails an append."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from handrail.domain.errors import HandrailError
from handrail.domain.journal.chain import Record
from handrail.domain.journal.checkpoint import Checkpoint
from handrail.domain.journal.projection import Change
from handrail.engine.journal import Journal
from handrail.engine.running.lease import Lease

ENDS: Final = frozenset(
    {"run_completed", "run_failed", "run_cancelled", "run_compensated", "run_compensation_failed", "plan_saved"}
)
REST_S: Final = 1.0
"""The shortest time between two checkpoints: many runs that end at once share one."""

log = logging.getLogger(__name__)


class Sealer(Protocol):
    """Signs a checkpoint of the store's current state; see checkpointer.py."""

    async def seal(self) -> Checkpoint | None:
        """A checkpoint of what changed since the last one, or None."""
        ...


@dataclass
class CheckpointingJournal:
    """Passes everything on to the journal, and asks for a checkpoint when one is due."""

    journal: Journal
    checkpointer: Sealer
    every: int
    rest_s: float = REST_S
    unsealed: int = 0
    """How many events were appended since the last checkpoint."""
    problem: HandrailError | None = None
    """Why the last checkpoint could not be signed."""
    _is_wanted: bool = False
    _task: asyncio.Task[None] | None = None
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def append(self, records: Sequence[Record], change: Change, *, lease: Lease | None = None) -> None:
        """Append; soon after the end of a run, or after enough events, a checkpoint follows."""
        await self.journal.append(records, change, lease=lease)
        # After the append, and never inside it: a key that can't sign must not stop the work.
        self.unsealed += len(records)
        if self.unsealed >= self.every or any(record.kind in ENDS for record in records):
            self._is_wanted = True
            self._task = self._task or asyncio.create_task(self._seal_while_wanted())

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        """The records of a stream with n > after, in order."""
        return await self.journal.read(stream, after=after, limit=limit)

    async def definition(self, content_hash: str) -> bytes | None:
        """The canonical text of a definition that was ever pinned or saved."""
        return await self.journal.definition(content_hash)

    async def close(self) -> None:
        """Sign a checkpoint of what is not sealed yet."""
        self._closing.set()
        if self._task is not None:
            await self._task
        if self.unsealed:
            await self._seal()

    async def _seal_while_wanted(self) -> None:
        while self._is_wanted:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), self.rest_s)
            self._is_wanted = False
            await self._seal()
        self._task = None

    async def _seal(self) -> None:
        # Before signing: events that are appended meanwhile belong to the next checkpoint.
        sealing, self.unsealed = self.unsealed, 0
        try:
            checkpoint = await self.checkpointer.seal()
        except HandrailError as error:
            self.problem = error
            self.unsealed += sealing  # so that the next one is not later than it should be
            log.warning("no checkpoint could be signed: %s (%s)", error, error.hint)
        else:
            self.problem = None
            if checkpoint is not None:
                log.info("signed checkpoint %d over %d events", checkpoint.number, checkpoint.events)
