"""Checks of a program that runs: its store, workers, checkpoints and tool servers, beside what they stand on.

Nothing is written for them: whether the store can be written is known from the beats that workers write anyway."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.assembly.backups.schedule import TABLE as BACKUPS
from handrail.assembly.notify.keeping import TABLE as CHANNELS
from handrail.assembly.opening import Assembly
from handrail.domain.errors import HandrailError, Unavailable
from handrail.domain.health.check import HealthCheck, HealthStatus, failed_with, overall
from handrail.domain.health.judgement import checkpoint_check, clock_check, server_check, store_check, worker_check
from handrail.domain.instant import instant_text
from handrail.engine.clock import system_clock
from handrail.engine.reading.tool_stats import breakers_of
from handrail.interfaces.health.home_checks import (
    backups_of,
    channel_checks,
    clocks,
    free_space,
    keys_of,
    witness_checks,
)
from handrail.settings import Settings

ANSWER_S: Final = 5.0
"""How long the store may take to answer."""
KEPT_S: Final = 1.0
"""How long a report is given again: who asks without end costs no more than one look a second."""

OpenProgram: TypeAlias = Callable[[], Awaitable[Assembly]]
OpenedPrograms: TypeAlias = Callable[[], Sequence[Assembly]]


class HealthReport(Struct, frozen=True, kw_only=True):
    """All checks, and what they add up to."""

    status: HealthStatus
    checks: tuple[HealthCheck, ...]
    at: str


class ProgramHealth:
    """Looks at a program, which may not be open yet or not be able to open."""

    def __init__(self, settings: Settings, open_program: OpenProgram, opened: OpenedPrograms) -> None:
        self._settings, self._open, self._opened = settings, open_program, opened
        self._started = clocks()
        self._lock = asyncio.Lock()
        self._kept: tuple[float, HealthReport] | None = None

    async def report(self) -> HealthReport:
        """How everything is now, or was within the last second."""
        async with self._lock:
            now_s = asyncio.get_running_loop().time()
            if self._kept is None or now_s - self._kept[0] >= KEPT_S:
                checks = tuple(await self.checks())
                self._kept = now_s, HealthReport(status=overall(checks), checks=checks, at=instant_text(system_clock()))
            return self._kept[1]

    async def checks(self) -> list[HealthCheck]:
        """Every check, now."""
        machine = await asyncio.to_thread(self._machine_checks)
        try:
            async with asyncio.timeout(ANSWER_S):
                program = await self._open()
                live = await self._live_checks(program)
        except TimeoutError:
            live = [failed_with("store", Unavailable(f"the store has not answered within {ANSWER_S:g} s"))]
        except HandrailError as error:
            live = [failed_with("store", error)]
        return [*live, *machine]

    def _machine_checks(self) -> list[HealthCheck]:
        checks = [free_space(self._settings.home), keys_of(self._settings)]
        # That there is no schedule is a choice, which only doctor speaks of.
        return [*checks, backups_of(self._settings)] if BACKUPS in self._settings.home_tables else checks

    async def _live_checks(self, program: Assembly) -> list[HealthCheck]:
        reader, now = program.writer.reader, system_clock()
        events = (await reader.store.end()).events
        latest = await reader.ledger.latest(limit=1)
        last = await reader.checkpoints.last()
        signed = last.checkpoint if last is not None else None
        worker, journal = program.worker, program.writer.journal
        return [
            store_check(events, worker.beats.problem, age_ms=worker.beats.age_ms),
            clock_check(now=now, jump_ms=self._jump_ms(), last_event=latest[-1].at if latest else None),
            *(worker_check(one.worker.polls.problem, age_ms=one.worker.polls.age_ms) for one in self._opened()),
            checkpoint_check(
                journal.problem, unsigned=journal.unsealed, signed=signed.at if signed is not None else None, now=now
            ),
            *await witness_checks(self._settings, signed),
            *(await channel_checks(self._settings, reader.store) if CHANNELS in self._settings.home_tables else []),
            *[check for one in self._opened() for check in await _server_checks(one)],
        ]

    def _jump_ms(self) -> int:
        """How far the wall clock moved against the steady one since the last look."""
        before, self._started = self._started, clocks()
        return int(((self._started[0] - before[0]) - (self._started[1] - before[1])) * 1_000)


async def _server_checks(program: Assembly) -> list[HealthCheck]:
    reader = program.writer.reader
    known = await breakers_of(reader.store, program.toolbox.server_names(), project=reader.project.id)
    return [server_check(one) for one in known.values()]
