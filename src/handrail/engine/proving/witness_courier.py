"""Copies signed checkpoints to witnesses, outside HANDRAIL_HOME: who replaces key, log and database there is seen.

Async; owns the protocols of witnesses (storage/witnesses/). Nothing here is in the way of an append or of signing:
copies are made in the background, a failure is logged and tried again, and each witness gets all that it lacks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.errors import HandrailError
from handrail.domain.journal.checkpoint import SealedCheckpoint, checkpoint_digest
from handrail.engine.passed_in import Clock
from handrail.engine.proving.checkpointer import CheckpointLog

BATCH: Final = 100
RETRY_S: Final = 2.0
RETRY_S_MAX: Final = 300.0
CLOSE_S: Final = 8.0
"""How long the end of a process waits for copies; what is missing is copied by the next process."""

log = logging.getLogger(__name__)


class CopyState(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far a witness is."""

    number: int = 0
    digest: str = ""
    """The newest checkpoint that was copied; empty: none."""
    at: int = 0
    """When it was copied."""
    failed_at: int = 0
    reason: str = ""
    """Why the last try failed; empty: it did not."""


class Witness(Protocol):
    """A place that keeps checkpoints."""

    @property
    def name(self) -> str:
        """Its target, as people wrote it."""
        ...

    async def copy(self, sealed: Sequence[SealedCheckpoint]) -> None:
        """Keep these checkpoints, oldest first; a HandrailError if it can't be known that all were kept."""
        ...


class CopyRegister(Protocol):
    """Where it is noted how far each witness is."""

    async def all(self) -> Mapping[str, CopyState]:
        """How far each witness is, by name."""
        ...

    async def put(self, name: str, state: CopyState) -> None:
        """Note how far a witness is."""
        ...


@dataclass
class WitnessCourier:
    """Copies the checkpoints of one log to all its witnesses."""

    log: CheckpointLog
    witnesses: Sequence[Witness]
    register: CopyRegister
    clock: Clock
    retry_s: float = RETRY_S
    close_s: float = CLOSE_S
    _is_wanted: bool = False
    _task: asyncio.Task[None] | None = None
    _closing: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        """There may be something to copy: do it soon, in the background."""
        if self.witnesses:
            self._is_wanted = True
            self._task = self._task or asyncio.create_task(self._copy_while_wanted())

    async def close(self) -> None:
        """Copy what is missing, once, within a bounded time."""
        self._closing.set()
        if self._task is None:
            return
        try:
            await asyncio.wait_for(self._task, self.close_s)
        except TimeoutError:
            log.warning("witnesses did not answer in time: the next process copies what they do not have")

    async def _copy_while_wanted(self) -> None:
        wait_s = self.retry_s
        while self._is_wanted:
            self._is_wanted = False
            if await self._copy_to_all():
                wait_s = self.retry_s
            elif self._closing.is_set():
                break
            else:
                self._is_wanted = True
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), wait_s)
                wait_s = min(2 * wait_s, RETRY_S_MAX)
        self._task = None

    async def _copy_to_all(self) -> bool:
        # All at once: one that does not answer must not keep the others from their copies.
        return all(await asyncio.gather(*(self._copy_to(witness) for witness in self.witnesses)))

    async def _copy_to(self, witness: Witness) -> bool:
        """Copy all that this witness does not have; False if that failed."""
        state = CopyState()
        try:
            state = (await self.register.all()).get(witness.name, state)
            missing = await self._missing(state)
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                await witness.copy(batch)
                # Noted after each batch: a witness that fails in the middle is not sent everything again.
                newest = batch[-1].checkpoint
                state = CopyState(number=newest.number, digest=checkpoint_digest(newest), at=self.clock())
                await self.register.put(witness.name, state)
        except HandrailError as error:
            log.warning("no checkpoint could be copied to %s: %s (%s)", witness.name, error, error.hint)
            await self._note_failure(witness.name, replace(state, failed_at=self.clock(), reason=str(error)))
            return False
        return True

    async def _note_failure(self, name: str, state: CopyState) -> None:
        try:
            await self.register.put(name, state)
        except HandrailError as error:
            log.warning("how far %s is could not be noted: %s (%s)", name, error, error.hint)

    async def _missing(self, state: CopyState) -> list[SealedCheckpoint]:
        """The checkpoints after the one that was copied last; all, if the log was restarted since."""
        last = await self.log.last()
        if last is None or checkpoint_digest(last.checkpoint) == state.digest:
            return []
        if state.digest and last.checkpoint.previous == state.digest:
            return [last]  # the usual case, without reading the whole log
        every = [sealed async for sealed in self.log.all()]
        digests = [checkpoint_digest(sealed.checkpoint) for sealed in every]
        return every[digests.index(state.digest) + 1 :] if state.digest in digests else every
