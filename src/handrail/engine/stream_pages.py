"""Reads a whole stream in pages, so that long streams need no large read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from typing import Final

from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import Entry, step_of
from handrail.engine.journal import Journal
from handrail.engine.run_archive import ArchivingStore

PAGE: Final = 1_000


async def pages_of(journal: Journal, stream: str, *, after: int = 0) -> AsyncIterator[list[Record]]:
    """All records of a stream with n > after, in pages."""
    while records := await journal.read(stream, after=after, limit=PAGE):
        yield records
        if len(records) < PAGE:
            return
        after = records[-1].n


async def records_of(journal: Journal, stream: str) -> list[Record]:
    """All records of a stream."""
    return [record async for page in pages_of(journal, stream) for record in page]


async def entries_of(journal: Journal, stream: str, *, after: int = 0) -> list[Entry]:
    """All events of a stream with n > after, with their places."""
    return [entry_of(record) async for page in pages_of(journal, stream, after=after) for record in page]


def steps_in(entries: Iterable[Entry]) -> Collection[str]:
    """The paths of the steps that these events concern, each once."""
    return {path: None for entry in entries if (path := step_of(entry.event)) is not None}


async def end_of(journal: Journal, stream: str) -> Head:
    """The end of a stream."""
    head = Head(stream)
    async for page in pages_of(journal, stream):
        head = Head(stream, page[-1].n, page[-1].hash)
    return head


async def tombstones_of(store: ArchivingStore) -> AsyncIterator[Tombstone]:
    """All archived runs, by id."""
    after = ""
    while stones := await store.archives().tombstones(after=after, limit=PAGE):
        for stone in stones:
            yield stone
        after = stones[-1].stream
