"""Statistics of tools and their servers, read from the journal: so they survive restarts and cover all processes.

Async; reads the newest events up to a limit, and writes nothing. tool_tally.py adds them up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct

from handrail.domain.definition.model import Definition, Tool
from handrail.domain.errors import HandrailError
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import Entry, Mode, RunStarted
from handrail.domain.journal.mark import START
from handrail.domain.project import scoped, server_in, server_stream
from handrail.domain.run.step_path import locate
from handrail.domain.scheduling.breaker import Breaker, replay_breaker
from handrail.engine.journal import Archive, Journal, ProjectionReader
from handrail.engine.pinned_definitions import PinnedDefinitions
from handrail.engine.reading.tool_tally import Called, ServerHistory, Tally, ToolFigures
from handrail.engine.stream_pages import entries_of
from handrail.foundation.bounded_cache import BoundedCache

EVENTS_MAX: Final = 1_000_000
"""How many of the latest events are read; if older ones are left out, the report says so."""
BATCH: Final = 2_000
EARLIER_MS: Final = 3_600_000
"""How long before `since` to start reading: calls that end after it started earlier, and clocks differ a little."""
RUNS_KEPT: Final = 10_000
STEPS_KEPT: Final = 10_000

RUN_STARTED: Final = "run_started"
STEP_KINDS: Final = frozenset(
    {
        "approval_requested",
        "attempt_started",
        "attempt_failed",
        "attempt_lost",
        "retry_scheduled",
        "step_deferred",
        "step_became_uncertain",
        "step_completed",
        "step_cancelled",
        "undo_started",
        "undo_failed",
        "undo_lost",
        "undo_became_uncertain",
        "step_compensated",
    }
)
BREAKER_KINDS: Final = frozenset({"breaker_opened", "breaker_probed", "breaker_closed"})
READ_KINDS: Final = STEP_KINDS | BREAKER_KINDS | {RUN_STARTED}
NO_TOOL: Final = Called(None, None)


_round = re.compile(r"\[\d+\]")


class FiguresStore(Journal, ProjectionReader, Archive, Protocol):
    """What the statistics are read from."""


class ToolReport(Struct, frozen=True, kw_only=True):
    """The statistics of tools and their servers."""

    tools: tuple[ToolFigures, ...]
    by_server: tuple[ToolFigures, ...] = ()
    """The same of all tools of a server together; `tool` is its name."""
    servers: tuple[ServerHistory, ...]
    events: int
    """How many events were read."""
    is_cut: bool = False
    """Whether older events were left out because there are too many."""
    unread: int = 0
    """How many events could not be read, or belong to runs that could not."""
    unlisted: int = 0
    """How many calls were of tools beyond the limit of listed tools."""


async def tool_figures(
    store: FiguresStore, *, since: int = 0, events_max: int = EVENTS_MAX, project: str | None = None, slot_ms: int = 0
) -> ToolReport:
    """The statistics of all tools that were called since a time, and the outages of servers: of all projects, or of
    one; with `slot_ms` also over time, in slots of this length."""
    end = await store.end()
    asked = await store.mark_at(since - EARLIER_MS) if since else START
    is_cut = end.events - asked.events > events_max
    after = end.without_last(events_max).joined(asked) if is_cut else asked
    reader = _FiguresReader(store, Tally(since=since, slot_ms=slot_ms), project)
    looked_at = 0
    async for batch in store.scan(after=after, size=BATCH):
        looked_at += len(batch)
        for placed in batch:
            await reader.take(placed.record)
    tally = reader.tally
    return ToolReport(
        tools=tuple(tally.figures()),
        by_server=tuple(tally.by_server()),
        servers=tuple(tally.history()),
        events=looked_at,
        is_cut=is_cut,
        unread=reader.unread,
        unlisted=tally.unlisted,
    )


async def breakers_of(journal: Journal, servers: Iterable[str], *, project: str = "") -> Mapping[str, Breaker]:
    """The breakers of these servers of a project, from the journal."""
    return {
        name: replay_breaker(await entries_of(journal, server_stream(project, name)), Breaker(server=name))
        for name in servers
    }


@dataclass
class _FiguresReader:
    """Finds out which tool an event is about."""

    store: FiguresStore
    tally: Tally
    project: str | None = None
    """Whose calls are counted; None for those of all projects."""
    unread: int = 0
    _runs: BoundedCache[str, str] = field(default_factory=lambda: BoundedCache(RUNS_KEPT))
    """By run, the definition that it is pinned to; empty if no tool of ours does its steps."""
    _definitions: PinnedDefinitions = field(init=False)
    _steps: BoundedCache[tuple[str, str], Called] = field(default_factory=lambda: BoundedCache(STEPS_KEPT))

    def __post_init__(self) -> None:
        self._definitions = PinnedDefinitions(self.store)

    async def take(self, record: Record) -> None:
        """Add an event, if it is about a call or a server."""
        if record.kind not in READ_KINDS:
            return
        try:
            if record.kind in BREAKER_KINDS:
                project, server = server_in(record.stream)
                if self._counts(project):
                    name = server if self.project is not None else scoped(project, server)
                    self.tally.take_breaker(name, entry_of(record))
            elif record.kind == RUN_STARTED:
                self._note_run(entry_of(record))
            elif record.step is not None:
                called = await self._called(record.stream, record.step)
                if called is not NO_TOOL:  # events of agents and people are skipped without decoding
                    self.tally.take(entry_of(record), called)
        except HandrailError:  # a damaged event must not hide the others
            self.unread += 1

    def _note_run(self, entry: Entry) -> None:
        # Another project's run may have been adopted since: then only its row says where it belongs now.
        if isinstance(entry.event, RunStarted) and self._counts(entry.event.project):
            self._runs.put(entry.stream, _pinned(entry.event.definition, entry.event.mode))

    def _counts(self, project: str) -> bool:
        return self.project in (None, project)

    async def _called(self, run: str, path: str) -> Called:
        definition = self._runs.get(run)
        if definition is None:
            row = await self.store.run(run)
            definition = _pinned(row.definition, row.mode) if row is not None and self._counts(row.project) else ""
            self._runs.put(run, definition)
        if not definition:
            return NO_TOOL
        place = (definition, _round.sub("[0]", path))  # all rounds of a loop call the same tool
        called = self._steps.get(place)
        if called is None:
            called = called_by(await self._definitions.get(definition), place[1])
            self._steps.put(place, called)
        return called


def called_by(definition: Definition, path: str) -> Called:
    """Which tool does a step, and which undoes it; by default the same tool."""
    step = locate(definition, path).step
    tool = step.work.tool if isinstance(step.work, Tool) else None
    if step.undo is None:
        return Called(tool, tool, is_own_undo=True) if tool is not None else NO_TOOL
    undo = step.undo.tool if isinstance(step.undo, Tool) else None
    return NO_TOOL if tool is undo is None else Called(tool, undo)


def _pinned(definition: str, mode: str) -> str:
    return definition if mode == Mode.RUN else ""  # else the agent's own hands did it all
