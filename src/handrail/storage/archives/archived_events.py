"""The events of an archived run, taken out of the content of its archive. No I/O: the caller reads the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from handrail.domain.errors import EventsDeleted
from handrail.domain.journal.archive_file import ArchiveContent, PlacedRecord, broken
from handrail.domain.journal.archived import Tombstone


def events_of(tombstone: Tombstone, content: Callable[[str], ArchiveContent]) -> Sequence[PlacedRecord]:
    """The events of an archived run, from the content of its archive."""
    if not tombstone.archive:
        raise EventsDeleted(f"the events of {tombstone.stream} were deleted; their places and hashes are left")
    run = content(tombstone.archive).runs.get(tombstone.stream, ())
    if not run or (run[-1].record.n, run[-1].record.hash) != (tombstone.n, tombstone.head):
        raise broken(tombstone.archive, f"does not have {tombstone.stream} as it was archived")
    return run
