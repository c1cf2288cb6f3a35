"""The stores that must keep the journal's promises, and how a test opens each. A new store joins this list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from handrail.domain.journal.chain import Record
from handrail.domain.journal.mark import START, Mark
from handrail.engine.fleet.node_table import NodeTable
from handrail.engine.journal import Archive, Journal, ProjectionReader
from handrail.engine.notify.outbox import Outbox
from handrail.engine.run_archive import ArchivingStore
from handrail.engine.running.lease import Leases
from handrail.storage.archives.archive_folder import ArchiveFolder
from handrail.storage.memory import MemoryStore
from handrail.storage.postgres.store import PostgresStore
from handrail.storage.sqlite.store import SqliteStore
from storage.postgres import server as postgres
from storage.postgres.databases import fresh_database


class Store(Journal, ProjectionReader, Archive, ArchivingStore, Leases, Protocol):
    """All that a store is asked for, and how it is let go."""

    def nodes(self) -> NodeTable: ...

    def outbox(self) -> Outbox: ...

    async def close(self) -> None: ...


async def open_memory(_: Path) -> Store:
    return MemoryStore()


async def open_sqlite(folder: Path) -> Store:
    return await SqliteStore.open(folder / "journal.db", busy_ms=1_000)


async def open_postgres(folder: Path) -> Store:
    return await PostgresStore.open(await fresh_database(folder), archives=ArchiveFolder(folder / "archives"))


STORES: dict[str, Callable[[Path], Awaitable[Store]]] = {
    "memory": open_memory,
    "sqlite": open_sqlite,
    "postgres": open_postgres,
}
LEFT_OUT: dict[str, str] = {"postgres": postgres.MISSING} if postgres.MISSING else {}
"""Stores that can't be had here, and why."""


async def everything(store: Store, *, after: Mark = START, size: int = 2_000) -> list[tuple[int, Record]]:
    """All records with their places, as a scan gives them."""
    return [(one.seq, one.record) async for batch in store.scan(after=after, size=size) for one in batch]
