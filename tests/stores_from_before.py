"""A store as the version before projects wrote it: the same events without a project, in the schema of that time."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import yaml

from handrail.assembly.opening import open_store
from handrail.domain.definition.authoring import definition_from
from handrail.engine.dispatch import Dispatch
from handrail.engine.plans import Plans
from handrail.settings import Settings
from handrail.storage.sqlite.migration import migrate, shipped

ACTOR = "person:ada"
SCHEMA = 2
"""The last one without projects."""


async def store_from_before(settings: Settings, definition: str) -> str:
    """Make a store with a saved plan and a run of it that was not executed yet: the run's id."""
    plan = definition_from(yaml.safe_load(definition))
    async with open_store(settings) as opened:
        await Plans(opened.journal, opened.record_writer).save(plan, actor=ACTOR)
        run = await Dispatch(opened.journal, opened.record_writer).start(plan, {}, actor=ACTOR)
    _bring_back(settings.journal)
    return run.id


def _bring_back(journal: Path) -> None:
    """Write a journal again as its first migrations made it: the same rows, as far as there were such columns."""
    older = journal.with_name("older.db")
    with contextlib.closing(sqlite3.connect(older, isolation_level=None)) as database:
        migrate(database, shipped()[:SCHEMA])
        database.execute("ATTACH ? AS newer", (str(journal),))
        for table in _names(
            database, "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name != 'migration'"
        ):
            wanted = _names(database, f"SELECT name FROM pragma_table_info('{table}', 'main')")
            known = _names(database, f"SELECT name FROM pragma_table_info('{table}', 'newer')")
            columns = ", ".join(name for name in wanted if name in known)
            database.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}")
        assert not database.execute("SELECT 1 FROM main.event WHERE body LIKE '%project%'").fetchall()
    for file in journal.parent.glob(f"{journal.name}*"):
        file.unlink()
    older.rename(journal)


def _names(database: sqlite3.Connection, query: str) -> list[str]:
    return [name for (name,) in database.execute(query) if not name.startswith("sqlite_")]
