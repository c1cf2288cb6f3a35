"""Copies of a SQLite journal: a consistent one of a file that others write to, and one up to an earlier event.

`VACUUM INTO` reads one snapshot and never waits for writers. The stepwise backup of SQLite starts again with every
commit of another process, and does not end under load; docs/decisions/0017."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec.structs import astuple

from handrail.domain.backups.manifest import JournalCounts, heads_digest
from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.chain import Record
from handrail.storage.sqlite import queries, rows
from handrail.storage.sqlite.faults import BELOW, StoreLocation, store_error
from handrail.storage.sqlite.file import open_reader, open_writer
from handrail.storage.sqlite.migration import shipped

COPY: Final = "VACUUM INTO ?"
"""Write a compact copy of the database as it is now into a new file."""

SCHEMA: Final = "SELECT max(number) FROM migration"
"""The number of the newest migration."""

PLACE: Final = """
    SELECT seq FROM event WHERE stream = :stream AND n = :n
    UNION ALL
    SELECT seq FROM removed_event, (SELECT number, first, last FROM tombstone WHERE stream = :stream) AS stone
    WHERE seq BETWEEN stone.first AND stone.last AND tombstone = stone.number AND n = :n"""
"""The position of an event, also of an archived one."""

PLACE_AT: Final = "SELECT coalesce(min(seq) - 1, (SELECT max(seq) FROM event), 0) FROM event WHERE at > ?"
"""The position before the first event that is later than an instant: also if a clock was set back, none is later."""

LATEST: Final = "SELECT at FROM event WHERE seq = ?"
"""The instant of the event at a position."""

DEFINITIONS: Final = "SELECT count(*) FROM definition"
"""How many definitions there are."""

ERASED: Final = "SELECT stream, n FROM event WHERE erased IS NOT NULL"
"""The events without content."""

ATTACH: Final = "ATTACH ? AS whole"
"""Open the journal to copy from beside the new one."""

COPY_EVENTS: Final = "INSERT INTO event SELECT * FROM whole.event WHERE seq <= ? ORDER BY seq"
"""Copy the first events."""

COPY_TOMBSTONES: Final = "INSERT INTO tombstone SELECT * FROM whole.tombstone"
"""Copy what is left of archived runs: those that were archived later are back among the events."""

COPY_REMOVED: Final = "INSERT INTO removed_event SELECT * FROM whole.removed_event ORDER BY seq"
"""Copy what is left of their events."""

COPY_ROWS: Final = """
    INSERT INTO run SELECT * FROM whole.run WHERE id IN (SELECT stream FROM whole.tombstone WHERE archive = '')"""
"""Copy the rows of runs that were deleted: there are no events to rebuild them from."""

COPY_DEFINITIONS: Final = "INSERT INTO definition SELECT * FROM whole.definition"
"""Copy all definitions: they are named by their hash, so that those of later runs do no harm."""


def copy_of(journal: Path, target: Path, *, busy_ms: int) -> int:
    """Write a consistent copy of a journal into a new file; the number of its newest migration."""
    place = StoreLocation(path=journal, busy_ms=busy_ms, read_only=True)
    os.close(os.open(target, os.O_CREAT | os.O_EXCL, 0o600))  # private from the start; SQLite accepts an empty file
    try:
        with closing(open_reader(place)) as connection:
            connection.execute(COPY, (str(target),))
            return int(connection.execute(SCHEMA).fetchone()[0])
    except BELOW as error:
        raise store_error(error, place) from error


def place_of(journal: Path, stream: str, n: int) -> int | None:
    """The position of an event in a journal; None if it has no such event."""
    with closing(open_reader(StoreLocation(path=journal, busy_ms=0, read_only=True))) as connection:
        row = connection.execute(PLACE, {"stream": stream, "n": n}).fetchone()
    return int(row[0]) if row else None


def place_until(journal: Path, at: int) -> int:
    """The position of the last event up to an instant; 0 if all are later."""
    with closing(open_reader(StoreLocation(path=journal, busy_ms=0, read_only=True))) as connection:
        return int(connection.execute(PLACE_AT, (at,)).fetchone()[0])


def cut_copy(journal: Path, target: Path, *, until: int) -> None:
    """Write the events up to a position into a new journal, without projections: they are rebuilt from the events.

    All archived runs must have been archived before that position."""
    place = StoreLocation(path=target, busy_ms=0, read_only=False)
    try:
        with closing(open_writer(place, shipped())) as connection:
            connection.execute(ATTACH, (str(journal),))
            connection.execute("BEGIN IMMEDIATE")
            copied = connection.execute(COPY_EVENTS, (until,)).rowcount
            connection.execute(COPY_TOMBSTONES)
            copied += max(0, connection.execute(COPY_REMOVED).rowcount)
            connection.execute(COPY_ROWS)
            connection.execute(COPY_DEFINITIONS)
            connection.execute("COMMIT")
    except BELOW as error:
        raise store_error(error, place) from error
    if copied != until:
        raise IntegrityBroken(f"the journal has {copied} of the first {until} events", hint="use another backup")


def write_journal(target: Path, records: Iterable[Record], definitions: Iterable[tuple[str, bytes]]) -> int:
    """Write events in their order, and definitions, into a new journal without projections; how many events."""
    place = StoreLocation(path=target, busy_ms=0, read_only=False)
    numbered = ((seq, *astuple(record)) for seq, record in enumerate(records, 1))
    try:
        with closing(open_writer(place, shipped())) as connection:
            connection.execute("BEGIN IMMEDIATE")
            written = connection.executemany(queries.PUT_ERASED_EVENT, numbered).rowcount
            connection.executemany(queries.PUT_DEFINITION, definitions)
            connection.execute("COMMIT")
    except BELOW as error:
        raise store_error(error, place) from error
    return max(0, written)


def counts_of(journal: Path) -> JournalCounts:
    """A journal in numbers and digests, whatever version of handrail wrote it."""
    place = StoreLocation(path=journal, busy_ms=0, read_only=True)
    try:
        with closing(open_reader(place)) as connection:
            (events, _, last) = connection.execute(queries.COUNT).fetchone()
            latest = connection.execute(LATEST, (last,)).fetchone()
            (definitions,) = connection.execute(DEFINITIONS).fetchone()
            (has_archives,) = connection.execute(queries.HAS_ARCHIVES).fetchone()
            if has_archives:
                events += connection.execute(queries.COUNT_REMOVED).fetchone()[0]
            ends = queries.HEADS_WITH_ARCHIVED if has_archives else queries.HEADS_OF_ALL
            heads = rows.heads(connection.execute(ends).fetchall())
    except BELOW as error:
        raise store_error(error, place) from error
    return JournalCounts(
        events=events,
        streams=len(heads),
        definitions=definitions,
        heads=heads_digest(heads),
        latest=latest[0] if latest else 0,
    )


def first_record(journal: Path, stream: str) -> Record | None:
    """The first event of a stream."""
    place = StoreLocation(path=journal, busy_ms=0, read_only=True)
    with closing(open_reader(place)) as connection:
        found = rows.event_rows(connection, queries.STREAM, (stream, 0, 1))
    return Record(*found[0][1:]) if found else None


def erased_in(journal: Path) -> set[tuple[str, int]]:
    """The events of a journal whose content was erased."""
    place = StoreLocation(path=journal, busy_ms=0, read_only=True)
    with closing(open_reader(place)) as connection:
        return set(connection.execute(ERASED).fetchall())
