"""Walks through the lanes of a snapshot in the order of positions, so that every stream and every lane is in order.

Async; reads. Lanes are merged here, not in the database: each part is a range of one index."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from heapq import heappop, heappush, heapreplace
from typing import Any, Final

from handrail.domain.journal.mark import Mark
from handrail.storage.postgres import queries
from handrail.storage.postgres.connections import Connection

PART_MIN: Final = 64
ERA_BITS: Final = 7


def era_of(lane: int) -> int:
    """The era of a lane: its id says it."""
    return lane >> ERA_BITS


class LaneReader:
    """The next events of one lane, a part at a time."""

    def __init__(self, connection: Connection, lane: int, after: int, until: int) -> None:
        self._connection = connection
        self._lane, self._after, self._until = lane, after, until
        self._part: Sequence[Any] = ()
        self._place = 0

    async def next_row(self, size: int) -> Any:
        """The next event; None at the end. A part is fetched if there is nothing left of the last."""
        if self._place == len(self._part):
            if self._after >= self._until:
                return None
            self._part = await self._connection.fetch(
                queries.PART_OF_LANE, era_of(self._lane), self._lane, self._after, self._until, size
            )
            self._place = 0
            if not self._part:
                return None
            self._after = self._part[-1][2]
        self._place += 1
        return self._part[self._place - 1]


async def walk(connection: Connection, after: Mark, until: Mark, size: int) -> AsyncIterator[list[Any]]:
    """The rows between two marks, in batches, in the order of their positions."""
    known = after.counts
    lanes = [LaneReader(connection, lane, known.get(lane, 0), count) for lane, count in until.lanes]
    # Enough of each lane to fill a batch together, not a batch of each: there may be a hundred lanes.
    part = max(PART_MIN, size // max(1, len(lanes)))
    batch: list[Any] = []
    async for row in _merged(lanes, part):
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


async def _merged(lanes: Sequence[LaneReader], part: int) -> AsyncIterator[Any]:
    """The rows of lanes, each in order, by position."""
    heap: list[tuple[int, int, Any]] = []
    for index, lane in enumerate(lanes):
        if (row := await lane.next_row(part)) is not None:
            heappush(heap, (row[0], index, row))
    while heap:
        _, index, row = heap[0]
        yield row
        # Only this lane has moved on, so one step of the heap restores the order over all of them.
        following = await lanes[index].next_row(part)
        if following is None:
            heappop(heap)
        else:
            heapreplace(heap, (following[0], index, following))
