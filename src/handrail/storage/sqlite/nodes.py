"""The nodes of an SQLite store: processes of one machine, so that its clock is everybody's."""

# ruff: noqa: S608 (queries are built from the constants below, never from values)

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from typing import Final

from handrail.domain.fleet.node import FleetNode, NodeCard
from handrail.storage.node_rows import card_bytes, node_of
from handrail.storage.sqlite.append import Appender
from handrail.storage.sqlite.reader import Readers

_NOW: Final = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

PUT: Final = f"""
    INSERT INTO node (id, beat, seen, card) VALUES (?, 1, {_NOW}, ?)
    ON CONFLICT (id) DO UPDATE SET beat = beat + 1, seen = excluded.seen, card = excluded.card
    RETURNING paused"""
"""Record a beat."""

ALL: Final = f"SELECT card, beat, max(0, {_NOW} - seen), paused FROM node ORDER BY id"
"""All nodes."""

PAUSE: Final = "UPDATE node SET paused = ? WHERE id = ?"
"""Note who paused a node."""

DROP: Final = "DELETE FROM node WHERE id = ?"
"""Remove a node that has ended, or was lost long ago."""

Write = Callable[[Callable[[sqlite3.Connection, Appender], None]], Awaitable[None]]


class SqliteNodes:
    """Who works on this store."""

    def __init__(self, readers: Readers, write: Write) -> None:
        self._readers = readers
        self._write = write

    async def put(self, card: NodeCard) -> str:
        """Record a beat of a node; returns who has paused it, if anybody has."""
        paused = ""

        def write(connection: sqlite3.Connection, _: Appender) -> None:
            nonlocal paused
            ((paused,),) = connection.execute(PUT, (card.id, card_bytes(card))).fetchall()

        await self._write(write)
        return paused

    async def all(self) -> list[FleetNode]:
        """All nodes by id."""
        return await self._readers.ask(lambda connection: [node_of(*row) for row in connection.execute(ALL)])

    async def pause(self, node: str, by: str) -> bool:
        """Note who paused a node, or with an empty name that it may work again; whether there is such a node."""
        changed = 0

        def write(connection: sqlite3.Connection, _: Appender) -> None:
            nonlocal changed
            changed = connection.execute(PAUSE, (by, node)).rowcount

        await self._write(write)
        return changed == 1

    async def drop(self, node: str) -> None:
        """Remove a node that has ended."""

        def write(connection: sqlite3.Connection, _: Appender) -> None:
            connection.execute(DROP, (node,))

        await self._write(write)
