"""The SQLite store: the journal, its projections and leases in one file, safe against crashes and power cuts.

Only the public class: it passes writes to the writer thread (writer.py) and queries to the reader threads
(reader.py). The SQL is in queries.py and sql/."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.mark import START, Mark
from handrail.domain.journal.projection import NO_CHANGE, Change, PlanRow, RunCount, RunRow, StepRow
from handrail.domain.project import unscoped
from handrail.domain.run.status import RunStatus
from handrail.engine.journal import LAST, Placed, Row, never_heard
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.engine.running.lease import FOR_EVER, NONE_RESTS, Lease, LeaseHolder
from handrail.storage.admission import admitted_bytes, require_belonging, require_few, require_owner
from handrail.storage.archives.archived_steps import archived_steps
from handrail.storage.outbox.sqlite_outbox import SqliteOutbox
from handrail.storage.sqlite import amend as sqlite_amend
from handrail.storage.sqlite import lease as sqlite_lease
from handrail.storage.sqlite import queries
from handrail.storage.sqlite import rows as sqlite_rows
from handrail.storage.sqlite.append import Append, Appender
from handrail.storage.sqlite.archives import archiving as sqlite_archiving
from handrail.storage.sqlite.archives.run_archive import SqliteArchives
from handrail.storage.sqlite.faults import StoreLocation, reading_only
from handrail.storage.sqlite.file import OlderSchema, open_reader, open_writer, require_present_schema
from handrail.storage.sqlite.file_integrity import flaws_of
from handrail.storage.sqlite.migration import shipped
from handrail.storage.sqlite.nodes import SqliteNodes
from handrail.storage.sqlite.reader import Readers, one_view
from handrail.storage.sqlite.writer import Amendment, LeaseWrite, Writer


class SqliteStore:
    """A store in one SQLite file. Open it with `await SqliteStore.open(path)`, and close it."""

    def __init__(self, place: StoreLocation, readers: Readers, writer: Writer | None) -> None:
        self._place = place
        self._archives = SqliteArchives(place.path, readers, self._amend, self._required_writer)
        self._readers = readers
        self._writer = writer
        self._abandon = weakref.finalize(self, _release, readers, writer)

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        busy_ms: int = 5_000,
        read_only: bool = False,
        measures: Measures = NO_MEASURES,
    ) -> Self:
        """Open the store in this file, which is created if it is missing; `read_only` never creates or changes it."""
        place = StoreLocation(path=Path(path), busy_ms=busy_ms, read_only=read_only)
        return await asyncio.to_thread(cls._opened, place, measures)

    @classmethod
    async def open_migrated(cls, path: str | os.PathLike[str], *, busy_ms: int = 5_000) -> Self:
        """Open an existing store for reading; one that an older handrail wrote is migrated first."""
        try:
            return await cls.open(path, busy_ms=busy_ms, read_only=True)
        except OlderSchema:
            async with await cls.open(path, busy_ms=busy_ms):
                pass
        return await cls.open(path, busy_ms=busy_ms, read_only=True)

    @classmethod
    def _opened(cls, place: StoreLocation, measures: Measures = NO_MEASURES) -> Self:
        migrations = shipped()
        if place.read_only:
            connection = open_reader(place)
            try:
                require_present_schema(connection, place, migrations)
            finally:
                connection.close()
            return cls(place, Readers(place), None)
        return cls(place, Readers(place), Writer(open_writer(place, migrations), place, measures))

    async def close(self) -> None:
        """Write what is queued, empty the write-ahead log into the file, and close all connections."""
        self._abandon.detach()
        if self._writer is not None:
            self._writer.stop()
        await asyncio.to_thread(self._readers.close)  # first, so that the writer's connection is the last to close
        if self._writer is not None:
            await asyncio.to_thread(self._writer.join)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- the journal ------------------------------------------------------------------------------

    async def append(self, records: Sequence[Record], change: Change, *, lease: Lease | None = None) -> None:
        """Append the records of one stream and their change, all or nothing, synced when this returns."""
        size = admitted_bytes(records, change, lease)
        future = asyncio.get_running_loop().create_future()
        self._required_writer().put(Append(tuple(records), change, future, lease), size)
        await future

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        """The records of a stream with n > after, in order."""

        def question(connection: sqlite3.Connection) -> list[Record] | Tombstone:
            asked = (stream, after, max(0, limit))
            rows = sqlite_rows.event_rows(connection, queries.STREAM, asked)
            if not rows:  # both from one snapshot: the events may be coming back just now
                with one_view(connection):
                    if stone := sqlite_archiving.tombstone(connection, stream):
                        return stone
                    rows = sqlite_rows.event_rows(connection, queries.STREAM, asked)
            return [Record(*row[1:]) for row in rows]

        found = await self._readers.ask(question)
        if isinstance(found, Tombstone):
            return await asyncio.to_thread(self._archives.files.records, found, after=after, limit=limit)
        return found

    async def definition(self, content_hash: str) -> bytes | None:
        """The canonical text of a definition that was ever pinned or saved."""

        def question(connection: sqlite3.Connection) -> bytes | None:
            row = connection.execute(queries.DEFINITION, (content_hash,)).fetchone()
            if row is not None and not isinstance(row[0], bytes):
                raise IntegrityBroken(f"the definition {content_hash} is damaged")
            return None if row is None else row[0]

        return await self._readers.ask(question)

    # --- projections ------------------------------------------------------------------------------

    async def run(self, run: str) -> RunRow | None:
        """One run at a glance."""
        return next(iter(await self._values(queries.RUN, (run,), RunRow)), None)

    async def runs(
        self, *, status: Sequence[str] = (), after: str = "", limit: int = 50, project: str | None = None
    ) -> list[RunRow]:
        """Runs by id, those with the given statuses and of the given project only, if any are given."""
        limit = max(0, limit)
        if project is not None:  # the index has the status before the id, so all statuses are asked for one by one
            wanted = sorted(set(status or RunStatus))
            each = [parameter for one in wanted for parameter in (project, one, after, limit)]
            return await self._values(queries.runs_of(len(wanted), in_project=True), (*each, limit), RunRow)
        if not status:
            return await self._values(queries.RUNS, (after, limit), RunRow)
        wanted = sorted(set(status))
        each = [parameter for one in wanted for parameter in (one, after, limit)]
        return await self._values(queries.runs_of(len(wanted)), (*each, limit), RunRow)

    async def run_counts(self) -> list[RunCount]:
        """How many runs each project has, by status."""
        return await self._values(queries.RUN_COUNTS, (), RunCount)

    async def steps(self, run: str) -> list[StepRow]:
        """The steps of a run that events have touched, by path."""
        rows = await self._values(queries.STEPS, (run,), StepRow)
        return rows or await archived_steps(self, run)

    async def plan(self, plan: str, *, project: str = "") -> PlanRow | None:
        """One plan of a project at a glance."""
        return next(iter(await self._values(queries.PLAN, (project, plan), PlanRow)), None)

    async def plans(self, *, after: str = "", limit: int = 50, project: str | None = None) -> list[PlanRow]:
        """Plans by id, retired ones too: those that a project sees, or by project those of all."""
        limit = max(0, limit)
        if project is None:
            return await self._values(queries.PLANS, (*unscoped(after), limit), PlanRow)
        return await self._values(queries.PLANS_OF_PROJECT, sqlite_rows.numbered(project, after, limit), PlanRow)

    # --- the archive ------------------------------------------------------------------------------

    async def end(self) -> Mark:
        """The mark of everything in the store."""
        return Mark.at(await self._readers.ask(lambda connection: connection.execute(queries.LAST_PLACE).fetchone()[0]))

    async def scan(self, *, after: Mark = START, size: int = 2_000) -> AsyncIterator[list[Placed]]:
        """All records by position in the store, in batches, from one snapshot."""
        place = after.place
        snapshot = await self._readers.snapshot()
        try:
            while batch := await self._readers.batch(snapshot, after=place, size=max(1, size)):
                yield batch
                place = batch[-1].seq
        finally:
            self._readers.leave(snapshot)

    async def rows(
        self, *, after: Mark = START, stops: Sequence[Mark] = (), size: int = 2_000
    ) -> AsyncIterator[list[Row]]:
        """The same as plain columns, of whatever types are stored; one lane is in the order of its stops anyway."""
        place = after.place
        snapshot = await self._readers.snapshot()
        try:
            while batch := await self._readers.rows(snapshot, after=place, size=max(1, size)):
                yield batch
                place = batch[-1][1]
        finally:
            self._readers.leave(snapshot)

    async def latest(self, *, until: int = LAST, size: int = 2_000) -> list[Placed]:
        """The newest records up to a position, newest first."""

        def question(connection: sqlite3.Connection) -> list[Placed]:
            rows = sqlite_rows.event_rows(connection, queries.LATEST, (until, max(1, size)))
            return [Placed(row[0], Record(*row[1:])) for row in rows]

        return await self._readers.ask(question)

    async def mark_at(self, at: int) -> Mark:
        """A mark behind which all events of this instant or later are: positions are in the order of time."""

        def question(connection: sqlite3.Connection) -> Mark:
            with one_view(connection):
                return Mark.at(sqlite_rows.place_at(connection, at))

        return await self._readers.ask(question)

    async def heads(self, *, after: Mark = START) -> tuple[Mark, list[Head]]:
        """The mark of everything in the store, and the ends of all streams that changed behind the mark `after`."""

        def question(connection: sqlite3.Connection) -> tuple[Mark, list[Head]]:
            with one_view(connection):
                (last,) = connection.execute(queries.LAST_PLACE).fetchone()
                if after.place > 0:
                    rows = connection.execute(queries.HEADS_BEHIND, (after.place,)).fetchall()
                else:
                    rows = connection.execute(queries.HEADS_WITH_ARCHIVED).fetchall()
                return Mark.at(last), sqlite_rows.heads(rows)

        return await self._readers.ask(question)

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Others are found by looking."""
        return never_heard(heard)

    async def definitions(self) -> list[tuple[str, bytes]]:
        """Every definition by content hash."""
        return await self._readers.ask(
            lambda connection: sqlite_rows.definitions(connection.execute(queries.DEFINITIONS).fetchall())
        )

    async def flaws(self, *, thorough: bool = True) -> list[str]:
        """The errors that the database finds in its own file; empty if there are none."""
        return await self._readers.ask(lambda connection: flaws_of(connection, thorough=thorough))

    async def rebuild(self, stream: str, change: Change) -> None:
        """Replace the stored projections of a stream."""
        require_belonging(stream, change)
        await self._amend(lambda connection, appender: sqlite_amend.rebuild(connection, appender, stream, change))

    async def forget(self, stream: str) -> None:
        """Remove the projections of a stream that has no events."""
        await self._amend(lambda connection, _: sqlite_amend.forget(connection, stream))

    async def erase(self, record: Record, note: Sequence[Record], change: Change) -> None:
        """Replace the stored record with `record`, append the note, rewrite the projections; leave no old bytes."""
        admitted_bytes(note, NO_CHANGE)
        require_belonging(record.stream, change)
        kept = tuple(note)
        await self._amend(
            lambda connection, appender: sqlite_amend.erase(connection, appender, record, kept, change), scrubs=True
        )

    def archives(self) -> SqliteArchives:
        """Archived runs."""
        return self._archives

    def nodes(self) -> SqliteNodes:
        """Who works on this store."""
        return SqliteNodes(self._readers, self._write_leases)

    def outbox(self) -> SqliteOutbox:
        """What waits to be sent to channels."""
        return SqliteOutbox(self._readers, self._write_leases)

    # --- leases -----------------------------------------------------------------------------------

    async def beat(self, owner: str) -> None:
        """Record that the owner is alive."""
        require_owner(owner)
        await self._write_leases(lambda connection, _: sqlite_lease.beat(connection, owner))

    async def lease_holders(
        self,
        *,
        after: str = "",
        limit: int = 1_000,
        project: str | None = None,
        is_awake: bool = False,
        now: int = FOR_EVER,
    ) -> list[LeaseHolder]:
        """The running or compensating runs that handrail executes, of a project or of all, by id, with their owners."""
        limit = max(0, limit)
        if project is None:
            return await self._values(queries.HOLDINGS, {"after": after, "limit": limit}, LeaseHolder)
        return await self._values(
            queries.HOLDINGS_OF_PROJECT, {"after": after, "limit": limit, "project": project}, LeaseHolder
        )

    async def lease_holder(self, run: str, *, project: str | None = None) -> LeaseHolder | None:
        """The same for one run; None if it has no work for handrail, or not in this project."""
        return next(iter(await self._values(queries.HOLDING, sqlite_rows.numbered(run, project), LeaseHolder)), None)

    async def claim(self, owner: str, lease_holders: Sequence[LeaseHolder]) -> list[Lease]:
        """Claim those runs whose lease is unchanged since it was seen; the leases that were granted."""
        require_owner(owner)
        require_few(lease_holders)
        seen, taken = tuple(lease_holders), list[Lease]()

        def write(connection: sqlite3.Connection, appender: Appender) -> None:
            # Replaced, not extended: the transaction may be repeated.
            taken[:] = sqlite_lease.claim(connection, appender, owner, seen)

        await self._write_leases(write)
        return taken

    async def release(
        self,
        leases: Sequence[Lease],
        *,
        resting: Mapping[str, int] = NONE_RESTS,
        until: Mapping[str, int] = NONE_RESTS,
    ) -> None:
        """Release the leases that are still held as given; others are not changed."""
        require_few(leases)
        held = tuple(leases)
        await self._write_leases(lambda connection, appender: sqlite_lease.release(connection, appender, held))

    async def hand_over(self, lease: Lease, *, n: int, needs: str) -> None:
        """Release a lease, and say what the node must have that goes on, as of the run's event `n`."""
        await self._write_leases(
            lambda connection, appender: sqlite_lease.hand_over(connection, appender, lease, n, needs)
        )

    async def retire(self, owner: str) -> None:
        """Release all leases of an owner, and forget the owner."""
        require_owner(owner)
        await self._write_leases(lambda connection, appender: sqlite_lease.retire(connection, appender, owner))

    # --- internal ---------------------------------------------------------------------------------

    def _required_writer(self) -> Writer:
        if self._writer is None:
            raise reading_only(self._place.name)
        return self._writer

    async def _amend(self, write: Callable[[sqlite3.Connection, Appender], None], *, scrubs: bool = False) -> None:
        future = asyncio.get_running_loop().create_future()
        self._required_writer().put(Amendment(write, future, scrubs), 0)
        await future

    async def _write_leases(self, write: Callable[[sqlite3.Connection, Appender], None]) -> None:
        future = asyncio.get_running_loop().create_future()
        self._required_writer().put(LeaseWrite(write, future), 0)
        await future

    async def _values(
        self, query: str, parameters: sqlite_rows.Parameters, type_: type[sqlite_rows.Value]
    ) -> list[sqlite_rows.Value]:
        return await self._readers.ask(lambda connection: sqlite_rows.values(connection, query, parameters, type_))


def _release(readers: Readers, writer: Writer | None) -> None:
    """Stop the threads of a store that was garbage-collected without being closed."""
    readers.abandon()
    if writer is not None:
        writer.stop()
