"""Archived runs of the PostgreSQL store, as the engine asks for them. The SQL is in archiving.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from handrail.domain.errors import Unavailable
from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Record
from handrail.domain.journal.projection import NO_CHANGE, Change
from handrail.engine.journal import Placed
from handrail.engine.run_archive import StoreSize
from handrail.storage.admission import admitted_bytes
from handrail.storage.archives.archive_folder import ArchiveFolder
from handrail.storage.postgres import rows
from handrail.storage.postgres.append import Streams
from handrail.storage.postgres.archives import archiving
from handrail.storage.postgres.connections import Connection, Connections
from handrail.storage.postgres.texts import stored

Write = Callable[[Callable[[Connection, Streams], Awaitable[None]]], Awaitable[None]]
"""Do a write in a transaction of its own."""


class PostgresArchives:
    """The archived runs of one store; see engine/run_archive.py."""

    def __init__(self, connections: Connections, write: Write, folder: ArchiveFolder | None) -> None:
        self._connections, self._write, self._folder = connections, write, folder

    @property
    def files(self) -> ArchiveFolder:
        """The archive files of this store, as far as they are on this machine."""
        if self._folder is None:
            raise Unavailable("this store was opened without a folder for archives", hint="open it through a home")
        return self._folder

    async def placed(self, stream: str) -> list[Placed]:
        """All events of a stream with their positions, also of an archived run."""
        found = await self._connections.ask(archiving.PLACED, stored(stream))
        if not found and (stone := await self.tombstone(stream)):
            return await asyncio.to_thread(self.files.placed, stone)
        return [rows.placed_of(row) for row in found]

    async def tombstone(self, stream: str) -> Tombstone | None:
        """What is left of a run, if its events are not in the database."""
        found = await self._connections.ask(archiving.TOMBSTONE, stored(stream))
        return next(iter(rows.values(found, Tombstone)), None)

    async def tombstones(self, *, after: str = "", limit: int = 1_000) -> list[Tombstone]:
        """All archived runs, by id."""
        found = await self._connections.ask(archiving.TOMBSTONES, stored(after), max(0, limit))
        return rows.values(found, Tombstone)

    async def archive(self, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
        """Remove the events of ended runs, and leave their places and hashes."""
        admitted_bytes(note, NO_CHANGE)
        runs, kept = tuple(stones), tuple(note)
        await self._write(lambda connection, known: archiving.archive(connection, known, runs, kept))

    async def unarchive(self, runs: Sequence[tuple[Sequence[Record], Change]], note: Sequence[Record]) -> None:
        """Put the events of archived runs back where they were."""
        admitted_bytes(note, NO_CHANGE)
        back, kept = tuple(runs), tuple(note)
        await self._write(lambda connection, known: archiving.unarchive(connection, known, back, kept))

    async def move(self, stones: Sequence[Tombstone], note: Sequence[Record]) -> None:
        """Note in which archive runs are now."""
        admitted_bytes(note, NO_CHANGE)
        runs, kept = tuple(stones), tuple(note)
        await self._write(lambda connection, known: archiving.move(connection, known, runs, kept))

    async def compact(self, *, pages: int) -> int:
        """Nothing to do: PostgreSQL uses free space again by itself."""
        return 0

    async def size(self) -> StoreSize:
        """What the store takes on the disk."""
        async with self._connections.reading() as connection:
            return await archiving.size_of(connection)
