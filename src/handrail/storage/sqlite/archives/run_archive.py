"""Archived runs of the SQLite store, as the engine asks for them: reads in reader threads, writes in the writer's."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Record
from handrail.domain.journal.projection import NO_CHANGE, Change
from handrail.engine.journal import LAST, Placed
from handrail.engine.run_archive import StoreSize
from handrail.storage.admission import admitted_bytes
from handrail.storage.archives.archive_folder import ArchiveFolder
from handrail.storage.sqlite import queries, rows
from handrail.storage.sqlite.append import Appender
from handrail.storage.sqlite.archives import archiving
from handrail.storage.sqlite.archives.compaction import FREE_PAGES, size_of
from handrail.storage.sqlite.reader import Readers
from handrail.storage.sqlite.writer import Compaction, Writer

Amend = Callable[[Callable[[sqlite3.Connection, Appender], None]], Awaitable[None]]
"""Do a write in a transaction of its own."""


class SqliteArchives:
    """The archived runs of one store; see engine/run_archive.py."""

    def __init__(self, journal: Path, readers: Readers, amend: Amend, writer: Callable[[], Writer]) -> None:
        self.files = ArchiveFolder.beside(journal)
        self._journal, self._readers, self._amend, self._writer = journal, readers, amend, writer

    async def placed(self, stream: str) -> list[Placed]:
        """All events of a stream with their positions, also of an archived run."""

        def question(connection: sqlite3.Connection) -> list[Placed]:
            found = rows.event_rows(connection, queries.STREAM, (stream, 0, LAST))
            return [Placed(row[0], Record(*row[1:])) for row in found]

        placed = await self._readers.ask(question)
        if not placed and (stone := await self.tombstone(stream)):
            return await asyncio.to_thread(self.files.placed, stone)
        return placed

    async def tombstone(self, stream: str) -> Tombstone | None:
        """What is left of a run, if its events are not in the database."""
        return await self._readers.ask(lambda connection: archiving.tombstone(connection, stream))

    async def tombstones(self, *, after: str = "", limit: int = 1_000) -> list[Tombstone]:
        """All archived runs, by id."""
        return await self._readers.ask(lambda connection: archiving.tombstones(connection, after, max(0, limit)))

    async def archive(self, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
        """Remove the events of ended runs, and leave their places and hashes."""
        admitted_bytes(note, NO_CHANGE)
        runs, kept = tuple(stones), tuple(note)
        await self._amend(lambda connection, appender: archiving.archive(connection, appender, runs, kept))

    async def unarchive(self, runs: Sequence[tuple[Sequence[Record], Change]], note: Sequence[Record]) -> None:
        """Put the events of archived runs back where they were."""
        admitted_bytes(note, NO_CHANGE)
        back, kept = tuple(runs), tuple(note)
        await self._amend(lambda connection, appender: archiving.unarchive(connection, appender, back, kept))

    async def move(self, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
        """Note in which archive runs are now."""
        admitted_bytes(note, NO_CHANGE)
        runs, kept = tuple(stones), tuple(note)
        await self._amend(lambda connection, appender: archiving.move(connection, appender, runs, kept))

    async def compact(self, *, pages: int) -> int:
        """Give free space back to the disk, at most so many pages at once; how many pages are still free."""
        future = asyncio.get_running_loop().create_future()
        self._writer().put(Compaction(pages, future), 0)
        await future
        return await self._readers.ask(lambda connection: connection.execute(FREE_PAGES).fetchone()[0])

    async def size(self) -> StoreSize:
        """What the store takes on the disk."""
        return await self._readers.ask(lambda connection: size_of(connection, self._journal))
