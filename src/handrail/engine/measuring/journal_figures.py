"""Follows the journal and adds its events up to figures, for as long as somebody exports them.

Async; writes nothing, and nothing waits for it: appends are as fast as without it. It starts at the journal's end, as
counters do; what other processes write is counted as well."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final, Protocol

from handrail.domain.errors import HandrailError, IntegrityBroken, NotFound
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import RUN_PREFIX, Entry, RunStarted
from handrail.domain.journal.mark import START
from handrail.domain.metrics.event_figures import NO_FACTS, EventFigures, StepFacts
from handrail.domain.metrics.figures import Figures
from handrail.engine.journal import Archive, Journal, ProjectionReader, mark_after
from handrail.engine.measuring.step_lookup import StepLookup, tool_of, undo_of

LOOK_S: Final = 1.0
BATCH: Final = 500
CATCH_UP_S: Final = 2.0
"""How long a reader of the figures waits for them to be complete; then it gets what there is."""

log = logging.getLogger(__name__)


class FollowedStore(Journal, ProjectionReader, Archive, Protocol):
    """What is followed."""


class JournalFigures:
    """The figures of one store since it was opened."""

    def __init__(self, store: FollowedStore, figures: Figures) -> None:
        self._store = store
        self._fold = EventFigures(figures)
        self._lookup = StepLookup(store)
        self._mark = START
        self._lock = asyncio.Lock()
        self._poke = asyncio.Event()
        self._deafen: Callable[[], None] = lambda: None
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start to follow, at the end."""
        self._mark = await self._store.end()
        self._deafen = self._store.listen(self._poke.set)
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def close(self) -> None:
        """Stop."""
        self._deafen()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def behind(self) -> int:
        """Count what is new, as far as time allows; how many events are left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_S):
                await self._read()
        return (await self._store.end()).events - self._mark.events

    async def _follow(self) -> None:
        while True:
            try:
                await self._read()
            except HandrailError as error:
                log.info("the figures wait for the store: %s", error)
            self._poke.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._poke.wait()
            await asyncio.sleep(LOOK_S / 10)  # a store that is written all the time is still looked at now and then

    async def _read(self) -> None:
        async with self._lock:  # an event must not be counted twice
            if self._mark.covers(await self._store.end()):
                return
            async for batch in self._store.scan(after=self._mark, size=BATCH):
                for placed in batch:
                    await self._take(placed.record)
                    # One by one: if this is cancelled in the middle of a batch, none of it may be counted again.
                    self._mark = mark_after(self._mark, [placed])
                await asyncio.sleep(0)  # others have their turn between batches

    async def _take(self, record: Record) -> None:
        try:
            entry = entry_of(record)
        except HandrailError:  # a damaged event is what `journal verify` is for
            return
        try:
            facts = await self._facts(record, entry)
        except (IntegrityBroken, NotFound):  # it happened all the same, whatever its definition says
            facts = NO_FACTS
        self._fold.take(record.kind, entry, facts)

    async def _facts(self, record: Record, entry: Entry) -> StepFacts:
        if isinstance(entry.event, RunStarted):
            self._lookup.note(record.stream, entry.event)
        if not record.step or not record.stream.startswith(RUN_PREFIX):
            return NO_FACTS
        pinned = await self._lookup.run(record.stream)
        if pinned is None:
            return NO_FACTS
        step = await self._lookup.step(pinned, record.step)
        return StepFacts(step.kind.value, tool_of(step, pinned), undo_of(step, pinned))
