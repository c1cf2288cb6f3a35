"""A store as the version before projects wrote it: the same events without a project, in the schema of that time."""

from __future__ import annotations

import contextlib
import sqlite3

import yaml

from handrail.assembly.opening import open_store
from handrail.domain.definition.authoring import definition_from
from handrail.engine.dispatch import Dispatch
from handrail.engine.plans import Plans
from handrail.settings import Settings
from handrail.storage.sqlite.migration import FOLDER, statements

ACTOR = "person:ada"
BACK = """
DROP TRIGGER event_is_never_removed;
DROP TABLE tombstone;
DROP TABLE removed_event;
DROP TABLE node;
ALTER TABLE lease DROP COLUMN needs;
ALTER TABLE lease DROP COLUMN needs_n;
DROP INDEX run_by_project;
ALTER TABLE run DROP COLUMN project;
ALTER TABLE run DROP COLUMN exceptions;
ALTER TABLE plan RENAME TO plan_of_project;
"""
PLANS_BACK = """
INSERT INTO plan (id, version, definition, name, steps, saved, retired, n, head)
SELECT id, version, definition, name, steps, saved, retired, n, head FROM plan_of_project;
DROP TABLE plan_of_project;
DELETE FROM migration WHERE number >= 3;
"""


async def store_from_before(settings: Settings, definition: str) -> str:
    """Make a store with a saved plan and a run of it that nobody has executed yet: the run's id."""
    plan = definition_from(yaml.safe_load(definition))
    async with open_store(settings) as opened:
        await Plans(opened.journal, opened.record_writer).save(plan, actor=ACTOR)
        run = await Dispatch(opened.journal, opened.record_writer).start(plan, {}, actor=ACTOR)
    with contextlib.closing(sqlite3.connect(settings.journal)) as database:
        first = (FOLDER / "0001_journal.sql").read_text(encoding="utf-8")
        made = [one for one in statements(first) if "CREATE TABLE plan " in one or "TRIGGER event_is_never_rem" in one]
        database.executescript(BACK + "".join(made) + PLANS_BACK)
        assert database.execute("SELECT max(number) FROM migration").fetchone() == (2,)
        assert not database.execute("SELECT 1 FROM event WHERE body LIKE '%project%'").fetchall()
    return run.id
