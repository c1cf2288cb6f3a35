"""The few writes that are not appends: rebuild or forget projections, and erase the text of an event.

Each has a write transaction of its own, which writer.py starts and commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from msgspec.structs import replace

from handrail.domain.errors import Conflict, NotFound
from handrail.domain.journal.chain import Record
from handrail.domain.journal.event import PLAN_PREFIX
from handrail.domain.journal.projection import NO_CHANGE, Change
from handrail.domain.project import plan_in
from handrail.storage.admission import require_erasure
from handrail.storage.outbox.outbox_rows import reports
from handrail.storage.sqlite import queries
from handrail.storage.sqlite.append import Append, Appender
from handrail.storage.sqlite.archives.archiving import tombstone
from handrail.storage.sqlite.rows import event_rows
from handrail.storage.sqlite.scrub import MARK_PENDING


def rebuild(connection: sqlite3.Connection, appender: Appender, stream: str, change: Change) -> None:
    """Replace the stored projections of a stream; of an archived run, only its own row."""
    if _event(connection, stream) is None:
        if tombstone(connection, stream) is None:
            raise NotFound(f"there is no stream {stream!r}")
        change = replace(change, steps=())
    _drop(connection, stream)
    appender.put_projections(stream, change)


def forget(connection: sqlite3.Connection, stream: str) -> None:
    """Remove the projections of a stream that has no events."""
    if _event(connection, stream) is not None or tombstone(connection, stream) is not None:
        raise Conflict(f"{stream} has events; only a stream without events can be forgotten")
    _drop(connection, stream)


def erase(
    connection: sqlite3.Connection, appender: Appender, record: Record, note: Sequence[Record], change: Change
) -> None:
    """Replace the stored record with `record`, append the note, and rewrite the projections of its stream."""
    stored = _event(connection, record.stream, record.n)
    require_erasure(stored, record)
    # The note that something was erased is in the same transaction: there is never an erased event without one.
    (refused,) = appender.append([Append(note, NO_CHANGE)])
    if refused is not None:
        raise refused
    connection.execute(MARK_PENDING)
    # The hash stays: it covers a salted digest of the body, and the salt goes with the body.
    connection.execute(queries.ERASE_EVENT, (record.salt, record.body, record.erased, record.stream, record.n))
    # Its words are in a notice, too, until that has arrived, and for long if it never does.
    about = connection.execute(queries.NOTICES_ABOUT, (record.stream,)).fetchall()
    gone = [(channel, number) for channel, number, notice in about if reports(notice, record.n)]
    connection.executemany(queries.DROP_NOTICE, gone)
    _drop(connection, record.stream)
    appender.put_projections(record.stream, change)


def _event(connection: sqlite3.Connection, stream: str, n: int = 1) -> Record | None:
    """The first event of a stream from number `n` on."""
    rows = event_rows(connection, queries.STREAM, (stream, n - 1, 1))
    return Record(*rows[0][1:]) if rows else None


def _drop(connection: sqlite3.Connection, stream: str) -> None:
    connection.execute(queries.DROP_STEPS, (stream,))
    connection.execute(queries.DROP_RUN, (stream,))
    if stream.startswith(PLAN_PREFIX):
        connection.execute(queries.DROP_PLAN, plan_in(stream))
