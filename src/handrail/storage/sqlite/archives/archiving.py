"""Archived runs in the SQLite store: events leave, and come back, each in one transaction with the event that says so.

What stays of an event is its position and hash. The archive files are in storage/archive_folder.py; which runs are
archived is decided in engine/retention/."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from msgspec.structs import astuple

from handrail.domain.errors import Conflict, IntegrityBroken, NotFound
from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Record
from handrail.domain.journal.projection import NO_CHANGE, Change
from handrail.storage.admission import require_ended
from handrail.storage.sqlite import queries
from handrail.storage.sqlite.append import Append, Appender
from handrail.storage.sqlite.rows import numbered, values

TOMBSTONES: Final = "SELECT stream, n, head, archive FROM tombstone WHERE stream > ? ORDER BY stream LIMIT ?"
"""Archived runs after an id."""

TOMBSTONE: Final = "SELECT stream, n, head, archive FROM tombstone WHERE stream = ?"
"""One archived run."""

ENDED: Final = """
    SELECT last.n, last.hash, run.n, run.ended
    FROM run, (SELECT n, hash FROM event WHERE stream = :run ORDER BY n DESC LIMIT 1) AS last WHERE run.id = :run"""
"""Where a run ended, by its events and by its row."""

LAST_TOMBSTONE: Final = "SELECT ifnull(max(number), 0) FROM tombstone"
"""The number of the newest tombstone."""

PUT_TOMBSTONE: Final = """
    INSERT INTO tombstone (stream, n, head, archive, first, last)
    SELECT :p1, :p2, :p3, :p4, min(seq), max(seq) FROM event WHERE stream = :p1"""
"""Note that the events of a run are in an archive."""

LEAVE_HASHES: Final = """
    INSERT INTO removed_event (seq, tombstone, n, hash)
    SELECT event.seq, tombstone.number, event.n, event.hash
    FROM tombstone CROSS JOIN event ON event.stream = tombstone.stream WHERE tombstone.number > ? ORDER BY event.seq"""
"""Keep what is left of the events of the runs that were noted last; in their order, so that pages are filled."""

DROP_EVENTS: Final = "DELETE FROM event WHERE stream = ?"
"""Remove the events of a run; a trigger refuses it unless their hashes stay."""

LEFT_OF_RUN: Final = """
    SELECT seq, n, hash FROM removed_event, (SELECT number, first, last FROM tombstone WHERE stream = ?) AS stone
    WHERE seq BETWEEN stone.first AND stone.last AND tombstone = stone.number ORDER BY n"""
"""The places and hashes of the events of an archived run."""

DROP_HASHES: Final = """
    DELETE FROM removed_event WHERE seq IN (SELECT seq FROM event WHERE stream = ?)"""
"""Remove what was left of events that are back."""

DROP_TOMBSTONE: Final = "DELETE FROM tombstone WHERE stream = ?"
"""Forget that a run is archived."""

MOVE_TOMBSTONE: Final = "UPDATE tombstone SET archive = ? WHERE stream = ? AND n = ?"
"""Note that a run is in another archive, or in none any more."""


def tombstones(connection: sqlite3.Connection, after: str, limit: int) -> list[Tombstone]:
    """Archived runs after an id."""
    return values(connection, TOMBSTONES, (after, limit), Tombstone)


def tombstone(connection: sqlite3.Connection, stream: str) -> Tombstone | None:
    """One archived run; None if it is not archived."""
    return next(iter(values(connection, TOMBSTONE, (stream,), Tombstone)), None)


def archive(
    connection: sqlite3.Connection, appender: Appender, stones: Sequence[Tombstone], note: Sequence[Record]
) -> None:
    """Remove the events of ended runs, and leave their places and hashes."""
    for stone in stones:
        require_ended(stone, connection.execute(ENDED, {"run": stone.stream}).fetchone())
    _append(appender, note)
    (known,) = connection.execute(LAST_TOMBSTONE).fetchone()
    connection.executemany(PUT_TOMBSTONE, [numbered(*astuple(stone)) for stone in stones])
    connection.execute(LEAVE_HASHES, (known,))
    # By stream, through its index: one statement for all would read the whole table.
    for stone in stones:
        connection.execute(DROP_EVENTS, (stone.stream,))
        connection.execute(queries.DROP_STEPS, (stone.stream,))


def unarchive(
    connection: sqlite3.Connection,
    appender: Appender,
    runs: Sequence[tuple[Sequence[Record], Change]],
    note: Sequence[Record],
) -> None:
    """Put the events of archived runs back at their places, with the rows of their steps."""
    _append(appender, note)
    for records, change in runs:
        _put_back(connection, records)
        # It remembers that the run is archived.
        appender.forget()
        appender.put_projections(records[0].stream, change)


def move(
    connection: sqlite3.Connection, appender: Appender, stones: Sequence[Tombstone], note: Sequence[Record]
) -> None:
    """Note where archived runs are now: in another archive, or in none."""
    _append(appender, note)
    for stone in stones:
        if connection.execute(MOVE_TOMBSTONE, (stone.archive, stone.stream, stone.n)).rowcount != 1:
            raise NotFound(f"{stone.stream} is not archived", hint="`handrail db list` shows the archived runs")
        if not stone.archive:  # deleted: nothing may tell of it any more
            connection.execute(queries.DROP_NOTICES_ABOUT, (stone.stream,))


def _put_back(connection: sqlite3.Connection, records: Sequence[Record]) -> None:
    stream = records[0].stream
    left = connection.execute(LEFT_OF_RUN, (stream,)).fetchall()
    if not left:
        raise Conflict(f"{stream} is not archived", hint="`handrail db list` shows the archived runs")
    if [(n, hash_) for _, n, hash_ in left] != [(record.n, record.hash) for record in records]:
        raise IntegrityBroken(f"the events of {stream} are not the ones that were archived")
    # The events before their hashes go: the trigger looks for them.
    rows = [(place[0], *astuple(record)) for place, record in zip(left, records, strict=True)]
    connection.executemany(queries.PUT_ERASED_EVENT, rows)
    connection.execute(DROP_HASHES, (stream,))
    connection.execute(DROP_TOMBSTONE, (stream,))


def _append(appender: Appender, note: Sequence[Record]) -> None:
    # The note is in the same transaction: there is never a missing event without the event that says where it is.
    (refused,) = appender.append([Append(note, NO_CHANGE)])
    if refused is not None:
        raise refused
