"""The PostgreSQL store: the journal, its projections and leases in one database, for many machines at once.

Only the public class: it passes writes to the writer (writer.py) and queries to connections that it lends
(connections.py). The SQL is in queries.py and sql/; why there are lanes: docs/decisions/0015."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from handrail.domain.errors import Forbidden, Unavailable
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.mark import START, Mark
from handrail.domain.journal.projection import NO_CHANGE, Change, PlanRow, RunCount, RunRow, StepRow
from handrail.domain.project import unscoped
from handrail.domain.run.status import RunStatus
from handrail.engine.journal import LAST, Placed, Row
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.engine.running.lease import FOR_EVER, NONE_RESTS, Lease, LeaseHolder
from handrail.storage.admission import admitted_bytes, require_belonging, require_few, require_owner
from handrail.storage.archives.archive_folder import ArchiveFolder
from handrail.storage.archives.archived_steps import archived_steps
from handrail.storage.node_box import NodeBox
from handrail.storage.outbox.postgres_outbox import PostgresOutbox
from handrail.storage.postgres import amend as postgres_amend
from handrail.storage.postgres import lease as postgres_lease
from handrail.storage.postgres import queries
from handrail.storage.postgres import rows as postgres_rows
from handrail.storage.postgres.address import Address
from handrail.storage.postgres.append import LaneAppend, Streams
from handrail.storage.postgres.archives.run_archive import PostgresArchives
from handrail.storage.postgres.call_limits import PostgresLimits
from handrail.storage.postgres.checkpoint_table import CheckpointTable
from handrail.storage.postgres.connections import Connection, Connections
from handrail.storage.postgres.faults import BELOW, store_error
from handrail.storage.postgres.lane_walk import era_of, walk
from handrail.storage.postgres.migration import migrate, missing, shipped
from handrail.storage.postgres.news import News
from handrail.storage.postgres.nodes import PostgresNodes
from handrail.storage.postgres.sealed_secrets import SealedSecrets
from handrail.storage.postgres.texts import stored
from handrail.storage.postgres.writer import LaneWriter, WriteTask

Result = TypeVar("Result")


class PostgresStore:
    """A store in a PostgreSQL database. Open it with `await PostgresStore.open(url)`, and close it."""

    def __init__(
        self, connections: Connections, news: News, writer: LaneWriter | None, archives: ArchiveFolder | None = None
    ) -> None:
        self._connections = connections
        self._archives = PostgresArchives(connections, self._write, archives)
        self._news = news
        self._writer = writer

    @classmethod
    async def open_migrated(cls, url: str, *, busy_ms: int = 5_000, archives: ArchiveFolder | None = None) -> Self:
        """Open a store for reading; its tables are made or brought up to date first."""
        async with await cls.open(url, busy_ms=busy_ms):
            pass
        return await cls.open(url, busy_ms=busy_ms, read_only=True, archives=archives)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        busy_ms: int = 5_000,
        read_only: bool = False,
        measures: Measures = NO_MEASURES,
        archives: ArchiveFolder | None = None,
    ) -> Self:
        """Open the store at this address; its tables are made if they are missing, unless it is only read.

        `archives` is where the events of archived runs are."""
        connections = Connections(Address(url), wait_s=busy_ms / 1_000)
        try:
            await connections.check()
            if read_only:
                await _require_present_schema(connections)
                return cls(connections, News(connections), None, archives)
            await migrate(connections, shipped())
        except BaseException:
            await connections.close()
            raise
        news = News(connections)
        return cls(connections, news, LaneWriter(connections, news.wrote, measures), archives)

    @property
    def name(self) -> str:
        """Where it is, without user and password."""
        return self._connections.name

    def checkpoints(self, node: str) -> CheckpointTable:
        """The checkpoint log beside the events; `node` is who takes turns in signing."""
        return CheckpointTable(self._connections, node)

    def secrets(self, key: str, box: NodeBox, boxes: Callable[[], Awaitable[Mapping[str, str]]]) -> SealedSecrets:
        """The secrets of open runs, as this node opens and seals them."""
        return SealedSecrets(self._connections, key, box, boxes)

    def nodes(self) -> PostgresNodes:
        """Who works on this store."""
        return PostgresNodes(self._connections)

    def outbox(self) -> PostgresOutbox:
        """What waits to be sent to channels."""
        return PostgresOutbox(self._connections)

    def limits(self) -> PostgresLimits:
        """Limits of calls over all nodes."""
        return PostgresLimits(self._connections)

    async def open_era(self) -> int:
        """Open the next era: streams that are born from now on are in another partition. Its number."""

        async def write(connection: Connection, _: Streams) -> int:
            await connection.execute(queries.LOCK_ERAS)
            row = await connection.fetchrow(queries.OPEN_ERA)
            return int(row[1])

        return await self._write(write)

    async def close(self) -> None:
        """Write what is queued, and close all connections."""
        if self._writer is not None:
            await self._writer.close()
        await self._news.close()
        await self._connections.close()

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
        self._required_writer().put(LaneAppend(tuple(records), change, future, lease), size)
        await future

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        """The records of a stream with n > after, in order."""
        rows = await self._connections.ask(queries.STREAM, stored(stream), after, max(0, limit))
        if not rows and (stone := await self._archives.tombstone(stream)):
            return await asyncio.to_thread(self._archives.files.records, stone, after=after, limit=limit)
        return [postgres_rows.record_of(row) for row in rows]

    async def definition(self, content_hash: str) -> bytes | None:
        """The canonical text of a definition that was ever pinned or saved."""
        rows = await self._connections.ask(queries.DEFINITION, stored(content_hash))
        return rows[0][0] if rows else None

    # --- projections ------------------------------------------------------------------------------

    async def run(self, run: str) -> RunRow | None:
        """One run at a glance."""
        return next(iter(await self._values(RunRow, queries.RUN, stored(run))), None)

    async def runs(
        self, *, status: Sequence[str] = (), after: str = "", limit: int = 50, project: str | None = None
    ) -> list[RunRow]:
        """Runs by id, those with the given statuses and of the given project only, if any are given."""
        limit, last = max(0, limit), stored(after)
        if project is not None:  # the index has the status before the id, so all statuses are asked for one by one
            wanted = sorted(set(status or RunStatus))
            return await self._values(RunRow, queries.RUNS_OF_PROJECT, wanted, last, limit, stored(project))
        if not status:
            return await self._values(RunRow, queries.RUNS, last, limit)
        return await self._values(RunRow, queries.RUNS_OF_STATUS, sorted(set(status)), last, limit)

    async def run_counts(self) -> list[RunCount]:
        """How many runs each project has, by status."""
        return await self._values(RunCount, queries.RUN_COUNTS)

    async def steps(self, run: str) -> list[StepRow]:
        """The steps of a run that events have touched, by path."""
        return await self._values(StepRow, queries.STEPS, stored(run)) or await archived_steps(self, run)

    async def plan(self, plan: str, *, project: str = "") -> PlanRow | None:
        """One plan of a project at a glance."""
        return next(iter(await self._values(PlanRow, queries.PLAN, stored(project), stored(plan))), None)

    async def plans(self, *, after: str = "", limit: int = 50, project: str | None = None) -> list[PlanRow]:
        """Plans by id, retired ones too: those that a project sees, or by project those of all."""
        limit = max(0, limit)
        if project is None:
            return await self._values(PlanRow, queries.PLANS, *map(stored, unscoped(after)), limit)
        return await self._values(PlanRow, queries.PLANS_OF_PROJECT, stored(project), stored(after), limit)

    # --- the archive ------------------------------------------------------------------------------

    async def end(self) -> Mark:
        """The mark of everything in the store."""
        return Mark(tuple((lane, last) for lane, last in await self._connections.ask(queries.LANES)))

    async def scan(self, *, after: Mark = START, size: int = 2_000) -> AsyncIterator[list[Placed]]:
        """All records behind a mark, in batches, from one snapshot: each stream and each lane in order."""
        async for batch in self._walked(after, (), max(1, size)):
            if here := [postgres_rows.placed_of(row) for row in batch if not postgres_rows.is_archived(row)]:
                yield here

    async def rows(
        self, *, after: Mark = START, stops: Sequence[Mark] = (), size: int = 2_000
    ) -> AsyncIterator[list[Row]]:
        """The same as plain columns; what a stop covers comes before what it does not."""
        async for batch in self._walked(after, stops, max(1, size)):
            yield [postgres_rows.columns_of(row) for row in batch]

    async def latest(self, *, until: int = LAST, size: int = 2_000) -> list[Placed]:
        """The newest records up to a position, newest first."""
        rows = await self._connections.ask(queries.LATEST, until, max(1, size))
        return [postgres_rows.placed_of(row) for row in rows]

    async def mark_at(self, at: int) -> Mark:
        """A mark behind which all events of this instant or later are: lanes are about in the order of time."""
        return Mark.of(dict(map(tuple, await self._connections.ask(queries.PLACES_AT, at))))

    async def heads(self, *, after: Mark = START) -> tuple[Mark, list[Head]]:
        """The mark of everything in the store, and the ends of all streams that changed behind the mark `after`."""
        end = await self.end()
        if not after.lanes:
            return end, postgres_rows.heads(await self._connections.ask(queries.HEADS_OF_ALL))
        known, streams = after.counts, set[str]()
        for lane, last in end.lanes:  # lane by lane: as one join it takes a thousand times as long
            if last > (place := known.get(lane, 0)):
                rows = await self._connections.ask(queries.STREAMS_OF_LANE, era_of(lane), lane, place)
                streams |= {stream for (stream,) in rows}
        if not streams:
            return end, []
        return end, postgres_rows.heads(await self._connections.ask(queries.HEADS, sorted(streams)))

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call something soon after another process has written; never through a pooler."""
        return self._news.listen(heard)

    async def definitions(self) -> list[tuple[str, bytes]]:
        """Every definition by content hash."""
        return [(name, body) for name, body in await self._connections.ask(queries.DEFINITIONS)]

    async def flaws(self, *, thorough: bool = True) -> list[str]:
        """What does not fit together in the tables, as messages; empty if there is nothing."""
        ask = self._connections.ask
        lanes, ends = await ask(queries.UNEVEN_LANES), await ask(queries.UNEVEN_HEADS)
        found = [f"the places of lane {lane} do not go from 1 to its end" for (lane,) in lanes]
        found += [f"the end of {stream} is not its last event" for (stream,) in ends]
        if thorough:
            mixed = await ask(queries.UNORDERED_LANES)
            found += [f"lane {lane} is not in the order of its places" for (lane,) in mixed]
        return found

    async def rebuild(self, stream: str, change: Change) -> None:
        """Replace the stored projections of a stream."""
        require_belonging(stream, change)
        await self._write(lambda connection, known: postgres_amend.rebuild(connection, known, stream, change))

    async def forget(self, stream: str) -> None:
        """Remove the projections of a stream that has no events."""
        await self._write(lambda connection, known: postgres_amend.forget(connection, known, stream))

    async def erase(self, record: Record, note: Sequence[Record], change: Change) -> None:
        """Replace the stored record with `record`, append the note, and rewrite the projections of its stream."""
        admitted_bytes(note, NO_CHANGE)
        require_belonging(record.stream, change)
        kept = tuple(note)
        await self._write(lambda connection, known: postgres_amend.erase(connection, known, record, kept, change))

    def archives(self) -> PostgresArchives:
        """Archived runs."""
        return self._archives

    async def ask(self, query: str, *values: Any) -> list[Any]:
        """The rows that a query finds: for a host that keeps its own tables in the same database."""
        self._required_writer()
        return await self._connections.ask(query, *values)

    # --- leases -----------------------------------------------------------------------------------

    async def beat(self, owner: str) -> None:
        """Record that the owner is alive."""
        require_owner(owner)
        await self._write(lambda connection, _: postgres_lease.beat(connection, owner))

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
        limit, last = max(0, limit), stored(after)
        of_project = () if project is None else (stored(project),)
        if is_awake:
            query = queries.AWAKE if project is None else queries.AWAKE_IN_PROJECT
            rows = await self._connections.ask_planned(query, last, limit, now, *of_project)
            return postgres_rows.values(rows, LeaseHolder)
        query = queries.HOLDERS if project is None else queries.HOLDERS_OF_PROJECT
        return await self._values(LeaseHolder, query, last, limit, *of_project)

    async def lease_holder(self, run: str, *, project: str | None = None) -> LeaseHolder | None:
        """The same for one run; None if it has no work for handrail, or not in this project."""
        wanted = None if project is None else stored(project)
        return next(iter(await self._values(LeaseHolder, queries.HOLDER, stored(run), wanted)), None)

    async def claim(self, owner: str, lease_holders: Sequence[LeaseHolder]) -> list[Lease]:
        """Claim those runs whose lease is unchanged since it was seen; the leases that were granted."""
        require_owner(owner)
        require_few(lease_holders)
        seen = tuple(lease_holders)
        return await self._write(lambda connection, known: postgres_lease.claim(connection, known, owner, seen))

    async def release(
        self,
        leases: Sequence[Lease],
        *,
        resting: Mapping[str, int] = NONE_RESTS,
        until: Mapping[str, int] = NONE_RESTS,
    ) -> None:
        """Release the leases that are still held as given; others are not changed."""
        require_few(leases)
        held, rests = tuple(leases), {run: (n, until.get(run)) for run, n in resting.items()}
        await self._write(lambda connection, known: postgres_lease.release(connection, known, held, rests))

    async def hand_over(self, lease: Lease, *, n: int, needs: str) -> None:
        """Release a lease, and say what the node must have that goes on, as of the run's event `n`."""
        await self._write(lambda connection, known: postgres_lease.hand_over(connection, known, lease, n, needs))

    async def retire(self, owner: str) -> None:
        """Release all leases of an owner, and forget the owner."""
        require_owner(owner)
        await self._write(lambda connection, known: postgres_lease.retire(connection, known, owner))

    # --- internal ---------------------------------------------------------------------------------

    def _required_writer(self) -> LaneWriter:
        self._connections.require_open()
        if self._writer is None:
            raise Forbidden(f"{self.name} is open for reading only", hint="open the store for writing")
        return self._writer

    async def _write(self, write: Callable[[Connection, Streams], Awaitable[Result]]) -> Result:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._required_writer().put(WriteTask(write, future))
        return await future

    async def _values(self, type_: type[postgres_rows.Value], query: str, *values: Any) -> list[postgres_rows.Value]:
        return postgres_rows.values(await self._connections.ask(query, *values), type_)

    async def _walked(self, after: Mark, stops: Sequence[Mark], size: int) -> AsyncIterator[list[Any]]:
        async with self._connections.snapshot() as connection:
            end = Mark(tuple((lane, last) for lane, last in await connection.fetch(queries.LANES)))
            for stop in (*stops, end):
                until = stop.shared(end)
                async for batch in walk(connection, after, until, size):
                    yield batch
                    self._connections.require_open()
                after = after.joined(until)


async def _require_present_schema(connections: Connections) -> None:
    try:
        async with connections.reading() as connection:
            if await missing(connection, shipped()):
                raise Unavailable(
                    f"{connections.name} is empty or was written by an older handrail", hint="open it once for writing"
                )
    except BELOW as error:
        raise store_error(error, connections.name) from error
