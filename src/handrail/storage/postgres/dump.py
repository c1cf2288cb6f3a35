"""Dumps the journal of a PostgreSQL store into files, one for each table, from one snapshot; and loads it again.

The files are what `COPY` writes in its binary format, with the names of the columns beside them. Who holds a lease,
beats and limits are left out: they are of processes that are not part of a backup."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.backups.manifest import ANOTHER, JournalCounts, heads_digest
from handrail.domain.errors import Conflict, IntegrityBroken, Unavailable
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.event import STORE_STREAM
from handrail.storage.migrations import Migration
from handrail.storage.postgres import queries
from handrail.storage.postgres.address import Address
from handrail.storage.postgres.connections import Connection, Connections
from handrail.storage.postgres.faults import BELOW, store_error
from handrail.storage.postgres.migration import migrate, missing, shipped

TABLES: Final = (
    *("definition", "run", "step", "plan", "event", "tombstone", "removed_event", "head", "checkpoint", "run_secret"),
    *("lane", "outbox_channel", "outbox_message"),
)
"""In this order: a row comes after those that it refers to."""
SINCE: Final = {"tombstone": 6, "removed_event": 6, "outbox_channel": 7, "outbox_message": 7}
"""The migration that has made a table, if it was not the first."""
DESCRIPTION: Final = "tables.json"
COPY_S: Final = 86_400.0

COLUMNS: Final = """
    select column_name from information_schema.columns where table_schema = 'handrail' and table_name = $1
    order by ordinal_position"""
"""The columns of a table."""

ERAS: Final = "select id from handrail.era order by id"
"""The eras of a store."""

SCHEMA: Final = "select max(number) from handrail.migration"
"""The number of the newest migration."""

ENDS: Final = queries.HEADS_OF_ALL
"""The ends of all streams."""

ENDS_BEFORE: Final = "select stream, n, hash from handrail.head where n > 0"
"""The same in a store from before runs were archived."""

COUNTS: Final = """
    select (select coalesce(sum(last), 0) from handrail.lane)::bigint,
        (select coalesce(max(at), 0) from handrail.event), (select count(*) from handrail.definition)"""
"""How many events and definitions there are, and the newest instant."""

CHECKPOINTS: Final = """
    select coalesce(max(number), 0) from handrail.checkpoint where log = (select max(log) from handrail.checkpoint)"""
"""The number of the newest checkpoint."""

FIRST: Final = """
    select stream, n, at, kind, actor, step, attempt, format, salt, body, hash, erased from handrail.event
    where stream = $1 and n = 1"""
"""The first event of a stream."""

HAS_CONTENT: Final = "select exists (select from handrail.event) or exists (select from handrail.checkpoint)"
"""Whether a store has anything in it."""

OPEN_ERA: Final = "select handrail.open_era($1) where not exists (select from handrail.era where id = $1)"
"""Open an era that a dump has, with its partition."""

FREE_LEASES: Final = "update handrail.head set owner = ''"
"""Release all leases: their owners are gone. The epochs stay, so that the next are higher."""


class DumpedTable(Struct, frozen=True):
    """One table of a dump."""

    name: str
    columns: tuple[str, ...]


class DumpDescription(Struct, frozen=True):
    """What a dump contains."""

    schema: int
    eras: tuple[int, ...]
    tables: tuple[DumpedTable, ...]


class Dumped(Struct, frozen=True):
    """A finished dump."""

    first: Record | None
    """The first event of the store's own stream: it has the store's id."""
    schema: int
    checkpoints: int
    counts: JournalCounts


@dataclass(frozen=True)
class PostgresDump:
    """The journal at one address as a whole, whatever its schema: dumped, loaded and counted."""

    address: Address
    busy_ms: int = 5_000

    async def dump(self, folder: Path) -> Dumped:
        """Write the journal as it is at one moment into an empty folder; others go on writing."""
        async with self._connections() as connections:
            return await _dumped(connections, folder)

    async def load(self, folder: Path) -> None:
        """Load a dump into the database, which has no journal yet: all or nothing."""
        async with self._connections() as connections:
            await _load(connections, folder)

    async def counts(self) -> JournalCounts:
        """The journal in numbers and digests, as it is now."""
        async with self._connections() as connections, connections.snapshot() as connection:
            return await _counts(connection)

    async def migration_state(self) -> tuple[int, int, list[Migration]]:
        """The schema of the store, the newest that this program knows, and the migrations between them."""
        known = shipped()
        async with self._connections() as connections, connections.reading() as connection:
            lacking = await missing(connection, known)
        return known[-1].number - len(lacking), known[-1].number, lacking

    @asynccontextmanager
    async def _connections(self) -> AsyncIterator[Connections]:
        connections = Connections(self.address, wait_s=self.busy_ms / 1_000)
        try:
            await connections.check()
            yield connections
        finally:
            await connections.close()


async def _dumped(connections: Connections, folder: Path) -> Dumped:
    tables = list[DumpedTable]()
    async with connections.snapshot() as connection:
        schema = int(await connection.fetchval(SCHEMA))
        eras = tuple(int(row[0]) for row in await connection.fetch(ERAS))
        for name in _tables(schema):
            columns = tuple(str(row[0]) for row in await connection.fetch(COLUMNS, name))
            tables.append(DumpedTable(name, columns))
            query = f"select {', '.join(columns)} from handrail.{name}"  # noqa: S608 - names of our own tables
            target = str(folder / f"{name}.copy")
            await connection.copy_from_query(query, output=target, format="binary", timeout=COPY_S)
        counts = await _counts(connection)
        newest = int(await connection.fetchval(CHECKPOINTS))
        created = await connection.fetchrow(FIRST, STORE_STREAM)
    description = DumpDescription(schema, eras, tuple(tables))
    (folder / DESCRIPTION).write_bytes(msgspec.json.encode(description))
    return Dumped(Record(*created) if created else None, schema, newest, counts)


async def _counts(connection: Connection) -> JournalCounts:
    ends = ENDS if int(await connection.fetchval(SCHEMA)) >= SINCE["tombstone"] else ENDS_BEFORE
    heads = [Head(*row) for row in await connection.fetch(ends)]
    events, latest, definitions = await connection.fetchrow(COUNTS)
    return JournalCounts(
        events=events, streams=len(heads), definitions=definitions, heads=heads_digest(heads), latest=latest
    )


def _tables(schema: int) -> list[str]:
    """The tables that a store of this schema has."""
    return [name for name in TABLES if SINCE.get(name, 0) <= schema]


async def _load(connections: Connections, folder: Path) -> None:
    """Load a dump in the schema that it was made in, then bring it to the present one."""
    try:
        description = msgspec.json.decode((folder / DESCRIPTION).read_bytes(), type=DumpDescription)
    except (OSError, msgspec.MsgspecError) as error:
        raise IntegrityBroken("the dump of the journal can't be read", hint=ANOTHER) from error
    known = shipped()
    if description.schema > known[-1].number:
        raise Unavailable("the backup was made by a newer handrail", hint="update handrail")
    if {table.name for table in description.tables} != set(_tables(description.schema)):
        raise IntegrityBroken("the dump of the journal has other tables than handrail writes", hint=ANOTHER)
    await migrate(connections, [one for one in known if one.number <= description.schema])
    try:
        async with connections.reading() as connection, connection.transaction():
            if await connection.fetchval(HAS_CONTENT):
                raise Conflict("the database has a journal already", hint="name an empty one; nothing was changed")
            for era in description.eras:
                await connection.execute(OPEN_ERA, era)
            await connection.execute("delete from handrail.lane")
            for table in description.tables:
                await connection.copy_to_table(
                    table.name,
                    schema_name="handrail",
                    columns=list(table.columns),
                    source=str(folder / f"{table.name}.copy"),
                    format="binary",
                    timeout=COPY_S,
                )
            await connection.execute(FREE_LEASES)
    except BELOW as error:
        raise store_error(error, connections.name) from error
    await migrate(connections, known)
