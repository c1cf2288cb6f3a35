"""Limits of calls over all nodes of a PostgreSQL store, by the clock of the database alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from handrail.engine.fleet.limits import FleetLimit
from handrail.storage.postgres.connections import Connections
from handrail.storage.postgres.texts import stored

ENTER: Final = "select handrail.enter_call($1, $2, $3, $4, $5)"
"""Let a call start, or say when to ask again."""

LEAVE: Final = "select handrail.leave_call($1, $2)"
"""Note that a call has ended."""

CLEAR: Final = "delete from handrail.calls_under_way where owner = $1 and name = any($2::text[])"
"""Note that a worker has no call under way."""


class PostgresLimits:
    """How many calls all nodes make together."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def enter(self, owner: str, limits: Sequence[FleetLimit]) -> int:
        """Let a call start (0), or say after how many milliseconds to ask again."""
        rows = await self._connections.ask_once(
            ENTER,
            stored(owner),
            [stored(one.name) for one in limits],
            [one.most for one in limits],
            [None if one.calls is None else float(one.calls) for one in limits],
            [float(one.per_ms) for one in limits],
        )
        wait_ms = rows[0][0]
        # Rounded up: asking a moment too early would cost another round trip.
        return int(wait_ms) + 1 if wait_ms > 0 else 0

    async def leave(self, owner: str, limits: Sequence[FleetLimit]) -> None:
        """Note that a call has ended."""
        names = [stored(one.name) for one in limits if one.most is not None]
        await self._connections.ask_once(LEAVE, stored(owner), names)

    async def clear(self, owner: str, names: Sequence[str]) -> None:
        """Note that this worker has no call under way under these limits."""
        await self._connections.ask(CLEAR, stored(owner), [stored(name) for name in names])
