"""Upgrades the tables of a store to those of this program, with a backup before it.

Part of the only place that knows which parts the program is made of. Which migrations there are is in storage/."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from handrail.assembly.backups.taking import BackupRequest, make_backup
from handrail.assembly.opening import open_reader
from handrail.assembly.stores import is_shared, postgres_dump, writing_store
from handrail.domain.errors import IntegrityBroken, NotFound
from handrail.engine.clock import system_clock, system_entropy
from handrail.engine.record_writer import RecordWriter
from handrail.settings import Settings
from handrail.storage.migrations import Migration
from handrail.storage.sqlite.state import migration_state


class UpgradePlan(Struct, frozen=True):
    """What an upgrade would do: from which schema to which, by which migrations."""

    schema: int
    newest: int
    pending: tuple[tuple[int, str], ...]


class Upgraded(Struct, frozen=True):
    """What an upgrade has done."""

    plan: UpgradePlan
    backup: Path | None
    events: int


async def upgrade_plan(settings: Settings) -> UpgradePlan:
    """What has to be applied to the store; refuses one that is newer than this program."""
    if is_shared(settings):
        schema, known, missing = await postgres_dump(settings).migration_state()
    else:
        if not settings.journal.exists():
            raise NotFound("this home has no journal", hint="it is created with the newest schema on first use")
        schema, known, missing = await asyncio.to_thread(migration_state, settings.journal)
    return UpgradePlan(schema, known, _named(missing))


async def upgrade(settings: Settings, target: Path | None) -> Upgraded:
    """Back up, apply what is missing, and verify the journal; nothing if it is up to date."""
    plan = await upgrade_plan(settings)
    if not plan.pending:
        return Upgraded(plan, None, 0)
    made = await make_backup(settings, BackupRequest(target=target)) if target is not None else None
    record_writer = RecordWriter(system_clock, system_entropy)
    async with writing_store(settings, record_writer, compare=True):
        pass  # opening applies what is missing
    async with open_reader(settings) as look:
        verdict = await look.verify()
    if verdict.first_bad is not None:
        raise IntegrityBroken(f"the journal is not intact after the upgrade: {verdict.first_bad.reason}")
    return Upgraded(plan, made.folder if made else None, verdict.events)


def _named(missing: list[Migration]) -> tuple[tuple[int, str], ...]:
    return tuple((one.number, one.name.replace("_", " ")) for one in missing)
