"""Limits of calls that hold over all nodes: the store counts, where it is shared. On one machine the throttle does.

Async. A call asks before it starts; that it has ended is noted soon after, beside what else is done."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from msgspec import Struct

from handrail.domain.errors import HandrailError
from handrail.domain.project import scoped
from handrail.domain.scheduling.call_rate import pace_of
from handrail.engine.tool import CallLimits

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


@dataclass
class FleetLimits:
    """The limits of one worker's calls, counted with those of all others."""

    table: LimitTable
    owner: str
    project: str
    _leaving: set[asyncio.Task[None]] = field(default_factory=set)

    async def enter(self, limits: Sequence[CallLimits]) -> int:
        """Let a call start (0), or say after how many milliseconds to ask again."""
        return await self.table.enter(self.owner, [self._fleet_limit(one) for one in limits])

    def leave(self, limits: Sequence[CallLimits]) -> None:
        """Note that a call has ended."""
        counted = [self._fleet_limit(one) for one in limits if one.concurrency is not None]
        if counted:
            # Not waited for: a call that has ended must not wait for a database to say so.
            task = asyncio.get_running_loop().create_task(self._leave(counted))
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    async def _leave(self, limits: Sequence[FleetLimit]) -> None:
        try:
            await self.table.leave(self.owner, limits)
        except HandrailError as error:
            # It counts as under way until this worker is retired: too few calls are made, never too many.
            log.warning("that a call has ended could not be noted for other nodes: %s", error)

    def _fleet_limit(self, limit: CallLimits) -> FleetLimit:
        name = scoped(self.project, limit.name)
        if limit.rate is None:
            return FleetLimit(name, limit.concurrency)
        pace = pace_of(limit.rate)
        return FleetLimit(name, limit.concurrency, pace.calls, pace.per_ms)
