"""The stores that must keep the journal's promises, and how a test opens each. A new store joins this list."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from handrail.domain.journal.chain import Record
from handrail.engine.journal import Archive, Journal, ProjectionReader
from handrail.engine.running.lease import Leases
from handrail.storage.memory import MemoryStore
from handrail.storage.sqlite.store import SqliteStore


class Store(Journal, ProjectionReader, Archive, Leases, Protocol):
    """All that a store is asked for, and how it is let go."""

    async def close(self) -> None: ...


async def open_memory(_: Path) -> Store:
    return MemoryStore()


async def open_sqlite(folder: Path) -> Store:
    return await SqliteStore.open(folder / "journal.db", busy_ms=1_000)


STORES: dict[str, Callable[[Path], Awaitable[Store]]] = {"memory": open_memory, "sqlite": open_sqlite}


async def everything(store: Store, *, after: int = 0, size: int = 2_000) -> list[tuple[int, Record]]:
    """All records with their places, as a scan gives them."""
    return [(one.seq, one.record) async for batch in store.scan(after=after, size=size) for one in batch]
