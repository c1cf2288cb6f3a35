"""Appends inside a write transaction: each is checked against the end and the lease of its stream, then all rows are
inserted together.

This is the hot path of the store. Transactions and the answers to callers are handled in writer.py.

Python's sqlite3 takes ten times as long to bind `bytes` or `None` as anything else (it searches for adapters): that was
a third of the time of an insert. So the rows below use bytearrays, and avoid None where it would be common."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import astuple, replace

from handrail.domain.errors import HandrailError, IntegrityBroken, Invalid
from handrail.domain.journal.archived import archived_refusal
from handrail.domain.journal.chain import GENESIS, Head, Record, chain_hash, first_break
from handrail.domain.journal.projection import Change, StepRow
from handrail.engine.running.lease import Lease
from handrail.storage.admission import is_held, lease_lost, refusal, steps_without_run
from handrail.storage.sqlite import queries
from handrail.storage.stream_cache import StreamCache

Row: TypeAlias = tuple[Any, ...]


class Append(Struct, frozen=True):
    """Records to append, their change, the future of the waiting caller, and the lease."""

    records: Sequence[Record]
    change: Change
    future: asyncio.Future[None] | None = None
    lease: Lease | None = None


class StreamState(Struct, frozen=True):
    """The state of a stream after the last transaction: its end, and for a run, its row and lease."""

    n: int = 0
    hash: bytes = GENESIS
    number: int | None = None
    steady: Row | None = None
    owner: str = ""
    epoch: int = 0
    """0 if there is no lease."""
    is_archived: bool = False


class Rows:
    """All rows that one transaction inserts; a row that is written twice keeps only its last state."""

    def __init__(self) -> None:
        self.events: list[Row] = []
        self.erased: list[Row] = []
        self.runs: dict[int, Row] = {}
        self.moves: dict[int, Row] = {}
        self.steps: dict[tuple[int, str], Row] = {}
        self.plans: dict[tuple[str, str], Row] = {}
        self.definitions: dict[str, bytes] = {}
        self.leases: dict[str, Row] = {}
        self.freed: set[str] = set()

    def write(self, connection: sqlite3.Connection) -> None:
        """Insert everything; runs before their steps."""
        inserts: tuple[tuple[str, Collection[Row]], ...] = (
            (queries.PUT_DEFINITION, self.definitions.items()),
            (queries.PUT_EVENT, self.events),
            (queries.PUT_ERASED_EVENT, self.erased),
            (queries.PUT_RUN, self.runs.values()),
            (queries.MOVE_RUN, self.moves.values()),
            (queries.PUT_STEP, self.steps.values()),
            (queries.PUT_PLAN, self.plans.values()),
            (queries.DROP_LEASE, [(stream,) for stream in self.freed]),
            (queries.PUT_LEASE, self.leases.values()),
        )
        for query, rows in inserts:
            written = connection.executemany(query, rows).rowcount if rows else 0
            if query is queries.MOVE_RUN and written != len(rows):
                raise IntegrityBroken("the row of a run is missing in the database")


class Appender:
    """Checks appends and writes them; caches the ends and leases of streams, so that most checks need no query."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._streams: StreamCache[StreamState] = StreamCache()
        self._version = -1
        self._seq = 0
        self._number = 0

    def append(self, batch: Iterable[Append]) -> list[HandrailError | None]:
        """Write every append that follows the end of its stream and holds its lease; the error of each, or None."""
        self._catch_up()
        rows = Rows()
        answers = [self._admit(append, rows) for append in batch]
        rows.write(self._connection)
        self._streams.trim()
        return answers

    def put_projections(self, stream: str, change: Change) -> None:
        """Write the projections of a stream without appending events."""
        self._catch_up()
        known, rows = self._look_up(stream), Rows()
        if change.steps and change.run is None and known.number is None:
            raise steps_without_run(stream)
        self._put_change(known, change, rows)
        rows.write(self._connection)

    def remember_lease(self, stream: str, owner: str, epoch: int) -> None:
        """Update the cached lease of a stream after a write to its lease that was not an append."""
        known = self._streams.known.get(stream)
        if known is not None:
            self._streams.known[stream] = replace(known, owner=owner, epoch=epoch)

    def forget(self) -> None:
        """Clear the cache: a transaction failed, or wrote something that is not an append."""
        self._streams.forget()
        self._version = -1

    def _catch_up(self) -> None:
        # One cheap pragma instead of a query for each stream: as long as only we write, all that is remembered is true.
        (version,) = self._connection.execute(queries.OTHERS_WROTE).fetchone()
        if version != self._version:
            self.forget()
            self._version = version
            seq, number = self._connection.execute(queries.LAST_PLACES).fetchone()
            self._seq, self._number = seq or 0, number or 0

    def _admit(self, append: Append, rows: Rows) -> HandrailError | None:
        records, change, lease = append.records, append.change, append.lease
        stream = records[0].stream
        known = self._streams.known.get(stream) or self._look_up(stream)
        if known.is_archived:
            return archived_refusal(stream)
        is_first = records[0].n == 1
        if lease is not None and not is_held(lease, owner=known.owner, epoch=known.epoch, is_first=is_first):
            return lease_lost(lease)
        if refused := _refusal(known, records):
            return refused
        if change.steps and change.run is None and known.number is None:
            return steps_without_run(stream)
        # Numbers are given out here, inside the write lock: so they have no gaps, even over several processes.
        seq = self._seq
        for record in records:
            seq += 1
            if record.erased is None:
                rows.events.append(_event_row(seq, record))
            else:
                rows.erased.append((seq, *astuple(record)))
        self._seq = seq
        number, steady = self._put_change(known, change, rows)
        owner, epoch = _put_lease(known, append, rows)
        self._streams.put(stream, StreamState(record.n, record.hash, number, steady, owner, epoch))
        return None

    def _look_up(self, stream: str) -> StreamState:
        found = self._connection.execute(queries.END_OF_STREAM, {"stream": stream}).fetchone()
        number, n, last_hash, owner, epoch, is_archived = found
        held = StreamState(number=number, owner=owner or "", epoch=epoch or 0, is_archived=bool(is_archived))
        if n is None and last_hash is None:
            return held
        if not isinstance(n, int) or not isinstance(last_hash, bytes):
            raise IntegrityBroken(f"the last event of {stream} is damaged")
        return replace(held, n=n, hash=last_hash)

    def _put_change(self, known: StreamState, change: Change, rows: Rows) -> tuple[int | None, Row | None]:
        """Collect the rows of a change; its run number, and the columns that rarely change, to compare next time."""
        number, steady, run = known.number, known.steady, change.run
        if run is not None:
            if number is None:
                number = self._number = self._number + 1
            pinned = (run.workflow, run.definition, run.mode, run.goal, run.started, run.project, run.exceptions)
            seldom = (run.status, run.ended, *pinned)
            # Most events move only four columns of a run: rewriting the indexed ones too would double what is written.
            if seldom == steady and number not in rows.runs:
                rows.moves[number] = (run.updated, run.done, run.n, bytearray(run.head), number)
            else:
                steady = seldom
                rows.moves.pop(number, None)
                rows.runs[number] = (number, *astuple(run))
        if number is not None:
            for step in change.steps:
                rows.steps[number, step.path] = _step_row(number, step)
        if change.plan is not None:
            rows.plans[change.plan.project, change.plan.id] = astuple(change.plan)
        for content_hash, text in change.definitions:
            if content_hash not in self._streams.definitions:
                self._streams.definitions.add(content_hash)
                rows.definitions[content_hash] = text
        return number, steady


