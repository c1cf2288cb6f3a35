"""Flaws: the errors that SQLite itself finds in the store's file, as text. Only reads.

Whether events were changed is checked with the hash chain (domain/journal/chain.py)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from handrail.storage.sqlite import queries
from handrail.storage.sqlite.faults import BELOW


def flaws_of(connection: sqlite3.Connection, *, thorough: bool = True) -> list[str]:
    """All flaws in the whole file; empty if it is intact."""
    found: list[str] = []
    for look in (_damage if thorough else _plain_damage, _gaps, _strays):
        try:
            found.extend(look(connection))
        except BELOW as error:  # too damaged even to be checked
            found.append(str(error))
    return found


def _damage(connection: sqlite3.Connection) -> Iterator[str]:
    return _complaints(connection, queries.INTEGRITY)


def _plain_damage(connection: sqlite3.Connection) -> Iterator[str]:
    """The same, without comparing every index with its table: takes half the time."""
    return _complaints(connection, queries.PLAIN_INTEGRITY)


def _complaints(connection: sqlite3.Connection, query: str) -> Iterator[str]:
    return (str(line) for (line,) in connection.execute(query) if line != "ok")


def _gaps(connection: sqlite3.Connection) -> Iterator[str]:
    count, first, last = connection.execute(queries.COUNT).fetchone()
    removed, first_removed, _ = connection.execute(queries.COUNT_REMOVED).fetchone()
    first = min(first, first_removed) if removed else first
    if first != 1:
        yield f"the first event is at position {first} instead of 1"
    if count + removed != last - first + 1:
        for (place,) in connection.execute(queries.GAPS):
            if place != first:
                yield f"an event is missing before position {place}"
        for (place,) in connection.execute(queries.TWICE):
            yield f"the event at position {place} is in the journal and archived"


def _strays(connection: sqlite3.Connection) -> Iterator[str]:
    for table, count in connection.execute(queries.STRAY_ROWS):
        yield f"{count} rows of table {table} refer to a missing row"
