"""Archived runs of the memory store: their archives as bytes, and what is left of their events."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from handrail.domain.errors import Conflict, IntegrityBroken, NotFound
from handrail.domain.journal.archive_file import broken, content_of
from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Record
from handrail.domain.journal.projection import NO_CHANGE, Change, RunRow, StepRow
from handrail.engine.journal import Placed
from handrail.engine.run_archive import StoreSize
from handrail.storage.admission import admitted_bytes, require_ended
from handrail.storage.archives.archived_events import events_of


class MemoryArchives:
    """Archives without a folder."""

    def __init__(self) -> None:
        self._files: dict[str, bytes] = {}

    def names(self) -> list[str]:
        """The archives that are here."""
        return sorted(self._files)

    def read(self, archive: str) -> bytes:
        """The bytes of an archive."""
        if archive not in self._files:
            raise broken(archive, "is missing")
        return self._files[archive]

    def write(self, archive: str, data: bytes) -> None:
        """Keep an archive."""
        self._files[archive] = data

    def remove(self, archive: str) -> None:
        """Remove an archive; none is fine."""
        self._files.pop(archive, None)

    def placed(self, stone: Tombstone) -> list[Placed]:
        """All events of an archived run, with their positions."""
        run = events_of(stone, lambda name: content_of(self.read(name), name))
        return [Placed(one.place, one.record) for one in run]

    def records(self, stone: Tombstone, *, after: int, limit: int) -> list[Record]:
        """The events of an archived run after a number."""
        placed = self.placed(stone)
        return [one.record for one in placed[max(0, after) : max(0, after) + max(0, limit)]]


class MemoryTables(Struct, frozen=True):
    """What the store has of events and rows; shared with it."""

    places: list[Record]
    streams: dict[str, list[int]]
    runs: dict[str, RunRow]
    steps: dict[str, dict[str, StepRow]]


class MemoryRunArchive:
    """The archived runs of one store; see engine/run_archive.py."""

    def __init__(
        self,
        tables: MemoryTables,
        *,
        require_following: Callable[[Sequence[Record]], None],
        put_events: Callable[[Sequence[Record]], None],
        put_projections: Callable[[Change], None],
        require_open: Callable[[], None],
        forget_notices: Callable[[str], None],
    ) -> None:
        self.files = MemoryArchives()
        self.stones: dict[str, Tombstone] = {}
        self._tables = tables
        self._require_following, self._put_events = require_following, put_events
        self._put_projections, self._require_open = put_projections, require_open
        self._forget_notices = forget_notices

    async def placed(self, stream: str) -> list[Placed]:
        """All events of a stream with their positions, also of an archived run."""
        self._require_open()
        if stone := self.stones.get(stream):
            return self.files.placed(stone)
        tables = self._tables
        return [Placed(place + 1, tables.places[place]) for place in tables.streams.get(stream, [])]

    async def tombstone(self, stream: str) -> Tombstone | None:
        """What is left of a run, if its events are not here."""
        self._require_open()
        return self.stones.get(stream)

    async def tombstones(self, *, after: str = "", limit: int = 1_000) -> list[Tombstone]:
        """All archived runs, by id."""
        self._require_open()
        wanted = sorted(stream for stream in self.stones if stream > after)
        return [self.stones[stream] for stream in wanted[: max(0, limit)]]

    async def archive(self, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
        """Remove the events of ended runs, and leave their places and hashes."""
        self._start(note)
        for stone in stones:
            require_ended(stone, self._ended(stone.stream))
        self._put_events(note)
        for stone in stones:
            self.stones[stone.stream] = stone
            self._tables.steps.pop(stone.stream, None)
            for place in self._tables.streams[stone.stream]:
                self._tables.places[place] = husk(self._tables.places[place])

    async def unarchive(self, runs: Sequence[tuple[Sequence[Record], Change]], note: Sequence[Record]) -> None:
        """Put the events of archived runs back where they were."""
        self._start(note)
        for records, _ in runs:
            stream = records[0].stream
            places = self._tables.streams.get(stream, []) if stream in self.stones else []
            require_same([self._tables.places[place] for place in places], records)
        self._put_events(note)
        for records, change in runs:
            stream = records[0].stream
            self.stones.pop(stream)
            for place, record in zip(self._tables.streams[stream], records, strict=True):
                self._tables.places[place] = record
            self._put_projections(change)

    async def move(self, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
        """Note in which archive runs are now."""
        self._start(note)
        for stone in stones:
            if stone.stream not in self.stones:
                raise NotFound(f"{stone.stream} is not archived", hint="`handrail db list` shows the archived runs")
        self._put_events(note)
        self.stones.update({stone.stream: stone for stone in stones})
        for stone in stones:
            if not stone.archive:  # deleted: nothing may tell of it any more
                self._forget_notices(stone.stream)

    async def compact(self, *, pages: int) -> int:
        """Nothing: there is no file."""
        self._require_open()
        return 0

    async def size(self) -> StoreSize:
        """How much there is; what it takes in memory is not counted."""
        self._require_open()
        gone = sum(stone.n for stone in self.stones.values())
        events = len(self._tables.places) - gone
        return StoreSize(journal=0, events=events, archived=gone, archived_runs=len(self.stones))

    def _start(self, note: Sequence[Record]) -> None:
        admitted_bytes(note, NO_CHANGE)
        self._require_open()
        self._require_following(note)

    def _ended(self, stream: str) -> tuple[int, bytes, int, int | None] | None:
        run, places = self._tables.runs.get(stream), self._tables.streams.get(stream)
        if run is None or not places or stream in self.stones:
            return None
        last = self._tables.places[places[-1]]
        return last.n, last.hash, run.n, run.ended


def husk(record: Record) -> Record:
    """What stays of an archived event: its place, its instant for searching, and its hash."""
    return Record(record.stream, record.n, record.at, "", "", None, None, 0, b"", b"", record.hash)


def require_same(left: Sequence[Record], records: Sequence[Record]) -> None:
    """Refuse events that are not the archived ones."""
    stream = records[0].stream
    if not left:
        raise Conflict(f"{stream} is not archived", hint="`handrail db list` shows the archived runs")
    if [(one.n, one.hash) for one in left] != [(one.n, one.hash) for one in records]:
        raise IntegrityBroken(f"the events of {stream} are not the ones that were archived")
