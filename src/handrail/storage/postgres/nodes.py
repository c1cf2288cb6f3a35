"""The nodes of a PostgreSQL store. Only the clock of the database is read: clocks of machines differ.

Beats have a connection of their own: what is appended never keeps them waiting."""

from __future__ import annotations

from typing import Any, Final

from handrail.domain.fleet.node import FleetNode, NodeCard
from handrail.storage.node_rows import card_bytes, node_of
from handrail.storage.postgres.connections import Connections
from handrail.storage.postgres.texts import read, stored

PUT: Final = """
    insert into handrail.node (id, beat, seen, card) values ($1, 1, clock_timestamp(), $2)
    on conflict (id) do update set beat = node.beat + 1, seen = excluded.seen, card = excluded.card
    returning paused"""
"""Record a beat."""

ALL: Final = """
    select card, beat, greatest(0, extract(epoch from clock_timestamp() - seen) * 1000)::bigint, paused
    from handrail.node order by id"""
"""All nodes."""

PAUSE: Final = "update handrail.node set paused = $1 where id = $2 returning id"
"""Note who paused a node."""

DROP: Final = "delete from handrail.node where id = $1"
"""Remove a node that has ended, or was lost long ago."""


class PostgresNodes:
    """Who works on this store."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    async def put(self, card: NodeCard) -> str:
        """Record a beat of a node; returns who has paused it, if anybody has."""
        # Asked again if the connection was lost: a beat too many says nothing wrong.
        rows = await self._connections.ask(PUT, stored(card.id), card_bytes(card))
        return read(rows[0][0])

    async def all(self) -> list[FleetNode]:
        """All nodes by id."""
        return [_node(row) for row in await self._connections.ask(ALL)]

    async def pause(self, node: str, by: str) -> bool:
        """Note who paused a node, or with an empty name that it may work again; whether there is such a node."""
        return bool(await self._connections.ask(PAUSE, stored(by), stored(node)))

    async def drop(self, node: str) -> None:
        """Remove a node that has ended."""
        await self._connections.ask(DROP, stored(node))


def _node(row: Any) -> FleetNode:
    card, beat, silent_ms, paused_by = row
    return node_of(card, beat, silent_ms, read(paused_by))
