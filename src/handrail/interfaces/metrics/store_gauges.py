"""How the store and this process are at the moment of a scrape: gauges, each read when it is asked for.

Async; everything is bounded, so that a scrape of a large store costs about the same as one of a small one."""

from __future__ import annotations

import asyncio
import platform
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeAlias

from handrail.assembly.backups.schedule import state_of
from handrail.assembly.opening import Assembly
from handrail.assembly.verified import verified_last
from handrail.domain.errors import HandrailError
from handrail.domain.health.check import CheckLevel
from handrail.domain.metrics import catalog
from handrail.domain.metrics.catalog import Metric, age_label
from handrail.domain.run.status import RUN_SHOWN_OPEN
from handrail.domain.scheduling.breaker import BreakerStatus
from handrail.engine.clock import system_clock
from handrail.engine.reading.run_view import RunSummary, WaitingKind
from handrail.engine.reading.tool_stats import breakers_of
from handrail.foundation.cache_use import CacheCount, counted
from handrail.interfaces.health.live_checks import HealthReport
from handrail.settings import Settings

RUNS_READ: Final = 1_000
LEVELS: Final = {CheckLevel.OK: 0, CheckLevel.WARN: 1, CheckLevel.FAIL: 2}
BREAKERS: Final = {BreakerStatus.CLOSED: 0, BreakerStatus.HALF_OPEN: 1, BreakerStatus.OPEN: 2}

Values: TypeAlias = Mapping[tuple[str, ...], float]
Gauges: TypeAlias = dict[Metric, Values]


@dataclass(frozen=True)
class ServerCounts:
    """What only the server knows; a worker has neither."""

    readers: Callable[[], int] = lambda: 0
    sessions: Callable[[], int] = lambda: 0


async def gauges_of(programs: Sequence[Assembly], health: HealthReport, counts: ServerCounts, *, behind: int) -> Gauges:
    """All gauges; without a program, because the store can't be opened, only those that need none."""
    gauges: Gauges = {
        catalog.HEALTH: _health(health),
        catalog.FEED_READERS: {(): counts.readers()},
        catalog.SESSIONS: {(): counts.sessions()},
        catalog.BUILD: {(version("handrail"), platform.python_version()): 1},
        **cache_figures(),
    }
    if not programs:
        return gauges
    return {
        **gauges,
        catalog.BEHIND: {(): behind},
        **_load(programs),
        **await _runs(programs[0]),
        **await _journal(programs[0]),
        catalog.BREAKER: await _breakers(programs),
    }


def cache_figures() -> Gauges:
    """What the caches of this process counted."""
    found = counted()
    return {
        catalog.CACHE_REQUESTS: _by_result(found, lambda one: (one.hits, one.misses)),
        catalog.CACHE_SECONDS: _by_result(found, lambda one: (one.hit_s, one.miss_s)),
        catalog.CACHE_MADE: {(name,): count.made for name, (count, _) in found.items()},
        catalog.CACHE_ENTRIES: {(name,): entries for name, (_, entries) in found.items()},
    }


def _by_result(
    found: Mapping[str, tuple[CacheCount, int]], pair: Callable[[CacheCount], tuple[float, float]]
) -> Values:
    pairs = {name: pair(count) for name, (count, _) in found.items()}
    return {(name, result): pairs[name][place] for name in pairs for place, result in enumerate(("hit", "miss"))}


def _health(report: HealthReport) -> Values:
    worst: dict[tuple[str, ...], float] = {}
    for check in report.checks:
        worst[check.kind,] = max(worst.get((check.kind,), 0), LEVELS[check.level])
    return worst


def _load(programs: Sequence[Assembly]) -> Gauges:
    runs, calls, most, queued = map(sum, zip(*(one.worker.load() for one in programs), strict=True))
    node = programs[0].worker.settings.node
    card = node.present() if node is not None else None
    return {
        catalog.CALLS_RUNNING: {(): calls},
        catalog.CALLS_MAX: {(): most},
        catalog.CALLS_QUEUED: {(): queued},
        catalog.RUNS_EXECUTED: {(): runs},
        catalog.SLOTS: {("used",): card.used, ("total",): card.slots} if card is not None else {},
    }


