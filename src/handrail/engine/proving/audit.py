"""The audit: verifies the journal, or one stream, against its chain, its checkpoints and all other evidence.

Async; reads only. domain/journal/chain_walk.py follows the chain; evidence.py checks everything else. An audit can't
detect two things: events after the last checkpoint that were rewritten together with all that follow, and a database
and checkpoint log that were both restored to the same earlier state. Receipts reveal either; a witness
(witness_check.py) also reveals that key, log and database were replaced together."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.errors import IntegrityBroken, NotFound
from handrail.domain.instant import instant_text
from handrail.domain.journal.archived import ArchivedRuns, archived_runs
from handrail.domain.journal.chain import Break, Head, Record, first_break
from handrail.domain.journal.chain_walk import NEVER, Trail
from handrail.domain.journal.checkpoint import (
    CHECKPOINTS,
    JOURNAL,
    Checkpoint,
    SealedCheckpoint,
    another_store,
    misplaced,
)
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import STORE_STREAM, Entry
from handrail.domain.journal.mark import Mark
from handrail.domain.journal.store_event import JournalAccepted, PayloadErased, StoreCreated
from handrail.domain.journal.witnessed import Copies
from handrail.domain.plural import plural
from handrail.engine.proving import evidence
from handrail.engine.proving.checkpointer import CheckpointLog, Verifier, signature_problem, store_created
from handrail.engine.proving.projection_repair import ChangeOf, WholeStore
from handrail.engine.proving.read_ahead import ahead
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.proving.witness_check import WitnessAgreement, WitnessComparison, compare_witness
from handrail.engine.stream_pages import entries_of, pages_of

DATABASE: Final = "database"
"""The `stream` of a break that the database itself reports."""

KEYLESS: Final = "the public key (journal.pub) is missing, so that no signature can be checked: restore the keys folder"
BATCH: Final = 10_000
DAMAGES_MAX: Final = 100
TRIES_MAX: Final = 3
_NONE: Final = (0, b"", 0)
"""The end of a stream that has no events."""


class AuditResult(Struct, frozen=True, kw_only=True):
    """The result of an audit: all breaks, the first of them in store order, and notes."""

    ok: bool
    events: int
    streams: int
    checkpoints: int
    signed_events: int
    """How many of the events are covered by the last checkpoint."""
    breaks: tuple[Break, ...] = ()
    first_bad: Break | None = None
    notes: tuple[str, ...] = ()
    witness: WitnessAgreement | None = None
    """What a witness has that agrees, if one was compared."""

    def also(self, found: Break) -> AuditResult:
        """The same with a break that was found beside the store."""
        breaks = (found, *self.breaks)
        return replace(self, ok=False, breaks=breaks, first_bad=found)


@dataclass
class _ReadCheckpoints:
    """The valid checkpoints, oldest first, and what is wrong with the first invalid one."""

    checkpoints: list[Checkpoint] = field(default_factory=list)
    breaks: list[Break] = field(default_factory=list)


@dataclass
class _Inspection:
    """What was found in the store, or in one stream."""

    events: int = 0
    streams: int = 0
    signed: int = 0
    breaks: list[Break] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


async def verify(
    store: WholeStore,
    log: CheckpointLog,
    verifier: Verifier | None,
    *,
    stream: str | None = None,
    replay: bool = False,
    receipts: Sequence[tuple[str, str]] = (),
    witnessed: Copies | None = None,
    fold: ChangeOf = change_of,
) -> AuditResult:
    """Verify the journal, or one stream; `replay` also replays each stream. Without a key nothing signed is verified.

    `witnessed` is what a witness has: it is compared, too."""
    witness = WitnessComparison()
    if witnessed is not None:
        witness = await compare_witness(store, log, verifier, witnessed)
    seals = await _seals(log, verifier)
    if stream is None:
        look = await _look_at_store(store, seals, verifier, fold=fold if replay else None)
    else:
        look = await _look_at_stream(store, stream, seals, fold=fold if replay else None)
    breaks = (*witness.breaks, *look.breaks, *await evidence.receipt_breaks(store, receipts), *seals.breaks)
    return AuditResult(
        ok=not breaks,
        events=look.events,
        streams=look.streams,
        checkpoints=len(seals.checkpoints),
        signed_events=look.signed,
        breaks=breaks,
        first_bad=breaks[0] if breaks else None,
        witness=witness.agreement,
        notes=(*look.notes, *witness.notes, *_notes(look, seals)),
    )


async def _seals(log: CheckpointLog, verifier: Verifier | None) -> _ReadCheckpoints:
    seals = _ReadCheckpoints()
    previous: Checkpoint | None = None
    try:
        async for sealed in log.all():
            if reason := _flaw(previous, sealed, verifier):
                seals.breaks.append(Break(CHECKPOINTS, len(seals.checkpoints) + 1, reason))
                break
            previous = sealed.checkpoint
            seals.checkpoints.append(previous)
    except IntegrityBroken as error:
        seals.breaks.append(Break(CHECKPOINTS, len(seals.checkpoints) + 1, str(error)))
    if seals.checkpoints and verifier is None:  # who changed the journal may have removed it
        seals.breaks.append(Break(CHECKPOINTS, 1, KEYLESS))
    return seals


def _flaw(previous: Checkpoint | None, sealed: SealedCheckpoint, verifier: Verifier | None) -> str | None:
    return misplaced(previous, sealed.checkpoint) or (signature_problem(sealed, verifier) if verifier else None)


async def _look_at_store(
    store: WholeStore, seals: _ReadCheckpoints, verifier: Verifier | None, *, fold: ChangeOf | None
) -> _Inspection:
    flaws = asyncio.ensure_future(store.flaws(thorough=fold is not None))  # the database checks itself in the meantime
    try:
        look = await _look_at_events(store, seals, verifier, fold=fold)
        look.breaks += [Break(DATABASE, 0, flaw) for flaw in await flaws]
    finally:
        flaws.cancel()
    return look


async def _look_at_events(
    store: WholeStore, seals: _ReadCheckpoints, verifier: Verifier | None, *, fold: ChangeOf | None
) -> _Inspection:
    swapped = await _swapped(store, seals)
    # Checkpoints of another store say nothing of this one: comparing would report a break at every event.
    sealed = [] if swapped else seals.checkpoints
    trail = Trail(sealed)
    await _follow(store, trail, [checkpoint.mark for checkpoint in sealed])
    entries, unreadable = _entries(trail.store)
    # An erasure of an event that is gone altogether, or archived, says nothing about its content here; that it is gone
    # is found elsewhere.
    notes = [
        one
        for one in _erasures(entries)
        if one.event <= trail.ends.get(one.stream, _NONE)[0] and one.stream not in trail.removed
    ]
    erasures = evidence.erasure_breaks([record for _, record in trail.erased], notes)
    breaks = [*swapped, *_in_order(trail, erasures), *unreadable, *_other_key(entries, seals, verifier)]
    archived = archived_runs(entries)
    left = {run: (trail.ends[run][0], digest.hexdigest()) for run, digest in trail.removed.items()}
    breaks += evidence.archive_breaks(left, archived) + await evidence.archive_file_breaks(
        store, _reader(store), archived, left
    )
    # A stream with a broken chain is reported once: what its rows say then means nothing.
    deleted = {run for run in left if run in archived.runs and run not in archived.files}
    is_broken = {broken.stream for broken in breaks} | deleted
    breaks += await _beside_the_chain(store, trail, fold, is_broken=is_broken)
    signed = min(trail.events, seals.checkpoints[-1].events) if seals.checkpoints and not swapped else 0
    remarks = [*_accepted(entries), *_archived(left, archived)]
    return _Inspection(trail.events, len(trail.ends), signed, breaks, notes=remarks)


def _in_order(trail: Trail, erasures: list[Break]) -> list[Break]:
    """Breaks of the trail and of erasures, in store order; if notes of erasures may be missing, those come last."""
    placed = {(record.stream, record.n): seq for seq, record in trail.erased}
    is_whole = not any(broken.stream in (STORE_STREAM, JOURNAL) for _, broken in trail.breaks)
    last = [(placed.get((one.stream, one.n), NEVER) if is_whole else NEVER, one) for one in erasures]
    return [broken for _, broken in sorted([*trail.breaks, *last], key=lambda one: one[0])]


async def _beside_the_chain(
    store: WholeStore, trail: Trail, fold: ChangeOf | None, *, is_broken: set[str]
) -> list[Break]:
    """Breaks of rows and definitions; only streams with a valid chain are replayed."""
    breaks, wanted = await evidence.row_breaks(store, trail.ends)
    if fold is not None:
        reported = is_broken | {broken.stream for broken in breaks}
        replayed, pinned = await evidence.replay_breaks(store, sorted(trail.ends.keys() - reported), fold)
        breaks, wanted = breaks + replayed, wanted | pinned
    try:
        return breaks + await evidence.definition_breaks(store, wanted)
    except IntegrityBroken as error:
        return [*breaks, Break(evidence.DEFINITIONS, 0, str(error))]


async def _swapped(store: WholeStore, seals: _ReadCheckpoints) -> list[Break]:
    """The break if the checkpoints are of another store."""
    try:
        created = await store_created(store)
    except IntegrityBroken:
        return []  # the trail will find and report it
    if created is None or not seals.checkpoints or created.store == seals.checkpoints[-1].store:
        return []
    return [Break(STORE_STREAM, 1, another_store(seals.checkpoints[-1].store, created.store))]


async def _follow(store: WholeStore, trail: Trail, stops: Sequence[Mark]) -> None:
    """Follow the store to its end, past places that can't be read."""
    size = BATCH
    # Bounded: a disk that fails at every page would otherwise keep the verification busy for days.
    for _ in range(2 * DAMAGES_MAX):
        try:
            async for batch in ahead(store.rows(after=trail.mark, stops=stops, size=size)):
                trail.follow(batch)
            break
        except IntegrityBroken as error:
            if size == 1:
                trail.skip(str(error))
            size = 1 if size == BATCH else BATCH  # read one by one up to the damaged place, then in batches again
    trail.finish()


