"""The journal's protocols: what the engine needs from a store. The stores are in storage/.

Each protocol is as small as its caller's need: `Journal` for dispatch, `ProjectionReader` for views, `Archive` for
audit and operators. One store implements all three."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.projection import Change, PlanRow, RunCount, RunRow, StepRow
from handrail.engine.running.lease import Lease

FAR_BEHIND: Final = 2**62
"""A place after every event: `heads(after=FAR_BEHIND)` returns only the number of events."""


class Journal(Protocol):
    """Append and read: all that dispatch needs."""

    async def append(self, records: Sequence[Record], change: Change, *, lease: Lease | None = None) -> None:
        """Append the records of one stream and their change, all or nothing, synced when this returns.

        Raises JournalConflict unless the first record follows the stream's current end (by number and hash). With a
        lease, raises LeaseLost unless that lease is current; if the run has had no owner since it started or last ended
        and this is the first epoch, the append claims it. A change that ends the run frees its lease."""
        ...

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        """The records of a stream with n > after, in order."""
        ...

    async def definition(self, content_hash: str) -> bytes | None:
        """The canonical text of a definition that was ever pinned or saved."""
        ...


class ProjectionReader(Protocol):
    """Reads the projections, for fast lists."""

    async def run(self, run: str) -> RunRow | None:
        """One run at a glance."""
        ...

    async def runs(
        self, *, status: Sequence[str] = (), after: str = "", limit: int = 50, project: str | None = None
    ) -> list[RunRow]:
        """Runs by id; only those with the given statuses and of the given project, if any are given."""
        ...

    async def run_counts(self) -> list[RunCount]:
        """How many runs each project has, by status."""
        ...

    async def steps(self, run: str) -> list[StepRow]:
        """The steps of a run that have events, by path."""
        ...

    async def plan(self, plan: str, *, project: str = "") -> PlanRow | None:
        """One plan of a project at a glance."""
        ...

    async def plans(self, *, after: str = "", limit: int = 50, project: str | None = None) -> list[PlanRow]:
        """The plans that a project sees, by id, retired ones too: its own, and those from before projects that it has
        not saved itself. Without a project those of all, by project and id; `after` is then a scoped name."""
        ...


Row: TypeAlias = tuple[Any, ...]


class Placed(Struct, frozen=True, gc=False):
    """A record with its place in the whole store, counted from 1 without gaps."""

    seq: int
    record: Record


class Archive(Protocol):
    """The whole store: for verification, checkpoints and operators."""

    def scan(self, *, after: int = 0, size: int = 2_000) -> AsyncIterator[list[Placed]]:
        """All records in store order, in batches, from one consistent snapshot."""
        ...

    def rows(self, *, after: int = 0, size: int = 2_000) -> AsyncIterator[list[Row]]:
        """The same as plain columns (place, then the fields of a Record), unvalidated.

        For the audit: values of wrong types are passed on, not refused."""
        ...

    async def heads(self, *, after: int = 0) -> tuple[int, list[Head]]:
        """The number of events in the store, and the ends of all streams that changed after place `after`."""
        ...

    async def definitions(self) -> list[tuple[str, bytes]]:
        """Every definition by content hash."""
        ...

    async def flaws(self, *, thorough: bool = True) -> list[str]:
        """What the database itself finds wrong with its file, as messages; empty if nothing.

        `thorough` also compares every index with its table."""
        ...

    async def rebuild(self, stream: str, change: Change) -> None:
        """Replace a stream's stored projections."""
        ...

    async def forget(self, stream: str) -> None:
        """Remove the projections of a stream that has no events."""
        ...

    async def erase(self, record: Record, note: Sequence[Record], change: Change) -> None:
        """Replace the stored record by `record` (same place and hash, content erased), append the note, and rewrite the
        projections of its stream, in one transaction; no copy of the old bytes stays in the file."""
        ...
