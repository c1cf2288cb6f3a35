"""Events about the store itself: that it was created, restored, or that an operator accepted a changed journal.

Async; uses only the journal's protocol. Erasures are recorded in erasure.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from handrail.domain.errors import JournalConflict
from handrail.domain.journal.chain import Head
from handrail.domain.journal.event import STORE_STREAM
from handrail.domain.journal.projection import NO_CHANGE
from handrail.domain.journal.store_event import (
    JournalAccepted,
    PayloadErased,
    StoreCreated,
    StoreEvent,
    StoreRestored,
)
from handrail.domain.policy.act import Act
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import require_allowed
from handrail.engine.clock import new_id
from handrail.engine.journal import Journal
from handrail.engine.record_writer import RecordWriter
from handrail.engine.stream_pages import end_of

CONFLICTS_MAX: Final = 50
STORE_PREFIX: Final = "store_"


async def create(journal: Journal, record_writer: RecordWriter, *, key: str) -> None:
    """Record that the store was created, and with which public key, unless that is recorded already."""
    if not await journal.read(STORE_STREAM, limit=1):
        created = StoreCreated(store=new_id(STORE_PREFIX, record_writer.entropy), key=key)
        try:
            await _note(journal, record_writer, Head(STORE_STREAM), created, actor="handrail")
        except JournalConflict:
            return  # another process created it at the same time


async def accept(journal: Journal, record_writer: RecordWriter, *, reason: str, found: str, actor: str) -> None:
    """Record that an operator accepted a journal that differs from its last checkpoint."""
    require_allowed(may(actor, Act.OPERATE))
    await _note_at_end(journal, record_writer, [JournalAccepted(reason=reason, found=found)], actor=actor)


async def salvaged(
    journal: Journal,
    record_writer: RecordWriter,
    notes: Sequence[PayloadErased],
    *,
    reason: str,
    found: str,
    actor: str,
) -> None:
    """Record that an operator accepted what was brought out of a damaged file; `notes` are erasures to note again."""
    require_allowed(may(actor, Act.OPERATE))
    accepted = JournalAccepted(reason=reason, found=found)
    await _note_at_end(journal, record_writer, [accepted, *notes], actor=actor)


async def restored(
    journal: Journal, record_writer: RecordWriter, event: StoreRestored, notes: Sequence[PayloadErased], *, actor: str
) -> None:
    """Record that the journal was restored from a backup.

    `notes` are erasures from after the point that was restored: their events are in it without content, and stay so."""
    require_allowed(may(actor, Act.OPERATE))
    await _note_at_end(journal, record_writer, [event, *notes], actor=actor)


async def _note_at_end(
    journal: Journal, record_writer: RecordWriter, events: Sequence[StoreEvent], *, actor: str
) -> None:
    for _ in range(CONFLICTS_MAX):
        try:
            return await _note(journal, record_writer, await end_of(journal, STORE_STREAM), *events, actor=actor)
        except JournalConflict:
            continue
    raise JournalConflict("too many writers append to the store's stream at once")


async def _note(journal: Journal, record_writer: RecordWriter, head: Head, *events: StoreEvent, actor: str) -> None:
    records, _ = record_writer.write(head, events, actor=actor)
    await journal.append(records, NO_CHANGE)