async def _look_at_stream(
    store: WholeStore, stream: str, seals: _ReadCheckpoints, *, fold: ChangeOf | None
) -> _Inspection:
    look = _Inspection()
    for _ in range(TRIES_MAX):  # another writer may append or erase between two reads: a break counts only if it stays
        look = await _look_once(store, stream, seals, fold)
        if not look.breaks:
            break
    if not look.events and not look.breaks:
        raise NotFound(f"there is no stream {stream!r}", hint="list the runs, then repeat the call")
    return look


async def _look_once(store: WholeStore, stream: str, seals: _ReadCheckpoints, fold: ChangeOf | None) -> _Inspection:
    sealed = {n: hash_hex for one in seals.checkpoints for name, n, hash_hex in one.heads if name == stream}
    head, breaks = await _follow_stream(store, stream, sealed)
    signed = max(sealed, default=0)
    if not breaks and signed > head.n:
        breaks = [Break(stream, head.n + 1, f"a checkpoint has {signed} events of it, the store has {head.n}")]
    breaks = breaks or await _beside_the_stream(store, stream, fold)
    return _Inspection(events=head.n, streams=1, signed=min(signed, head.n), breaks=breaks)


async def _follow_stream(store: WholeStore, stream: str, sealed: Mapping[int, str]) -> tuple[Head, list[Break]]:
    """Where a stream ends, and its breaks up to the first invalid event."""
    head, erased, breaks = Head(stream), list[Record](), list[Break]()
    try:
        async for page in pages_of(store, stream):
            head, broken = first_break(head, page)
            breaks += [
                Break(stream, record.n, "its hash is not the one in its checkpoint: the stream was rewritten")
                for record in page
                if sealed.get(record.n, record.hash.hex()) != record.hash.hex()
            ]
            if broken:
                return head, [*breaks, broken]
            erased += [record for record in page if record.erased is not None]
        return head, breaks + evidence.erasure_breaks(erased, await _erasures_of(store, stream))
    except IntegrityBroken as error:
        return head, [*breaks, Break(stream, head.n + 1, str(error))]


