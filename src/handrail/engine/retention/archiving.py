"""Archiving: moves ended runs from the journal into archive files, and back; nothing is removed that was not proved.

Async; uses the store's protocols. An archive is written, synced, read back and compared event by event; only then the
events leave the journal, in one transaction with the event that says where they are. So a kill at any point leaves
the events, or the archive and that event. The format of archives is in domain/journal/archive_file.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.errors import (
    Conflict,
    EventsDeleted,
    HandrailError,
    IntegrityBroken,
    JournalConflict,
    NotFound,
    Unavailable,
)
from handrail.domain.journal.archive_file import (
    ArchiveContent,
    ArchiveHeader,
    PlacedRecord,
    content_of,
    digest_of,
    file_bytes,
    packed,
    signed_bytes,
)
from handrail.domain.journal.archived import Tombstone, archived_run
from handrail.domain.journal.chain import Head, Record, first_break
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import STORE_STREAM, RunStarted
from handrail.domain.journal.projection import Change, RunRow
from handrail.domain.journal.store_event import (
    ArchivedRunsDeleted,
    RetentionEvent,
    RunsArchived,
    RunsUnarchived,
)
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.engine.clock import new_id
from handrail.engine.proving.checkpointer import Signer, store_id
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.record_writer import RecordWriter
from handrail.engine.run_archive import RunArchive
from handrail.engine.stream_pages import pages_of, tombstones_of

ARCHIVE_PREFIX: Final = "arc_"
RUNS_MAX: Final = 200
EVENTS_MAX: Final = 2_000
"""How many events leave in one transaction, unless a single run has more: appends wait for so many at most."""
BYTES_MAX: Final = 16_000_000
TRIES_MAX: Final = 20
PAGES_AT_ONCE: Final = 500
"""How many pages are given back to the disk at once: a few milliseconds, then appends have their turn."""


class LeftAlone(Struct, frozen=True):
    """A run that was not archived, and why."""

    run: str
    reason: str


class WrittenArchive(Struct, frozen=True):
    """An archive that was written, and whose runs have left the journal."""

    archive: str
    runs: tuple[str, ...]
    events: int
    bytes: int


class Archived(Struct, frozen=True):
    """What archiving has done."""

    archives: tuple[WrittenArchive, ...] = ()
    left_alone: tuple[LeftAlone, ...] = ()

    @property
    def runs(self) -> int:
        """How many runs were archived."""
        return sum(len(one.runs) for one in self.archives)

    @property
    def events(self) -> int:
        """How many events were archived."""
        return sum(one.events for one in self.archives)


async def _unsealed() -> None:
    """Sign nothing."""


@dataclass
class Archiver:
    """Archives the runs of one store; its user holds the lock of the store's archives."""

    store: WholeStore
    record_writer: RecordWriter
    signer: Signer | None = None
    """Signs archives; not needed if none is written."""
    seal: Callable[[], Awaitable[object]] = _unsealed
    """Signs a checkpoint of everything: what leaves the journal is signed before, and that it left is after."""
    _end: Head = field(default_factory=lambda: Head(STORE_STREAM))
    """Where the store's own stream ended when it was read last."""

    @property
    def _archives(self) -> RunArchive:
        return self.store.archives()

    async def archive(self, runs: Sequence[str], *, reason: str, actor: str) -> Archived:
        """Move these runs into archives."""
        require_allowed(may(actor, Act.ARCHIVE))
        await self.seal()
        # One batch after the other: appends of others get their turn between two, and a kill loses one batch of work.
        done, left_alone = list[WrittenArchive](), list[LeftAlone]()
        batch, size = list[Sequence[PlacedRecord]](), 0
        for run in runs:
            try:
                events = await self._events(run)
            except HandrailError as error:
                left_alone.append(LeftAlone(run, str(error)))
                continue
            bytes_ = sum(len(placed.record.body) for placed in events)
            if batch and not _fits(batch, size, events, bytes_):
                done.append(await self._archived(batch, reason, actor))
                batch, size = [], 0
            batch.append(events)
            size += bytes_
        if batch:
            done.append(await self._archived(batch, reason, actor))
        if done:
            await self.seal()
        return Archived(tuple(done), tuple(left_alone))

    async def unarchive(self, runs: Sequence[str], *, reason: str, actor: str) -> int:
        """Bring runs back into the journal, byte for byte; how many events came back."""
        require_allowed(may(actor, Act.ARCHIVE))
        events = 0
        for archive, stones in _by_archive([await self._stone(run) for run in runs]).items():
            content = await self._content(archive)
            back = [_put_back(content, stone) for stone in stones]
            names = tuple(stone.stream for stone in stones)
            note = RunsUnarchived(archive=archive, runs=names, reason=reason)
            await self._noted(note, lambda kept, back=back: self._archives.unarchive(back, kept), actor)  # type: ignore[misc]
            events += sum(stone.n for stone in stones)
        await self.tidy()
        await self.seal()
        return events

    async def delete(self, runs: Sequence[str], *, reason: str, actor: str) -> int:
        """Delete the events of archived runs permanently; their places and hashes stay. How many events are gone."""
        require_allowed(may(actor, Act.DELETE_ARCHIVED))
        await self.seal()
        gone = 0
        for archive, stones in _by_archive([await self._stone(run) for run in runs]).items():
            names = tuple(stone.stream for stone in stones)
            remains = await self._remaining(archive, frozenset(names))
            note = ArchivedRunsDeleted(
                archive=archive, runs=names, reason=reason, remains=remains.archive, digest=remains.digest
            )
            moved = [replace(stone, archive="") for stone in stones] + list(remains.stones)
            await self._noted(note, lambda kept, moved=moved: self._archives.move(moved, kept), actor)  # type: ignore[misc]
            # Last: until the event is written, the file is the only copy of runs that stay.
            await asyncio.to_thread(self._archives.files.remove, archive)
            gone += sum(stone.n for stone in stones)
        await self.seal()
        return gone

    async def tidy(self) -> list[str]:
        """Remove archives that no run needs: left by a killed process, or all of whose runs are back. Their names."""
        needed = {stone.archive async for stone in tombstones_of(self.store)}
        files = self._archives.files
        unneeded = [name for name in await asyncio.to_thread(files.names) if name not in needed]
        for name in unneeded:
            await asyncio.to_thread(files.remove, name)
        return unneeded

    async def give_back(self) -> None:
        """Give the free space of the store back to the disk, step by step."""
        left = await self._archives.compact(pages=PAGES_AT_ONCE)
        while left:
            before, left = left, await self._archives.compact(pages=PAGES_AT_ONCE)
            if left >= before:
                return  # others need the space as fast as it comes

    async def _events(self, run: str) -> list[PlacedRecord]:
        """All events of an ended run, proved; refused if it can't be archived."""
        if await self._archives.tombstone(run) is not None:
            raise Conflict(f"{run} is archived already")
        row = await self.store.run(run)
        placed = await self._archives.placed(run)
        if row is None or not placed:
            raise NotFound(f"there is no run {run!r}", hint="`handrail run list` shows the runs")
        _require_as_its_row(row, [one.record for one in placed])
        return [PlacedRecord(one.seq, one.record) for one in placed]

    async def _archived(self, batch: Sequence[Sequence[PlacedRecord]], reason: str, actor: str) -> WrittenArchive:
        """Write one archive, prove it, and remove its runs from the journal."""
        archive, digest, size = await self._written(batch)
        noted = tuple(archived_run(placed.record for placed in run) for run in batch)
        ends = [run[-1].record for run in batch]
        stones = [Tombstone(end.stream, end.n, end.hash, archive) for end in ends]
        note = RunsArchived(archive=archive, digest=digest, runs=noted, reason=reason)
        # If this fails, the archive stays: a connection may be lost just after the events have left. `tidy` removes it.
        await self._noted(note, lambda kept: self._archives.archive(stones, kept), actor)
        return WrittenArchive(archive, tuple(one.run for one in noted), sum(one.n for one in noted), size)

    async def _written(self, runs: Sequence[Sequence[PlacedRecord]]) -> tuple[str, str, int]:
        """Write these runs into a new archive and read it back: its name, its digest and its size."""
        if self.signer is None:
            raise Unavailable("there is no key to sign an archive with", hint="restore the keys folder of the home")
        archive = new_id(ARCHIVE_PREFIX, self.record_writer.entropy)
        rest = await asyncio.to_thread(packed, runs, await self._definitions(runs))
        header = ArchiveHeader(
            archive=archive,
            store=await store_id(self.store),
            made=self.record_writer.clock(),
            runs=tuple(archived_run(placed.record for placed in run) for run in runs),
            digest=digest_of(rest),
            key=self.signer.public,
        )
        data = file_bytes(replace(header, signature=self.signer.sign(signed_bytes(header)).hex()), rest)
        files = self._archives.files
        await asyncio.to_thread(files.write, archive, data)
        # From the disk, through the same reader as ever after: what it can't read now it will never read.
        content = await self._content(archive)
        if {run[0].record.stream: list(run) for run in runs} != content.runs:
            raise IntegrityBroken(
                f"the archive {archive} does not have the events that went into it", hint="check the disk"
            )
        return archive, digest_of(data), len(data)

    async def _definitions(self, runs: Sequence[Sequence[PlacedRecord]]) -> Mapping[str, bytes]:
        """The texts that these runs are pinned to, so that an archive can be read without its store."""
        wanted = set[str]()
        for run in runs:
            started = entry_of(run[0].record).event
            if isinstance(started, RunStarted):
                wanted |= {started.definition, *started.pins.values()}
        found = {one: await self.store.definition(one) for one in sorted(wanted)}
        return {one: text for one, text in found.items() if text is not None}

    async def _remaining(self, archive: str, gone: frozenset[str]) -> _Remaining:
        """A new archive with the runs of another that stay; empty if there are none."""
        stones = await self._stones_in(archive, gone)
        if not stones:
            return _Remaining()
        content = await self._content(archive)
        name, digest, _ = await self._written([content.runs[stone.stream] for stone in stones])
        return _Remaining(name, digest, tuple(replace(stone, archive=name) for stone in stones))

    async def _stones_in(self, archive: str, gone: frozenset[str]) -> list[Tombstone]:
        stones = tombstones_of(self.store)
        return [stone async for stone in stones if stone.archive == archive and stone.stream not in gone]

    async def _stone(self, run: str) -> Tombstone:
        stone = await self._archives.tombstone(run)
        if stone is None:
            raise NotFound(f"{run} is not archived", hint="`handrail db list` shows the archived runs")
        if not stone.archive:
            raise EventsDeleted(f"the events of {run} were deleted", hint="restore a backup from before that")
        return stone

    async def _content(self, archive: str) -> ArchiveContent:
        data = await asyncio.to_thread(self._archives.files.read, archive)
        return await asyncio.to_thread(content_of, data, archive)

    async def _noted(
        self, note: RetentionEvent, write: Callable[[Sequence[Record]], Awaitable[None]], actor: str
    ) -> None:
        """Write something together with its note, behind whatever others add to the store's stream meanwhile."""
        for _ in range(TRIES_MAX):
            async for page in pages_of(self.store, STORE_STREAM, after=self._end.n):
                self._end = Head(STORE_STREAM, page[-1].n, page[-1].hash)
            records, _ = self.record_writer.write(self._end, [note], actor=actor)
            try:
                return await write(records)
            except JournalConflict:
                continue
        raise JournalConflict("too many writers append to the store's stream at once")


