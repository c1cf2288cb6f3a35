"""Evidence besides the chain: whether erasures, definitions, rows and receipts match the events.

Async; reads only. Each function checks one kind of evidence and returns what does not match. audit.py calls them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.domain.errors import EventsDeleted, IntegrityBroken, Invalid
from handrail.domain.journal.archive_file import digest_of
from handrail.domain.journal.archived import ARCHIVES, ArchivedRuns, archived_runs
from handrail.domain.journal.chain import RECEIPT_DIGITS, Break, Record, body_digest
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import PLAN_PREFIX, RUN_PREFIX, STORE_STREAM, RunStarted
from handrail.domain.journal.store_event import PayloadErased, PlanSaved
from handrail.domain.project import plan_in, row_stream
from handrail.engine.proving.projection_repair import TRIES_MAX, ChangeOf, WholeStore, difference, plan_rows, run_rows
from handrail.engine.stream_pages import entries_of, pages_of

DEFINITIONS: Final = "definitions"
"""The `stream` of a break in the text of a definition."""

ROWS: Final = "rows"
"""The `stream` of a break in a row that can't be read."""

Wanted: TypeAlias = dict[str, str]
"""By content hash of a definition: a stream that is pinned to it."""

ReadArchive: TypeAlias = Callable[[str], Awaitable[bytes]]
"""How the bytes of an archive are read."""

_RECEIPT: Final = re.compile(rf"([1-9][0-9]{{0,17}}):([0-9a-f]{{{RECEIPT_DIGITS},64}})")


class RowEnd(Struct, frozen=True):
    """A run's or plan's row: the end of its stream, and the definition it is pinned to."""

    stream: str
    n: int
    head: bytes
    definition: str


def erasure_breaks(erased: Iterable[Record], notes: Iterable[PayloadErased]) -> list[Break]:
    """Erased events without a matching note, and notes whose event still has its content."""
    noted = {(note.stream, note.event): note for note in notes}
    found = []
    for record in erased:
        note = noted.pop((record.stream, record.n), None)
        if note is None:
            found.append(Break(record.stream, record.n, "its content is gone, and no payload_erased event says so"))
        elif record.erased is None or note.digest != record.erased.hex():
            found.append(Break(record.stream, record.n, "its digest is not the one that its erasure recorded"))
        elif record.salt or note.residue != body_digest(b"", record.body).hex():
            found.append(Break(record.stream, record.n, "what is left of it differs from what its erasure recorded"))
    return found + [Break(stream, n, "it was erased, but has content again") for stream, n in noted]


def archive_breaks(left: Mapping[str, tuple[int, str]], noted: ArchivedRuns) -> list[Break]:
    """Runs whose events are gone without an event that says so, or not as it says: `left` has, by run, how many hashes
    are left, and their digest."""
    found = []
    for run, (n, digest) in left.items():
        note = noted.runs.get(run)
        if note is None:
            found.append(Break(run, 1, "its events are gone, and no runs_archived event says so"))
        elif (note.n, note.hashes) != (n, digest):
            found.append(Break(run, n, "what is left of it differs from what its archiving recorded"))
    return found


async def archive_file_breaks(
    store: WholeStore, read: ReadArchive, noted: ArchivedRuns, left: Collection[str]
) -> list[Break]:
    """Archive files that the runs in `left` need, and that are missing or not as they were written."""
    found = []
    for archive, digest in noted.needed_by(left).items():
        try:
            data = await read(archive)
        except IntegrityBroken as error:
            found.append(Break(ARCHIVES, 0, str(error)))
            continue
        if digest_of(data) != digest:
            found.append(Break(ARCHIVES, 0, f"the archive {archive} is not the one that was written: it was changed"))
    if not found:
        return []
    # Another process may have brought its runs back, and removed it, since the journal was read.
    now = archived_runs(await entries_of(store, STORE_STREAM)).needed_by(left)
    return [broken for broken in found if any(archive in broken.reason for archive in now)]


async def receipt_breaks(store: WholeStore, receipts: Sequence[tuple[str, str]]) -> list[Break]:
    """Receipts, each with its stream, that the journal contradicts."""
    found = []
    for stream, receipt in receipts:
        parts = _RECEIPT.fullmatch(receipt)
        if parts is None:
            raise Invalid(f"{receipt!r} is not a receipt", hint="a receipt looks like 14:9f2c41d07ab3e655")
        n = int(parts[1])
        try:
            records = await store.read(stream, after=n - 1, limit=1)
        except (IntegrityBroken, EventsDeleted) as error:
            found.append(Break(stream, n, str(error)))
            continue
        if not records or records[0].n != n:
            found.append(Break(stream, n, f"the receipt {receipt} is for it, but it is gone"))
        elif not records[0].hash.hex().startswith(parts[2]):
            found.append(Break(stream, n, f"the receipt {receipt} is for a different event in its place"))
    return found


