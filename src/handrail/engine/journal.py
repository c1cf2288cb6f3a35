"""The journal's protocols: what the engine needs from a store. The stores are in storage/.

Each protocol is as small as its caller's need: `Journal` for dispatch, `ProjectionReader` for views, `Archive` for
audit and operators. One store implements all three."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct

from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.mark import ONE_LANE, START, Mark
from handrail.domain.journal.projection import Change, PlanRow, RunCount, RunRow, StepRow
from handrail.engine.running.lease import Lease

FAR_FUTURE: Final = 2**62
"""An instant after every event."""
LAST: Final = 2**62
"""A position behind every event."""


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
    """A record with its place in the whole store."""

    seq: int
    """Its position in the order of all events; with one lane counted from 1 without gaps, else only growing."""
    record: Record
    lane: int = ONE_LANE
    number: int = 0
    """With several lanes: its place in its lane, counted from 1 without gaps."""


def mark_after(mark: Mark, batch: Sequence[Placed]) -> Mark:
    """The mark when a batch of a scan that started there was read, too."""
    if batch and batch[0].lane == ONE_LANE:
        return Mark.at(batch[-1].seq)
    return mark.after((placed.lane, placed.number) for placed in batch)


def never_heard(_: Callable[[], None]) -> Callable[[], None]:
    """What `listen` does in a store that can't tell."""
    return lambda: None


class Archive(Protocol):
    """The whole store: for verification, checkpoints and operators."""

    async def end(self) -> Mark:
        """The mark of everything in the store."""
        ...

    def scan(self, *, after: Mark = START, size: int = 2_000) -> AsyncIterator[list[Placed]]:
        """All records behind a mark, in batches, from one consistent snapshot: each stream and each lane in order."""
        ...

    def rows(self, *, after: Mark = START, stops: Sequence[Mark] = (), size: int = 2_000) -> AsyncIterator[list[Row]]:
        """The same as plain columns (lane, place in it, then the fields of a Record), unvalidated; what each of the
        `stops`, oldest first, covers comes before what it does not.

        For the audit: values of wrong types are passed on, not refused."""
        ...

    async def latest(self, *, until: int = LAST, size: int = 2_000) -> list[Placed]:
        """The newest records up to a position, newest first."""
        ...

    async def mark_at(self, at: int) -> Mark:
        """A mark behind which all events of this instant or later are, and few that are older."""
        ...

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Call something soon after others have written, as far as this store can tell; returns how to stop that.

        Nothing may rely on it: a store that can't tell never calls, so that everyone also looks from time to time."""
        ...

    async def heads(self, *, after: Mark = START) -> tuple[Mark, list[Head]]:
        """The mark of everything in the store, and the ends of all streams that changed behind the mark `after`."""
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
