"""The few writes that are not appends: rebuild or forget projections, and erase the text of an event.

Each has a write transaction of its own, which writer.py starts and commits."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from handrail.domain.errors import Conflict, NotFound
from handrail.domain.journal.chain import GENESIS, Record
from handrail.domain.journal.event import PLAN_PREFIX
from handrail.domain.journal.projection import NO_CHANGE, Change
from handrail.domain.project import plan_in
from handrail.storage.admission import require_erasure, steps_without_run
from handrail.storage.outbox.outbox_rows import reports
from handrail.storage.postgres import queries
from handrail.storage.postgres.append import (
    Batch,
    LaneAppend,
    StreamEnd,
    Streams,
    plans_text,
    run_columns,
    step_columns,
)
from handrail.storage.postgres.connections import Connection
from handrail.storage.postgres.rows import record_of
from handrail.storage.postgres.texts import read, stored


async def rebuild(connection: Connection, streams: Streams, stream: str, change: Change) -> None:
    """Replace the stored projections of a stream."""
    # An append between reading the events and writing the rows would leave rows of an older state.
    await connection.execute(queries.LOCK_STREAM, stored(stream))
    if await _event(connection, stream) is None:
        if not await connection.fetchval(queries.IS_ARCHIVED, stored(stream)):
            raise NotFound(f"there is no stream {stream!r}")
        change = replace(change, steps=())  # of an archived run, only its own row is here
    await _replace(connection, streams, stream, change)


async def forget(connection: Connection, streams: Streams, stream: str) -> None:
    """Remove the projections of a stream that has no events."""
    if await _event(connection, stream) or await connection.fetchval(queries.IS_ARCHIVED, stored(stream)):
        raise Conflict(f"{stream} has events; only a stream without events can be forgotten")
    await _replace(connection, streams, stream, NO_CHANGE)


async def erase(
    connection: Connection, streams: Streams, record: Record, note: Sequence[Record], change: Change
) -> None:
    """Replace the stored record with `record`, append the note, and rewrite the projections of its stream."""
    require_erasure(await _event(connection, record.stream, record.n), record)
    # In the same transaction: there is never an erased event without the event that says so.
    await append_note(connection, note)
    await connection.execute(
        queries.ERASE_EVENT, record.salt, record.body, record.erased, stored(record.stream), record.n
    )
    # Its words are in a notice, too, until that has arrived, and for long if it never does.
    for channel, number, notice in await connection.fetch(queries.NOTICES_ABOUT, stored(record.stream)):
        if reports(notice, record.n):
            await connection.execute(queries.DROP_NOTICE, channel, number)
    await _replace(connection, streams, record.stream, change)
    streams.forget()


async def append_note(connection: Connection, note: Sequence[Record]) -> None:
    """Append an event of the store inside this transaction, or raise why not."""
    append = LaneAppend(note, NO_CHANGE)
    rows = await connection.fetch(queries.ENDS, [stored(append.stream)])
    _, n, hash_, owner, epoch, has_run = rows[0]
    batch = Batch()
    batch.judge(append, StreamEnd(n, hash_ if n else GENESIS, read(owner), epoch, has_run))
    (refused,) = batch.answers
    if refused is not None:
        raise refused
    if await connection.fetch(queries.APPEND, *batch.arguments(set())):
        raise Conflict(f"{append.stream} was written by another at the same time", hint="try again")


async def _event(connection: Connection, stream: str, n: int = 1) -> Record | None:
    """The first event of a stream from number `n` on."""
    rows = await connection.fetch(queries.STREAM, stored(stream), n - 1, 1)
    return record_of(rows[0]) if rows else None


async def _replace(connection: Connection, streams: Streams, stream: str, change: Change) -> None:
    if change.steps and change.run is None:
        raise steps_without_run(stream)
    await connection.execute(queries.DROP_STEPS, stored(stream))
    await connection.execute(queries.DROP_RUN, stored(stream))
    if stream.startswith(PLAN_PREFIX):
        await connection.execute(queries.DROP_PLAN, *map(stored, plan_in(stream)))
    if change.run is not None:
        await connection.fetch(queries.PUT_RUNS, *run_columns(change.run))
    if change.steps:
        await connection.fetch(queries.PUT_STEPS, *step_columns(change.steps))
    if change.plan is not None:
        await connection.fetch(queries.PUT_PLANS, plans_text([change.plan]))
    # Whether workers see the run depends on a column beside its head, which the new row may contradict.
    await connection.execute(queries.WAKE_AGAIN, stored(stream))
    streams.forget([stream])