async def definition_breaks(store: WholeStore, wanted: Wanted) -> list[Break]:
    """Definitions whose text does not match its hash, and streams whose definition is missing."""
    texts = await store.definitions()
    found = [
        Break(DEFINITIONS, 0, f"the text of {content_hash} has changed")
        for content_hash, text in texts
        if content_hash != "sha256:" + hashlib.sha256(text).hexdigest()
    ]
    missing = wanted.keys() - {content_hash for content_hash, _ in texts} - {""}
    return found + [Break(wanted[one], 1, f"its definition {one} is gone") for one in sorted(missing)]


async def row_breaks(store: WholeStore, ends: Mapping[str, tuple[int, bytes, int]]) -> tuple[list[Break], Wanted]:
    """Streams whose row does not match their end, is missing or has no events; and all definitions needed."""
    wanted: Wanted = {}
    doubtful = {stream: None for stream in ends if has_row(stream)}
    damage: list[Break] = []
    try:
        async for row in _row_ends(store):
            wanted.setdefault(row.definition, row.stream)
            n, head, _ = ends.get(row.stream, (0, b"", 0))
            if (n, head) == (row.n, row.head):
                doubtful.pop(row.stream, None)
            else:
                doubtful[row.stream] = None
    except IntegrityBroken as error:
        damage = [Break(ROWS, 0, str(error))]  # each stream not seen yet is checked below, so that it can be named
    found = [broken for stream in doubtful if (broken := await row_break(store, stream))]
    return found or damage, wanted


def has_row(stream: str) -> bool:
    """Whether a stream has a projection row."""
    return stream.startswith((RUN_PREFIX, PLAN_PREFIX))


async def row_break(store: WholeStore, stream: str) -> Break | None:
    """Why the row of one stream does not match the stream's end."""
    broken, n = None, 0
    for _ in range(TRIES_MAX):  # another writer may append between two reads: a difference counts only if it stays
        try:
            row = await _row_end(store, stream)
            n = row.n if row else 0
            broken = _row_judged(stream, row, await store.read(stream, after=max(n - 1, 0), limit=2))
        except (IntegrityBroken, EventsDeleted) as error:
            return Break(stream, n, str(error))
        if broken is None:
            return None
    return broken


async def replay_breaks(store: WholeStore, streams: Iterable[str], fold: ChangeOf) -> tuple[list[Break], Wanted]:
    """Streams whose events can't be decoded or whose projections differ from a replay; and all definitions needed."""
    found: list[Break] = []
    wanted: Wanted = {}
    for stream in streams:
        try:
            wanted |= dict.fromkeys(await _pinned(store, stream), stream)
        except IntegrityBroken as error:
            found.append(Break(stream, 0, str(error)))
            continue
        if reason := await difference(store, stream, fold=fold):
            found.append(Break(stream, 0, reason))
    return found, wanted


async def _pinned(store: WholeStore, stream: str) -> set[str]:
    """The definitions that a stream's events name; every event is decoded for that."""
    return {
        event.definition
        async for page in pages_of(store, stream)
        for record in page
        if isinstance(event := entry_of(record).event, RunStarted | PlanSaved)
    }


async def _row_ends(store: WholeStore) -> AsyncIterator[RowEnd]:
    async for run in run_rows(store):
        yield RowEnd(run.id, run.n, run.head, run.definition)
    async for plan in plan_rows(store):
        yield RowEnd(row_stream(plan.project, plan.id), plan.n, plan.head, plan.definition)


async def _row_end(store: WholeStore, stream: str) -> RowEnd | None:
    if stream.startswith(PLAN_PREFIX):
        owner, plan_id = plan_in(stream)
        plan = await store.plan(plan_id, project=owner)
        return RowEnd(stream, plan.n, plan.head, plan.definition) if plan else None
    run = await store.run(stream)
    return RowEnd(stream, run.n, run.head, run.definition) if run else None


def _row_judged(stream: str, row: RowEnd | None, records: Sequence[Record]) -> Break | None:
    """Whether the records from the row's event on are exactly that event, the stream's last."""
    if row is None:
        return Break(stream, records[-1].n, "its row is missing") if records else None
    if not records or records[0].n != row.n:
        return Break(stream, row.n, f"its row says {row.n} events, but there is no event {row.n}")
    if len(records) > 1:
        return Break(stream, records[-1].n, f"its row is at event {row.n}, but the stream has more")
    return None if records[0].hash == row.head else Break(stream, row.n, "its row has a different hash")
