"""The memory store: the same guarantees as the SQLite store, for as long as the process lives.

For tests, trials and simulations. No write awaits anything in the middle, so each write is atomic."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from types import TracebackType
from typing import Annotated, Final, Self, TypeAlias

import msgspec
from msgspec.structs import astuple, replace

from handrail.domain.errors import Conflict, Invalid, NotFound
from handrail.domain.journal.archived import archived_refusal
from handrail.domain.journal.chain import Head, Record, first_break
from handrail.domain.journal.event import PLAN_PREFIX, Mode
from handrail.domain.journal.mark import ONE_LANE, START, Mark
from handrail.domain.journal.projection import NO_CHANGE, Change, PlanRow, RunCount, RunRow, StepRow
from handrail.domain.project import NO_PROJECT, plan_in, unscoped
from handrail.domain.run.status import RUN_WORKING
from handrail.engine.journal import LAST, Placed, Row, never_heard
from handrail.engine.running.lease import FOR_EVER, NONE_RESTS, Lease, LeaseHolder
from handrail.storage.admission import (
    admitted_bytes,
    closed,
    is_held,
    lease_lost,
    refusal,
    require_belonging,
    require_erasure,
    require_few,
    require_owner,
    steps_without_run,
)
from handrail.storage.archives.archived_steps import archived_steps
from handrail.storage.archives.memory_archives import MemoryRunArchive, MemoryTables
from handrail.storage.memory_nodes import MemoryNodes
from handrail.storage.outbox.memory_outbox import MemoryOutbox

NAME: Final = "in memory"

Int: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Storable: TypeAlias = tuple[str, Int, Int, str, str, str | None, Int | None, Int, bytes, bytes, bytes, bytes | None]
"""The types of a record's fields: the same as an SQLite table with strict columns accepts."""


