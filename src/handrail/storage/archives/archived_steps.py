"""The steps of an archived run: their rows are not in the store, so they are folded from its events."""

from __future__ import annotations

from typing import Protocol

from handrail.domain.errors import EventsDeleted
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.projection import StepRow
from handrail.engine.journal import Journal
from handrail.engine.proving.stream_fold import change_of
from handrail.engine.run_archive import ArchivingStore
from handrail.engine.stream_pages import records_of


class ReadableStore(Journal, ArchivingStore, Protocol):
    """What is needed of a store."""


async def archived_steps(store: ReadableStore, run: str) -> list[StepRow]:
    """The steps of a run as its archived events have them, by path; none if it is not archived, or was deleted."""
    if await store.archives().tombstone(run) is None:
        return []
    try:
        records = await records_of(store, run)
    except EventsDeleted:
        return []
    return sorted(change_of(run, map(entry_of, records)).steps, key=lambda step: step.path)
