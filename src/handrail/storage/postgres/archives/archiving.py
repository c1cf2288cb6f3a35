"""Archived runs in the PostgreSQL store: events leave, and come back, each in one transaction with the event that says
so. What stays of an event is its place in its lane, its position and its hash.

The archive files are in storage/archive_folder.py; which runs are archived is decided in engine/retention/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import astuple

from handrail.domain.errors import Conflict, IntegrityBroken, NotFound
from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Record
from handrail.domain.journal.projection import Change
from handrail.engine.run_archive import StoreSize
from handrail.storage.admission import require_ended
from handrail.storage.postgres import queries
from handrail.storage.postgres.amend import append_note
from handrail.storage.postgres.append import EVENT_TEXTS, Streams, columns_of, step_columns
from handrail.storage.postgres.connections import Connection
from handrail.storage.postgres.texts import stored

TOMBSTONES: Final = "select stream, n, head, archive from handrail.tombstone where stream > $1 order by stream limit $2"
"""Archived runs after an id."""

TOMBSTONE: Final = "select stream, n, head, archive from handrail.tombstone where stream = $1"
"""One archived run."""

PLACED: Final = """
    select tick, lane, number, stream, n, at, kind, actor, step, attempt, format, salt, body, hash, erased
    from handrail.event
    where era = (select era from handrail.head where stream = $1) and stream = $1 order by n"""
"""The events of a stream with their positions."""

ENDED: Final = """
    select head.n, head.hash, run.n, run.ended from handrail.head join handrail.run on run.id = head.stream
    where head.stream = $1 and head.hash <> '' for no key update of head"""
"""Where a run ended, by its events and by its row; others append to it only after the transaction."""

LEAVE_HASHES: Final = """
    insert into handrail.removed_event (era, lane, number, tick, stream, n, hash)
    select event.era, event.lane, event.number, event.tick, event.stream, event.n, event.hash
    from handrail.head join handrail.event on event.era = head.era and event.stream = head.stream
    where head.stream = any($1::text[]) order by event.era, event.lane, event.number"""
"""Keep what is left of the events of runs."""

PUT_TOMBSTONES: Final = """
    insert into handrail.tombstone (stream, n, head, archive)
    select * from unnest($1::text[], $2::bigint[], $3::bytea[], $4::text[])"""
"""Note that the events of runs are in an archive."""

DROP_EVENTS: Final = """
    delete from handrail.event using handrail.head
    where head.stream = any($1::text[]) and event.era = head.era and event.stream = head.stream"""
"""Remove the events of runs; a trigger refuses it unless their hashes stay."""

DROP_STEPS: Final = "delete from handrail.step where run = any($1::text[])"
"""Remove the rows of their steps."""

CLOSE_HEADS: Final = "update handrail.head set hash = '' where stream = any($1::text[])"
"""Let nothing follow their ends."""

LEFT_OF_RUN: Final = "select era, lane, number, tick, n, hash from handrail.removed_event where stream = $1 order by n"
"""The places and hashes of the events of an archived run."""

PUT_EVENTS: Final = """
    insert into handrail.event (
        era, lane, number, tick, stream, n, at, kind, actor, step, attempt, format, salt, body, hash, erased)
    select * from unnest(
        $1::integer[], $2::integer[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[], $8::text[],
        $9::text[], $10::text[], $11::bigint[], $12::bigint[], $13::bytea[], $14::bytea[], $15::bytea[],
        $16::bytea[])"""
"""Put events back at their places."""

DROP_HASHES: Final = "delete from handrail.removed_event where stream = $1"
"""Remove what was left of events that are back."""

DROP_TOMBSTONE: Final = "delete from handrail.tombstone where stream = $1 returning head"
"""Forget that a run is archived."""

OPEN_HEAD: Final = "update handrail.head set hash = $2 where stream = $1"
"""Let events follow the end of a run again."""

MOVE_TOMBSTONE: Final = "update handrail.tombstone set archive = $1 where stream = $2 and n = $3 returning 1"
"""Note that a run is in another archive, or in none any more."""

SIZE: Final = """
    select (select sum(pg_total_relation_size(c.oid)) from pg_class c join pg_namespace s on s.oid = c.relnamespace
        where s.nspname = 'handrail' and c.relkind = 'r')::bigint,
        (select coalesce(sum(last), 0) from handrail.lane)::bigint,
        (select coalesce(sum(n), 0) from handrail.tombstone)::bigint,
        (select count(*) from handrail.tombstone)"""
"""What the tables take on the disk, and how many events and archived ones there are."""


async def archive(
    connection: Connection, streams: Streams, stones: Sequence[Tombstone], note: Sequence[Record]
) -> None:
    """Remove the events of ended runs, and leave their places and hashes."""
    for stone in sorted(stones, key=lambda one: one.stream):  # locked in one order, as appends do
        require_ended(stone, await connection.fetchrow(ENDED, stored(stone.stream)))
    await append_note(connection, note)
    # The hashes before the events: the trigger looks for them.
    names = [stored(stone.stream) for stone in stones]
    await connection.execute(LEAVE_HASHES, names)
    ends = ([stone.n for stone in stones], [stone.head for stone in stones], [stone.archive for stone in stones])
    await connection.execute(PUT_TOMBSTONES, names, *ends)
    for query in (DROP_EVENTS, DROP_STEPS, CLOSE_HEADS):
        await connection.execute(query, names)
    # What this process remembers of their ends would let it append to them.
    streams.forget()


async def unarchive(
    connection: Connection,
    streams: Streams,
    runs: Sequence[tuple[Sequence[Record], Change]],
    note: Sequence[Record],
) -> None:
    """Put the events of archived runs back at their places, with the rows of their steps."""
    for records, change in sorted(runs, key=lambda one: one[0][0].stream):
        await _put_back(connection, records, change)
    await append_note(connection, note)
    streams.forget()


async def move(connection: Connection, streams: Streams, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
    """Note where archived runs are now: in another archive, or in none."""
    for stone in sorted(stones, key=lambda one: one.stream):
        if not await connection.fetch(MOVE_TOMBSTONE, stone.archive, stored(stone.stream), stone.n):
            raise NotFound(f"{stone.stream} is not archived", hint="`handrail db list` shows the archived runs")
        if not stone.archive:  # deleted: nothing may tell of it any more
            await connection.execute(queries.DROP_NOTICES_ABOUT, stored(stone.stream))
    await append_note(connection, note)
    streams.forget()


async def size_of(connection: Connection) -> StoreSize:
    """What the tables take on the disk; what is free in them is not known without reading them."""
    tables, events, archived, runs = await connection.fetchrow(SIZE)
    return StoreSize(journal=tables or 0, events=events - archived, archived=archived, archived_runs=runs)


async def _put_back(connection: Connection, records: Sequence[Record], change: Change) -> None:
    stream = stored(records[0].stream)
    await connection.execute(queries.LOCK_STREAM, stream)
    left = await connection.fetch(LEFT_OF_RUN, stream)
    if not left:
        raise Conflict(f"{records[0].stream} is not archived", hint="`handrail db list` shows the archived runs")
    if [(row[4], row[5]) for row in left] != [(record.n, record.hash) for record in records]:
        raise IntegrityBroken(f"the events of {records[0].stream} are not the ones that were archived")
    places = [[row[column] for row in left] for column in range(4)]
    await connection.execute(PUT_EVENTS, *places, *columns_of([astuple(record) for record in records], EVENT_TEXTS))
    await connection.execute(DROP_HASHES, stream)
    head = await connection.fetchval(DROP_TOMBSTONE, stream)
    await connection.execute(OPEN_HEAD, stream, head)
    if change.steps:
        await connection.fetch(queries.PUT_STEPS, *step_columns(change.steps))
