"""Lanes: how a store that many machines write to numbers its events, in front of the store in memory.

An append takes a lane that is free, is done a while later on the other side, whether or not its process still lives,
and gets its place in its lane at that moment. Other lanes go on meanwhile: who reads by marks must miss nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from handrail.domain.errors import HandrailError
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.mark import START, Mark
from handrail.domain.journal.projection import Change
from handrail.engine.journal import Placed, mark_after
from handrail.engine.running.lease import Lease
from handrail.storage.memory import MemoryStore
from simulation.outside import Outside

LANES: Final = 3
FIRST: Final = 1
LOOK_S: Final = 0.002


class Lanes:
    """The lanes of one store."""

    def __init__(self, store: MemoryStore, outside: Outside) -> None:
        self.store = store
        self.outside = outside
        self._lanes: dict[int, list[Placed]] = {FIRST + number: [] for number in range(LANES)}
        self._taken: set[int] = set()
        self._count = 0

    async def append(
        self, records: Sequence[Record], change: Change, lease: Lease | None, appended: Callable[[], None]
    ) -> None:
        """Append in some lane; `appended` is called when it is in the store, also if its process is gone by then."""
        while not (free := sorted(self._lanes.keys() - self._taken)):
            await asyncio.sleep(LOOK_S)
        loop, outside = asyncio.get_running_loop(), self.outside
        lane = outside.random.choice(free)
        self._taken.add(lane)
        answer: asyncio.Future[None] = loop.create_future()
        done = self._commit(lane, records, change, lease, appended, answer)
        loop.create_task(done, context=outside.context)
        await answer

    async def _commit(
        self,
        lane: int,
        records: Sequence[Record],
        change: Change,
        lease: Lease | None,
        appended: Callable[[], None],
        answer: asyncio.Future[None],
    ) -> None:
        calm = self.outside.is_calm
        await asyncio.sleep(0.0 if calm else self.outside.random.choice((0.0, 0.0, 0.001, 0.02, 0.3)))
        error: HandrailError | None = None
        try:
            await self.store.append(records, change, lease=lease)
            self._number(lane, records)
            appended()
        except HandrailError as refused:
            error = refused
        self._taken.discard(lane)
        if answer.done():
            return
        if error is None:
            answer.set_result(None)
        else:
            answer.set_exception(error)

    def _number(self, lane: int, records: Sequence[Record]) -> None:
        for record in records:
            self._count += 1
            self._lanes[lane].append(Placed(self._count, record, lane, len(self._lanes[lane]) + 1))

    def end(self) -> Mark:
        """The mark of everything in the store."""
        return Mark.of({lane: len(placed) for lane, placed in self._lanes.items()})

    def since(self, after: Mark) -> list[Placed]:
        """What is behind a mark, lane by lane."""
        known = after.counts
        return [one for lane, placed in self._lanes.items() for one in placed[known.get(lane, 0) :]]

    async def heads(self, after: Mark) -> tuple[Mark, list[Head]]:
        """The mark of everything, and the ends of all streams that changed behind a mark."""
        changed = {one.record.stream for one in self.since(after)}
        _, heads = await self.store.heads()
        return self.end(), [head for head in heads if head.stream in changed]


class NewsReader:
    """Asks again and again what is new, and keeps a mark, as feeds and checkpoints do."""

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes
        self.seen: list[bytes] = []
        self._mark = START

    def look(self) -> None:
        """Take in what is new."""
        batch = self.lanes.since(self._mark)
        self.seen += [one.record.hash for one in batch]
        self._mark = mark_after(self._mark, batch)

    def flaws(self) -> list[str]:
        """What it was not given, and what it was given twice."""
        written = [record.hash for record in self.lanes.store._places]
        missed, again = len(set(written) - set(self.seen)), len(self.seen) - len(set(self.seen))
        return [f"{missed} events were no news, {again} were news twice"] if missed or again else []
