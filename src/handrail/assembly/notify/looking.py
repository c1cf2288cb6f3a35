"""Looks how things are that rules of notices ask for: who is waited for, disk, journal, backups, verification."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from handrail.assembly.backups.register import BackupRegister
from handrail.assembly.stores import is_shared
from handrail.assembly.verified import verified_last
from handrail.domain.instant import instant_from
from handrail.domain.notify.conditions import HomeLook, NoticeCondition, WaitsFor, conditions_of
from handrail.domain.notify.rules import NotifyRule, NotifyWhen
from handrail.domain.run.status import RUN_SHOWN_ASKING
from handrail.engine.clock import system_clock
from handrail.engine.proving.projection_repair import WholeStore
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import RunSummary, WaitingKind
from handrail.settings import Settings

RUNS_READ = 1_000
OF_PEOPLE = frozenset({NotifyWhen.WAITING, NotifyWhen.APPROVAL_EXPIRES})
OF_HOME = frozenset({NotifyWhen.DISK, NotifyWhen.JOURNAL_SIZE, NotifyWhen.BACKUP_OLD, NotifyWhen.VERIFY_FAILED})


@dataclass
class Looking:
    """Looks for the rules of one channel."""

    settings: Settings
    store: WholeStore
    rules: Sequence[NotifyRule]

    def __post_init__(self) -> None:
        self._reader = RunReader(self.store, system_clock, fleet=self.store, is_shared=is_shared(self.settings))

    async def conditions(self) -> Sequence[NoticeCondition]:
        """What is the case now, by these rules."""
        wanted = {rule.when for rule in self.rules}
        looked = HomeLook()
        if wanted & OF_HOME:
            looked = await asyncio.to_thread(self._home)
        if wanted & OF_PEOPLE:
            rows = await self._reader.runs(status=RUN_SHOWN_ASKING, limit=RUNS_READ, all_projects=True)
            waiting = sorted((one for row in rows for one in _waiting(row)), key=lambda one: (one.since, one.run))
            looked = replace(looked, waiting=waiting)
        return conditions_of(self.rules, looked, now=system_clock())

    def _home(self) -> HomeLook:
        newest = next(iter(BackupRegister(self.settings.home).all()), None)
        verified = verified_last(self.settings)
        has_file = not is_shared(self.settings)
        return HomeLook(
            disk_free=shutil.disk_usage(self.settings.home).free,
            journal_bytes=_bytes(self.settings.journal) if has_file else None,
            backup_at=newest.at if newest is not None else None,
            has_journal=not has_file or self.settings.journal.exists(),
            verified_at=verified.at if verified is not None else None,
            verified_ok=verified.ok if verified is not None else True,
        )


def _waiting(row: RunSummary) -> list[WaitsFor]:
    return [
        WaitsFor(
            run=row.run,
            workflow=row.workflow,
            project=row.project.id if row.project is not None else "",
            kind=one.kind.value,
            step=one.step,
            since=instant_from(one.since),
            expires=instant_from(one.expires) if one.expires else None,
        )
        for one in row.waiting_for
        if one.kind is not WaitingKind.AGENT and one.since
    ]


def _bytes(journal: Path) -> int:
    """The file with its write-ahead log."""
    parts = (journal, journal.with_name(f"{journal.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())