class MemoryStore:
    """A store without a file."""

    def __init__(self) -> None:
        self._places: list[Record] = []
        self._streams: dict[str, list[int]] = {}
        self._runs: dict[str, RunRow] = {}
        self._steps: dict[str, dict[str, StepRow]] = {}
        self._plans: dict[tuple[str, str], PlanRow] = {}
        self._definitions: dict[str, bytes] = {}
        self._leases: dict[str, Lease] = {}
        self._beats: dict[str, int] = {}
        self._needs: dict[str, tuple[int, str]] = {}
        self._nodes = MemoryNodes()
        self._outbox = MemoryOutbox()
        self._archives = MemoryRunArchive(
            MemoryTables(self._places, self._streams, self._runs, self._steps),
            require_following=self._require_following,
            put_events=self._put_events,
            put_projections=self._put_projections,
            require_open=self._require_open,
            forget_notices=self._outbox.forget,
        )
        self._is_closed = False

    async def close(self) -> None:
        """Refuse all further calls."""
        self._is_closed = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- the journal ------------------------------------------------------------------------------

    async def append(self, records: Sequence[Record], change: Change, *, lease: Lease | None = None) -> None:
        """Append the records of one stream and their change, all or nothing."""
        admitted_bytes(records, change, lease)
        self._require_open()
        if records[0].stream in self._archives.stones:
            raise archived_refusal(records[0].stream)
        # All checks come before the first change, so that a refused append leaves nothing behind: there is no rollback
        # here.
        self._require_held(lease, is_first=records[0].n == 1)
        self._require_following(records)
        self._require_run(records[0].stream, change)
        self._put_events(records)
        self._put_projections(change)
        if lease is not None:
            self._leases[lease.run] = lease
        if change.run is not None and change.run.ended is not None:
            self._leases.pop(change.run.id, None)

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        """The records of a stream with n > after, in order."""
        self._require_open()
        if stone := self._archives.stones.get(stream):
            return self._archives.files.records(stone, after=after, limit=limit)
        places = self._streams.get(stream, [])[max(0, after) :]
        return [self._places[place] for place in places[: max(0, limit)]]

    async def definition(self, content_hash: str) -> bytes | None:
        """The canonical text of a definition that was ever pinned or saved."""
        self._require_open()
        return self._definitions.get(content_hash)

    # --- projections ------------------------------------------------------------------------------

    async def run(self, run: str) -> RunRow | None:
        """One run at a glance."""
        self._require_open()
        return self._runs.get(run)

    async def runs(
        self, *, status: Sequence[str] = (), after: str = "", limit: int = 50, project: str | None = None
    ) -> list[RunRow]:
        """Runs by id, those with the given statuses and of the given project only, if any are given."""
        self._require_open()
        wanted = [
            id_
            for id_, row in self._runs.items()
            if id_ > after and (not status or row.status in status) and project in (None, row.project)
        ]
        return [self._runs[id_] for id_ in sorted(wanted)[: max(0, limit)]]

    async def run_counts(self) -> list[RunCount]:
        """How many runs each project has, by status."""
        self._require_open()
        counts = Counter((row.project, row.status) for row in self._runs.values())
        return [RunCount(project, status, runs) for (project, status), runs in sorted(counts.items())]

    async def steps(self, run: str) -> list[StepRow]:
        """The steps of a run that events have touched, by path."""
        self._require_open()
        rows = self._steps.get(run, {})
        return [rows[path] for path in sorted(rows)] or await archived_steps(self, run)

    async def plan(self, plan: str, *, project: str = "") -> PlanRow | None:
        """One plan of a project at a glance."""
        self._require_open()
        return self._plans.get((project, plan))

    async def plans(self, *, after: str = "", limit: int = 50, project: str | None = None) -> list[PlanRow]:
        """Plans by id, retired ones too: those that a project sees, or by project those of all."""
        self._require_open()
        if project is None:
            wanted = sorted(key for key in self._plans if key > unscoped(after))
        else:
            seen = {plan: NO_PROJECT for owner, plan in self._plans if owner == NO_PROJECT and plan > after}
            seen |= {plan: project for owner, plan in self._plans if owner == project and plan > after}
            wanted = [(owner, plan) for plan, owner in sorted(seen.items())]
        return [self._plans[key] for key in wanted[: max(0, limit)]]

    # --- the archive ------------------------------------------------------------------------------

    async def end(self) -> Mark:
        """The mark of everything in the store."""
        self._require_open()
        return Mark.at(len(self._places))

    async def scan(self, *, after: Mark = START, size: int = 2_000) -> AsyncIterator[list[Placed]]:
        """All records by position in the store, in batches, from one snapshot."""
        self._require_open()
        first, size = after.place, max(1, size)
        placed = [Placed(first + index + 1, record) for index, record in enumerate(self._places[first:])]
        view = [one for one in placed if not self._is_gone(one.record)]
        for start in range(0, len(view), size):
            yield view[start : start + size]
            self._require_open()

    async def rows(
        self, *, after: Mark = START, stops: Sequence[Mark] = (), size: int = 2_000
    ) -> AsyncIterator[list[Row]]:
        """The same as plain columns; one lane is in the order of its stops anyway."""
        self._require_open()
        view = list(enumerate(self._places[after.place :], after.place + 1))
        for start in range(0, len(view), max(1, size)):
            yield [self._row(seq, record) for seq, record in view[start : start + max(1, size)]]
            self._require_open()

    async def latest(self, *, until: int = LAST, size: int = 2_000) -> list[Placed]:
        """The newest records up to a position, newest first."""
        self._require_open()
        last = max(0, min(until, len(self._places)))
        found = (Placed(place, self._places[place - 1]) for place in range(last, 0, -1))
        return list(islice((one for one in found if not self._is_gone(one.record)), max(1, size)))

    async def mark_at(self, at: int) -> Mark:
        """A mark behind which all events of this instant or later are."""
        self._require_open()
        return Mark.at(bisect_left(self._places, at, key=attrgetter("at")))

    async def heads(self, *, after: Mark = START) -> tuple[Mark, list[Head]]:
        """The mark of everything in the store, and the ends of all streams that changed behind the mark `after`."""
        self._require_open()
        changed = sorted({record.stream for record in self._places[after.place :]})
        return Mark.at(len(self._places)), [self._head(stream) for stream in changed]

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Others are found by looking."""
        return never_heard(heard)

    async def definitions(self) -> list[tuple[str, bytes]]:
        """Every definition by content hash."""
        self._require_open()
        return sorted(self._definitions.items())

    async def flaws(self, *, thorough: bool = True) -> list[str]:
        """Always empty: there is no file that could be damaged."""
        self._require_open()
        return []

    async def rebuild(self, stream: str, change: Change) -> None:
        """Replace the stored projections of a stream."""
        require_belonging(stream, change)
        self._require_open()
        if stream not in self._streams:
            raise NotFound(f"there is no stream {stream!r}")
        if stream in self._archives.stones:
            change = replace(change, steps=())
        self._replace_projections(stream, change)

    async def forget(self, stream: str) -> None:
        """Remove the projections of a stream that has no events."""
        self._require_open()
        if stream in self._streams:
            raise Conflict(f"{stream} has events; only a stream without events can be forgotten")
        self._replace_projections(stream, NO_CHANGE)

    async def erase(self, record: Record, note: Sequence[Record], change: Change) -> None:
        """Replace the stored record with `record`, append the note, and rewrite the projections of its stream."""
        admitted_bytes(note, NO_CHANGE)
        require_belonging(record.stream, change)
        self._require_open()
        stored = await self.read(record.stream, after=record.n - 1, limit=1)
        require_erasure(stored[0] if stored else None, record)
        self._require_following(note)
        self._replace_projections(record.stream, change)
        self._places[self._streams[record.stream][record.n - 1]] = record
        self._put_events(note)
        self._outbox.forget(record.stream, record.n)

    def archives(self) -> MemoryRunArchive:
        """Archived runs."""
        return self._archives

    # --- nodes ------------------------------------------------------------------------------------

    def nodes(self) -> MemoryNodes:
        """Who works on this store."""
        return self._nodes

    def outbox(self) -> MemoryOutbox:
        """What waits to be sent to channels."""
        return self._outbox

    # --- leases -----------------------------------------------------------------------------------

    async def beat(self, owner: str) -> None:
        """Record that the owner is alive."""
        require_owner(owner)
        self._require_open()
        self._beats[owner] = self._beats.get(owner, 0) + 1

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
        self._require_open()
        wanted = sorted(run for run in self._runs if run > after and self._has_work(run, project))
        return [self._lease_holder(run) for run in wanted[: max(0, limit)]]

    async def lease_holder(self, run: str, *, project: str | None = None) -> LeaseHolder | None:
        """The same for one run; None if it has no work for handrail, or not in this project."""
        self._require_open()
        return self._lease_holder(run) if run in self._runs and self._has_work(run, project) else None

    async def claim(self, owner: str, lease_holders: Sequence[LeaseHolder]) -> list[Lease]:
        """Claim those runs whose lease is unchanged since it was seen; the leases that were granted."""
        require_owner(owner)
        require_few(lease_holders)
        self._require_open()
        taken = []
        for seen in lease_holders:
            if self._has_work(seen.run) and _is_unchanged(self._lease_holder(seen.run), seen):
                self._leases[seen.run] = Lease(seen.run, owner, seen.epoch + 1)
                taken.append(self._leases[seen.run])
        self._beats.setdefault(owner, 1)  # last: `lease_holders` may show the claimer itself without a beat yet
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
        self._require_open()
        for lease in leases:
            if self._leases.get(lease.run) == lease:
                self._leases[lease.run] = replace(lease, owner="")  # the epoch stays, so that the next one is higher

    async def hand_over(self, lease: Lease, *, n: int, needs: str) -> None:
        """Release a lease, and say what the node must have that goes on, as of the run's event `n`."""
        self._require_open()
        if self._leases.get(lease.run) == lease:
            self._leases[lease.run] = replace(lease, owner="")
            self._needs[lease.run] = (n, needs)

    async def retire(self, owner: str) -> None:
        """Release all leases of an owner, and forget the owner."""
        require_owner(owner)
        self._require_open()
        for run, lease in self._leases.items():
            if lease.owner == owner:
                self._leases[run] = replace(lease, owner="")
        self._beats.pop(owner, None)

    # --- internal ---------------------------------------------------------------------------------

    def _require_open(self) -> None:
        if self._is_closed:
            raise closed(NAME)

    def _is_gone(self, record: Record) -> bool:
        return record.stream in self._archives.stones

    def _row(self, seq: int, record: Record) -> Row:
        if self._is_gone(record):
            return (ONE_LANE, seq, record.stream, record.n, *[None] * 8, record.hash, None)
        return (ONE_LANE, seq, *astuple(record))

    def _require_held(self, lease: Lease | None, *, is_first: bool) -> None:
        if lease is None:
            return
        held = self._leases.get(lease.run, Lease(lease.run, "", 0))
        if not is_held(lease, owner=held.owner, epoch=held.epoch, is_first=is_first):
            raise lease_lost(lease)

    def _has_work(self, run: str, project: str | None = None) -> bool:
        row = self._runs.get(run)
        if row is None or project not in (None, row.project):
            return False
        return row.status in RUN_WORKING and row.mode == Mode.RUN.value

    def _lease_holder(self, run: str) -> LeaseHolder:
        held = self._leases.get(run, Lease(run, "", 0))
        n, (at, needs) = self._runs[run].n, self._needs.get(run, (0, ""))
        return LeaseHolder(
            run, n, held.owner, held.epoch, self._beats.get(held.owner, 0), needs=needs if at == n else ""
        )

    def _require_following(self, records: Sequence[Record]) -> None:
        end = self._head(records[0].stream)
        try:
            msgspec.convert([astuple(record) for record in records], list[Storable])
            _, broken = first_break(end, records)
        except (TypeError, ValueError, OverflowError) as error:  # fields with types that can't be stored
            raise Invalid(f"an append to {end.stream!r} can't be stored: {error}") from error
        if broken is not None:
            raise refusal(end, broken)

    def _require_run(self, stream: str, change: Change) -> None:
        if change.steps and change.run is None and stream not in self._runs:
            raise steps_without_run(stream)

    def _head(self, stream: str) -> Head:
        places = self._streams.get(stream)
        return Head(stream, len(places), self._places[places[-1]].hash) if places else Head(stream)

    def _put_events(self, records: Sequence[Record]) -> None:
        places = self._streams.setdefault(records[0].stream, [])
        for record in records:
            places.append(len(self._places))
            self._places.append(record)

    def _put_projections(self, change: Change) -> None:
        if change.run is not None:
            self._runs[change.run.id] = change.run
        for step in change.steps:
            self._steps.setdefault(step.run, {})[step.path] = step
        if change.plan is not None:
            self._plans[change.plan.project, change.plan.id] = change.plan
        for content_hash, text in change.definitions:
            self._definitions.setdefault(content_hash, text)

    def _replace_projections(self, stream: str, change: Change) -> None:
        if change.steps and change.run is None:
            raise steps_without_run(stream)
        self._runs.pop(stream, None)
        self._steps.pop(stream, None)
        if stream.startswith(PLAN_PREFIX):
            self._plans.pop(plan_in(stream), None)
        self._put_projections(change)


def _is_unchanged(held: LeaseHolder, seen: LeaseHolder) -> bool:
    """Whether a run was neither taken nor released since, and its owner has not beaten."""
    return (held.owner, held.epoch, held.beat) == (seen.owner, seen.epoch, seen.beat)
