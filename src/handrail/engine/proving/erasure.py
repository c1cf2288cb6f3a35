"""Erasure: removes the content of one event from the store while its chain stays valid.

Async; uses the store's protocols. domain/journal/erasure.py decides what is left of an event. The erasure itself is
recorded as an event in the store's own stream."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.errors import Conflict, Forbidden, JournalConflict, NotFound, OtherProject
from handrail.domain.journal.chain import Record, body_digest
from handrail.domain.journal.codec import encode_body, entry_of
from handrail.domain.journal.erasure import residue, used_later
from handrail.domain.journal.event import PLAN_PREFIX, STORE_STREAM
from handrail.domain.journal.projection import Change
from handrail.domain.journal.store_event import PayloadErased
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.domain.project import FindProject, plan_in, refusal, server_in
from handrail.domain.run.status import RUN_ENDED
from handrail.engine.journal import Archive, Journal
from handrail.engine.known_secrets import NO_SECRETS, KnownSecrets
from handrail.engine.passed_in import Clock, Entropy
from handrail.engine.proving.projection_repair import ChangeOf
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.record_writer import RecordWriter
from handrail.engine.stream_pages import end_of, records_of

TRIES_MAX: Final = 5


class Within(Struct, frozen=True):
    """The project whose events may be erased, and how others are found by their id, to name them."""

    project: str
    find: FindProject


async def erase_payload(
    archive: Archive,
    journal: Journal,
    stream: str,
    n: int,
    *,
    reason: str,
    actor: str,
    clock: Clock,
    entropy: Entropy,
    fold: ChangeOf = change_of,
    secrets: KnownSecrets = NO_SECRETS,
    within: Within | None = None,
    is_forced: bool = False,
) -> Record:
    """Remove the content of one event permanently; returns the event as it is now. Of any project, or `within` one;
    what an open run may still need only if it is forced."""
    require_allowed(may(actor, Act.OPERATE))
    record_writer = RecordWriter(clock, entropy, secrets)
    for _ in range(TRIES_MAX):
        records = await records_of(journal, stream)
        erased = _erased(_erasable(records, stream, n))
        note, _ = record_writer.write(await end_of(journal, STORE_STREAM), [_note(erased, reason)], actor=actor)
        # The rows are folded again over what is left: the erased content must not stay in a projection.
        left = [erased if record.n == n else record for record in records]
        change = fold(stream, map(entry_of, left))
        _require_own(stream, change, within)
        _require_unneeded(records, n, change, is_forced=is_forced)
        try:
            await archive.erase(erased, note, change)
        except JournalConflict:
            continue  # another writer appended to the store's stream first: the note must follow its event
        await _settle(archive, journal, stream, len(records), fold)
        return erased
    raise JournalConflict("too many writers append to the store's stream at once")


async def erasable_record(
    journal: Journal, stream: str, n: int, *, within: Within | None = None, is_forced: bool = False
) -> Record:
    """The event as it is before an erasure; refused for the reasons that the erasure itself would be refused for."""
    records = await records_of(journal, stream)
    record = _erasable(records, stream, n)
    change = change_of(stream, map(entry_of, records))
    _require_own(stream, change, within)
    _require_unneeded(records, n, change, is_forced=is_forced)
    return record


def _require_unneeded(records: list[Record], n: int, change: Change, *, is_forced: bool) -> None:
    """Refuse to take from a run what it needs to go on, or to be undone, unless that is meant."""
    if is_forced or change.run is None or change.run.status in RUN_ENDED:
        return
    record = next(one for one in records if one.n == n)
    if used := used_later(entry_of(record).event):
        raise Conflict(
            f"{record.stream} has not ended: without the {' and '.join(used)} of event {n}, later steps, its "
            "undo or a person who is asked may lack what they need",
            hint=f"end the run first (`handrail run cancel {record.stream}`), or add --force",
        )


def _require_own(stream: str, change: Change, within: Within | None) -> None:
    """Refuse a stream of another project; plans and servers from before there were projects are everyone's."""
    if within is None:
        return
    if change.run is not None:
        owner = change.run.project
    else:
        owner = (plan_in if stream.startswith(PLAN_PREFIX) else server_in)(stream)[0] or within.project
    if owner != within.project:
        words = str(refusal(stream, owner, within.find))
        raise OtherProject(words, hint="erase it from that project's folder, or add --all-projects")


def _erasable(records: list[Record], stream: str, n: int) -> Record:
    if stream == STORE_STREAM:
        raise Forbidden(
            "the store's own stream records what was done to the journal; nothing in it can be erased",
            hint="name an event of a run or a plan",
        )
    record = next((record for record in records if record.n == n), None)
    if record is None:
        raise NotFound(f"there is no event {n} of {stream!r}", hint=f"{stream} has {len(records)} events")
    if record.erased is not None:
        raise Conflict(f"event {n} of {stream} is erased already", hint="there is nothing left to erase")
    return record


def _erased(record: Record) -> Record:
    # The salt is erased too: with it, the content could be found by trying likely values.
    body = encode_body(residue(entry_of(record).event))
    return replace(record, salt=b"", body=body, erased=body_digest(record.salt, record.body))


def _note(erased: Record, reason: str) -> PayloadErased:
    return PayloadErased(
        stream=erased.stream,
        event=erased.n,
        digest=(erased.erased or b"").hex(),
        residue=body_digest(b"", erased.body).hex(),
        reason=reason,
    )


async def _settle(archive: Archive, journal: Journal, stream: str, folded: int, fold: ChangeOf) -> None:
    """Rebuild the projections again if a writer appended while they were rewritten."""
    for _ in range(TRIES_MAX):
        # The rows that the erasure wrote are those of the events that were read: a later append would be missing in
        # them.
        if not await journal.read(stream, after=folded, limit=1):
            return
        records = await records_of(journal, stream)
        await archive.rebuild(stream, fold(stream, map(entry_of, records)))
        folded = len(records)
