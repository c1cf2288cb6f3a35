"""The protocols of archived runs: what the engine needs from a store whose ended runs can leave it.

The stores are in storage/; moving runs there and back is in engine/retention/."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Record
from handrail.domain.journal.projection import Change
from handrail.engine.journal import Placed


class ArchiveFiles(Protocol):
    """Where archive files are; reading and writing blocks."""

    def names(self) -> list[str]:
        """The archives that are here."""
        ...

    def read(self, archive: str) -> bytes:
        """The bytes of an archive; IntegrityBroken if it is missing or can't be read."""
        ...

    def write(self, archive: str, data: bytes) -> None:
        """Write an archive; it is on the disk when this returns."""
        ...

    def remove(self, archive: str) -> None:
        """Remove an archive; none is fine."""
        ...


class StoreSize(Struct, frozen=True, kw_only=True):
    """What a store takes on the disk, in bytes."""

    journal: int
    """The database, or what of it is the journal."""
    free: int = 0
    """How much of it is free for new events, and can be given back."""
    log: int = 0
    """The write-ahead log beside it."""
    events: int = 0
    """How many events are in the database."""
    archived: int = 0
    """How many events are in archives."""
    archived_runs: int = 0


class RunArchive(Protocol):
    """Ended runs whose events are in archive files. Reading such a run gives its events all the same."""

    @property
    def files(self) -> ArchiveFiles:
        """The archive files of this store."""
        ...

    async def placed(self, stream: str) -> list[Placed]:
        """All events of a stream with their positions, also of an archived run."""
        ...

    async def tombstone(self, stream: str) -> Tombstone | None:
        """What is left of a run, if its events are not in the database."""
        ...

    async def tombstones(self, *, after: str = "", limit: int = 1_000) -> list[Tombstone]:
        """All archived runs, by id."""
        ...

    async def archive(self, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
        """Remove the events of ended runs, which end as given, and append the note, in one transaction.

        The place and hash of each event stay, and the row of the run; the rows of its steps go. Raises Conflict if a
        run has changed, and JournalConflict if the note does not follow its stream."""
        ...

    async def unarchive(self, runs: Sequence[tuple[Sequence[Record], Change]], note: Sequence[Record]) -> None:
        """Put all events of archived runs back where they were, and append the note, all or nothing."""
        ...

    async def move(self, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
        """Note in which archive these runs are now, or that it was deleted, and append the note, all or nothing."""
        ...

    async def compact(self, *, pages: int) -> int:
        """Give free space back to the disk, at most so many pages at once; how many pages are still free."""
        ...

    async def size(self) -> StoreSize:
        """What the store takes on the disk."""
        ...


class ArchivingStore(Protocol):
    """A store that has archived runs."""

    def archives(self) -> RunArchive:
        """Its archived runs."""
        ...