async def _beside_the_stream(store: WholeStore, stream: str, fold: ChangeOf | None) -> list[Break]:
    if evidence.has_row(stream) and (broken := await evidence.row_break(store, stream)):
        return [broken]
    if fold is None:
        return []
    breaks, _ = await evidence.replay_breaks(store, [stream], fold)
    return breaks


async def _erasures_of(store: WholeStore, stream: str) -> list[PayloadErased]:
    events = [entry.event for entry in await entries_of(store, STORE_STREAM)]
    return [event for event in events if isinstance(event, PayloadErased) and event.stream == stream]


def _entries(records: Sequence[Record]) -> tuple[list[Entry], list[Break]]:
    """The events of the store's own stream, and those that can't be read."""
    entries, breaks = list[Entry](), list[Break]()
    for record in records:
        try:
            entries.append(entry_of(record))
        except IntegrityBroken as error:
            breaks.append(Break(record.stream, record.n, str(error)))
    return entries, breaks


def _other_key(entries: Sequence[Entry], seals: _ReadCheckpoints, verifier: Verifier | None) -> list[Break]:
    """The break if the key is not the one the store was created with, unless an operator restarted the log since."""
    made = [entry.event.key for entry in entries if isinstance(entry.event, StoreCreated)]
    # An operator who lost the key says so by a restart, which is signed by the new key and stays visible.
    is_accepted = any(checkpoint.is_restart for checkpoint in seals.checkpoints[:1])
    if verifier is None or is_accepted or not any(made) or verifier.created(made[0]):
        return []
    return [Break(STORE_STREAM, 1, "the store was created with a different key than the one in use")]


def _erasures(entries: Sequence[Entry]) -> list[PayloadErased]:
    return [entry.event for entry in entries if isinstance(entry.event, PayloadErased)]


def _reader(store: WholeStore) -> evidence.ReadArchive:
    """Reads archives in a thread: there may be thousands, and others work meanwhile."""
    return lambda archive: asyncio.to_thread(store.archives().files.read, archive)


def _archived(left: Collection[str], archived: ArchivedRuns) -> list[str]:
    if not left:
        return []
    deleted = sum(1 for run in left if run not in archived.files)
    more = f"; the events of {deleted:,} of them were deleted" if deleted else ""
    return [f"{plural(len(left), 'run')} archived in {plural(len(archived.needed_by(left)), 'file')}{more}"]


def _accepted(entries: Sequence[Entry]) -> list[str]:
    return [
        f"{instant_text(entry.at)}: {entry.actor} accepted a journal that differed from its checkpoint"
        f" ({entry.event.reason}): {entry.event.found}"
        for entry in entries
        if isinstance(entry.event, JournalAccepted)
    ]


def _notes(look: _Inspection, seals: _ReadCheckpoints) -> list[str]:
    if not seals.checkpoints:
        return ["there is no checkpoint: nothing is signed"]
    unsigned_events = look.events - look.signed
    return [f"{unsigned_events} events since the last checkpoint are not signed"] if unsigned_events else []