async def _runs(program: Assembly) -> Gauges:
    store, now_s = program.writer.reader.store, time.time()
    stored: Counter[tuple[str, ...]] = Counter()
    for one in await store.run_counts():
        stored[one.status,] += one.runs
    opened = await program.run_reader.runs(status=RUN_SHOWN_OPEN, limit=RUNS_READ, all_projects=True)
    nodes = await program.writer.reader.nodes()
    return {
        catalog.RUNS: stored,
        **_ages(opened, now_s),
        catalog.NODES: Counter((one.state.value,) for one in nodes.nodes),
        catalog.RUNS_UNASSIGNED: {(): nodes.waiting},
    }


def _ages(opened: Sequence[RunSummary], now_s: float) -> Gauges:
    by_age: Counter[tuple[str, ...]] = Counter()
    oldest: defaultdict[tuple[str, ...], float] = defaultdict(float)
    approvals: Counter[tuple[str, ...]] = Counter()
    longest = 0.0
    for run in opened:
        age_s = _age_s(run.started, now_s)
        by_age[run.status.value, age_label(age_s)] += 1
        oldest[run.status.value,] = max(oldest[run.status.value,], age_s)
        for waiting in run.waiting_for:
            if waiting.kind is WaitingKind.APPROVAL:
                waited_s = _age_s(waiting.since, now_s)
                approvals[age_label(waited_s),] += 1
                longest = max(longest, waited_s)
    return {
        catalog.RUNS_OPEN: by_age,
        catalog.RUN_OLDEST: oldest,
        catalog.APPROVALS: approvals,
        catalog.APPROVAL_OLDEST: {(): longest},
    }


async def _journal(program: Assembly) -> Gauges:
    reader, journal = program.writer.reader, program.writer.journal
    last = await reader.checkpoints.last()
    verified = await asyncio.to_thread(verified_last, reader.settings)
    now, backup = system_clock(), await asyncio.to_thread(_backup_age_s, reader.settings)
    gauges: Gauges = {
        catalog.BACKUP_AGE: {(): backup},
        catalog.JOURNAL_EVENTS: {(): (await reader.store.end()).events},
        catalog.UNSIGNED: {(): journal.unsealed},
        catalog.VERIFY_AGE: {(): (now - verified.at) / 1_000 if verified is not None else -1},
    }
    if verified is not None:
        gauges[catalog.VERIFY_OK] = {(): int(verified.ok)}
    if last is not None:
        gauges[catalog.CHECKPOINT_AGE] = {(): max(0, now - last.checkpoint.at) / 1_000}
    if not reader.settings.choices.store:
        gauges[catalog.JOURNAL_BYTES] = {(): await asyncio.to_thread(_bytes, reader.settings.journal)}
    return gauges


async def _breakers(programs: Sequence[Assembly]) -> Values:
    states: dict[tuple[str, ...], float] = {}
    for program in programs:
        reader = program.writer.reader
        names = program.toolbox.server_names()[: catalog.LABEL_VALUES_MAX]
        for name, breaker in (await breakers_of(reader.store, names, project=reader.project.id)).items():
            states[name,] = max(states.get((name,), 0), BREAKERS[breaker.status])
    return states


def _backup_age_s(settings: Settings) -> float:
    try:
        age_ms = state_of(settings).age_ms
    except HandrailError:  # a schedule that can't be read: the health check says what is wrong with it
        return -1.0
    return -1.0 if age_ms is None else age_ms / 1_000


def _bytes(journal: Path) -> int:
    """The file with its write-ahead log."""
    parts = (journal, journal.with_name(f"{journal.name}-wal"))
    return sum(part.stat().st_size for part in parts if part.exists())


def _age_s(instant: str, now_s: float) -> float:
    return max(0.0, now_s - datetime.fromisoformat(instant).timestamp()) if instant else 0.0
