"""Migrations of the PostgreSQL store: numbered files in sql/, each applied once, all in one transaction.

A process that is older than the store refuses to use it. So a change comes in two steps when processes of two versions
have to work side by side: the first only adds (expand), and a later version removes what is not used any more
(contract). `sql/` says in the first line of each file what it is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from handrail.storage.migrations import Migration, migrations_in, not_applied
from handrail.storage.postgres.connections import Connection, Connections
from handrail.storage.postgres.faults import BELOW, store_error

FOLDER: Final = Path(__file__).with_name("sql")
LOCK: Final = 0x48524A4C
"""The advisory lock of migrations: of the transaction, because a pooler may stand in between."""

HAS_TABLE: Final = "select to_regclass('handrail.migration') is not null"
"""Whether anything was applied here before."""

MAKE_TABLE: Final = """
    create schema if not exists handrail;
    create table if not exists handrail.migration (
        number integer primary key, name text not null, digest text not null,
        applied timestamptz not null default now())
"""
"""Where it is noted what was applied."""

APPLIED: Final = "select number, digest from handrail.migration order by number"
"""What was applied, by number."""

PUT_APPLIED: Final = "insert into handrail.migration (number, name, digest) values ($1, $2, $3)"
"""Note that a migration was applied."""


def shipped() -> list[Migration]:
    """The migrations that are part of this program, by number."""
    return migrations_in(FOLDER)


async def migrate(connections: Connections, migrations: Sequence[Migration]) -> None:
    """Apply what is missing; refuse a store that is newer than the program or was made by different SQL."""
    try:
        async with connections.reading() as connection:
            if not await missing(connection, migrations):
                return
            async with connection.transaction():
                await connection.execute(f"select pg_advisory_xact_lock({LOCK})")  # a second process waits here
                await connection.execute(MAKE_TABLE)
                for migration in await missing(connection, migrations):
                    await connection.execute(migration.text)
                    await connection.execute(PUT_APPLIED, migration.number, migration.name, migration.digest)
    except BELOW as error:
        raise store_error(error, connections.name) from error


async def missing(connection: Connection, migrations: Sequence[Migration]) -> list[Migration]:
    """The migrations that were not applied to this store yet."""
    async with connection.transaction():
        has_table = await connection.fetchval(HAS_TABLE)
        applied: Mapping[int, str] = dict(map(tuple, await connection.fetch(APPLIED))) if has_table else {}
    return not_applied(applied, migrations)