def _put_lease(known: StreamState, append: Append, rows: Rows) -> tuple[str, int]:
    """Collect what an append does to its lease; the owner and the epoch of the stream after it."""
    lease, run, stream = append.lease, append.change.run, append.records[0].stream
    if run is not None and run.ended is not None:
        rows.leases.pop(stream, None)
        if known.epoch:
            rows.freed.add(stream)
        return "", 0
    if lease is not None and not known.epoch:
        rows.leases[stream] = (stream, lease.owner, lease.epoch)
        return lease.owner, lease.epoch
    return known.owner, known.epoch


def _refusal(known: StreamState, records: Sequence[Record]) -> HandrailError | None:
    """Why records do not follow the end of their stream, if they don't."""
    n, prev = known.n, known.hash
    try:
        for record in records:
            n += 1
            if record.n != n or chain_hash(prev, record) != record.hash:
                end = Head(record.stream, known.n, known.hash)
                _, broken = first_break(end, records)
                return refusal(end, broken) if broken else None
            prev = record.hash
    except (TypeError, ValueError, OverflowError) as error:  # fields with types that can't be stored
        return Invalid(f"an append to {records[0].stream!r} can't be stored: {error}")
    return None


def _event_row(seq: int, record: Record) -> Row:
    return (
        seq,
        record.stream,
        record.n,
        record.at,
        record.kind,
        record.actor,
        record.step,
        record.attempt,
        record.format,
        bytearray(record.salt),
        bytearray(record.body),
        bytearray(record.hash),
    )


def _step_row(number: int, step: StepRow) -> Row:
    return (
        number,
        step.path,
        step.status,
        step.attempts,
        -1 if step.started is None else step.started,
        -1 if step.ended is None else step.ended,
        -1 if step.due is None else step.due,
        step.actor,
        step.proof,
        step.compensation,
        step.category,
        step.message,
    )