def _require_as_its_row(row: RunRow, records: Sequence[Record]) -> None:
    """Refuse a run that goes on, or whose events can't be proved."""
    if row.ended is None:
        raise Conflict(f"{row.id} has not ended", hint="only ended runs are archived")
    head, broken = first_break(Head(row.id), records)
    if broken is not None:
        raise IntegrityBroken(f"event {broken.n} of {row.id}: {broken.reason}", hint="`handrail journal verify`")
    if (head.n, head.hash) != (row.n, row.head):
        raise IntegrityBroken(f"the row of {row.id} differs from its events", hint="`handrail journal rebuild`")


class _Remaining(Struct, frozen=True):
    """The archive with what is left of another one."""

    archive: str = ""
    digest: str = ""
    stones: tuple[Tombstone, ...] = ()


def _fits(batch: Sequence[Sequence[PlacedRecord]], size: int, run: Sequence[PlacedRecord], bytes_: int) -> bool:
    events = sum(map(len, batch)) + len(run)
    return len(batch) < RUNS_MAX and events <= EVENTS_MAX and size + bytes_ <= BYTES_MAX


def _by_archive(stones: Sequence[Tombstone]) -> dict[str, list[Tombstone]]:
    found: dict[str, list[Tombstone]] = {}
    for stone in stones:
        found.setdefault(stone.archive, []).append(stone)
    return found


def _put_back(content: ArchiveContent, stone: Tombstone) -> tuple[Sequence[Record], Change]:
    """The events of an archived run, and the rows that follow from them."""
    records = [placed.record for placed in content.runs.get(stone.stream, ())]
    if not records or (records[-1].n, records[-1].hash) != (stone.n, stone.head):
        raise IntegrityBroken(f"the archive {stone.archive} does not have {stone.stream} as it was archived")
    return records, change_of(stone.stream, map(entry_of, records))
