"""Migrations: numbered SQL files that bring a database to the schema of this program.

Each is applied in one transaction together with the row that records it: if the process is killed, the database has the
old schema or the new one, never half of it. A new database gets all of them in one, so that no process ever sees an
older schema there, which would look like one to keep a copy of. Applied files never change; their digest is stored with
that row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from handrail.domain.errors import Unavailable
from handrail.engine.clock import system_clock
from handrail.storage.migrations import Migration, migrations_in, newer_store, not_applied
from handrail.storage.sqlite.queries import BEGIN_WRITE, COMMIT, ROLLBACK

FOLDER: Final = Path(__file__).parent / "sql"

HAS_TABLE: Final = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'migration'"
"""Whether any migration was ever applied."""

MAKE_TABLE: Final = """
    CREATE TABLE IF NOT EXISTS migration (
        number INTEGER PRIMARY KEY, name TEXT NOT NULL, digest TEXT NOT NULL, at INTEGER NOT NULL
    ) STRICT"""
"""Create the list of applied migrations, together with the first migration."""

APPLIED: Final = "SELECT number, digest FROM migration ORDER BY number"
"""The migrations that were applied."""

PUT_APPLIED: Final = "INSERT INTO migration (number, name, digest, at) VALUES (?, ?, ?, ?)"
"""Record that a migration was applied."""


def shipped() -> list[Migration]:
    """The migrations that are part of this program, by number."""
    return migrations_in(FOLDER)


def migrate(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    """Apply what is missing; refuse a database that is newer than the program or was made by different SQL."""
    while pending(connection, migrations):
        connection.execute(BEGIN_WRITE)  # a second process waits here, and then finds nothing to do
        try:
            todo = pending(connection, migrations)
            for migration in todo[:1] if applied_schema(connection) else todo:
                _apply(connection, migration)
            connection.execute(COMMIT)
        except BaseException:
            if connection.in_transaction:
                connection.execute(ROLLBACK)
            raise


def pending(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> list[Migration]:
    """The migrations that were not applied to this database yet."""
    return not_applied(_applied(connection), migrations)


def applied_schema(connection: sqlite3.Connection) -> int:
    """The number of the newest migration of a database; 0 if none was applied."""
    return max(_applied(connection), default=0)


def newer_schema(connection: sqlite3.Connection, known: int) -> Unavailable | None:
    """Why a program that knows this schema must not use a database any more; None if it may."""
    present = applied_schema(connection)
    return newer_store(present, known) if present > known else None


def _applied(connection: sqlite3.Connection) -> Mapping[int, str]:
    (count,) = connection.execute(HAS_TABLE).fetchone()
    return dict(connection.execute(APPLIED).fetchall()) if count else {}


def _apply(connection: sqlite3.Connection, migration: Migration) -> None:
    connection.execute(MAKE_TABLE)
    for statement in statements(migration.text):
        connection.execute(statement)
    connection.execute(PUT_APPLIED, (migration.number, migration.name, migration.digest, system_clock()))


def statements(text: str) -> Iterator[str]:
    """The statements of an SQL text; each ends at the end of a line.

    `executescript` of sqlite3 can't be used: it commits the open transaction first."""
    held = ""
    for line in text.splitlines(keepends=True):
        held += line
        if sqlite3.complete_statement(held):
            yield held
            held = ""
    if held.strip():
        raise ValueError(f"an SQL text ends inside a statement: {held.strip()[:60]}")
