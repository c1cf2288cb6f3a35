"""Limits of calls that hold over all nodes: the store counts, where it is shared. On one machine the throttle does.

Async. A call asks before it starts; that it has ended is noted soon after, beside what else is done. If the store did
not answer, it is unknown whether a call was counted, or still is. Such a limit is counted again from nothing once this
worker has no call under it: a call that counts for all time would keep the tool from all nodes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct

from handrail.domain.errors import HandrailError
from handrail.domain.project import scoped
from handrail.domain.scheduling.call_rate import pace_of
from handrail.engine.tool import CallLimits

AGAIN_S: Final = 1.0
"""How often a limit is looked at that may be counted wrongly."""

log = logging.getLogger(__name__)


class FleetLimit(Struct, frozen=True):
    """One limit: of a tool or a server of a project."""

    name: str
    most: int | None = None
    """How many calls may be under way at once."""
    calls: int | None = None
    """How many may start in `per_ms` milliseconds."""
    per_ms: int = 1


class LimitTable(Protocol):
    """Where all nodes count their calls."""

    async def enter(self, owner: str, limits: Sequence[FleetLimit]) -> int:
        """Let a call start that is under these limits (0), or say after how many milliseconds to ask again."""
        ...

    async def leave(self, owner: str, limits: Sequence[FleetLimit]) -> None:
        """Note that a call has ended."""
        ...

    async def clear(self, owner: str, names: Sequence[str]) -> None:
        """Note that this worker has no call under way under these limits."""
        ...


@dataclass
class FleetLimits:
    """The limits of one worker's calls, counted with those of all others."""

    table: LimitTable
    owner: str
    project: str
    _under_way: Counter[str] = field(default_factory=Counter)
    """By limit: the calls of this worker, those included whose start or end is just being noted."""
    _unsure: set[str] = field(default_factory=set)
    """Limits under which the store may count calls that there are not."""
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _leaving: set[asyncio.Task[None]] = field(default_factory=set)
    _settling: asyncio.Task[None] | None = None

    async def enter(self, limits: Sequence[CallLimits]) -> int:
        """Let a call start (0), or say after how many milliseconds to ask again."""
        asked = [self._fleet_limit(one) for one in limits]
        names = [one.name for one in asked if one.most is not None]
        if not self._unsure.isdisjoint(names):
            await self._clear(names)
        self._under_way.update(names)
        is_in = False
        try:
            wait_ms = await self.table.enter(self.owner, asked)
            is_in = not wait_ms
        except BaseException:  # also when called off: what was sent may have been counted
            self._doubt(names)
            raise
        finally:
            if not is_in:
                self._under_way.subtract(names)
        return wait_ms

    def leave(self, limits: Sequence[CallLimits]) -> None:
        """Note that a call has ended."""
        counted = [self._fleet_limit(one) for one in limits if one.concurrency is not None]
        if counted:
            # Not waited for: a call that has ended must not wait for a database to say so.
            task = asyncio.get_running_loop().create_task(self._leave(counted))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    def close(self) -> None:
        """Count nothing more: what this worker had under way is free when it is retired."""
        if self._settling is not None:
            self._settling.cancel()

    async def _leave(self, limits: Sequence[FleetLimit]) -> None:
        names = [one.name for one in limits]
        try:
            await self.table.leave(self.owner, limits)
        except HandrailError as error:
            log.warning("that a call has ended could not be noted for other nodes: %s; retrying", error)
            self._doubt(names)
        finally:
            self._under_way.subtract(names)

    def _doubt(self, names: Collection[str]) -> None:
        self._unsure.update(names)
        if names and (self._settling is None or self._settling.done()):
            # By itself: other nodes wait for it, while this one may have no further call to make.
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        while self._unsure:
            await asyncio.sleep(AGAIN_S)
            try:
                await self._clear(self._unsure)
            except HandrailError as error:
                log.info("calls under way could not be counted again: %s", error)

    async def _clear(self, names: Collection[str]) -> None:
        """Count again from nothing what may be counted wrongly, unless a call of this worker is under way there."""
        # One at a time: a call that starts meanwhile must not be forgotten by the second one.
        async with self._turn:
            wrong = [one for one in names if one in self._unsure and not self._under_way[one]]
            if wrong:
                await self.table.clear(self.owner, wrong)
                self._unsure.difference_update(wrong)

    def _fleet_limit(self, limit: CallLimits) -> FleetLimit:
        name = scoped(self.project, limit.name)
        if limit.rate is None:
            return FleetLimit(name, limit.concurrency)
        pace = pace_of(limit.rate)
        return FleetLimit(name, limit.concurrency, pace.calls, pace.per_ms)
