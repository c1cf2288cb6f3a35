"""Statistics of tools and their servers, read from the journal: so they survive restarts and cover all processes.

Async; reads the newest events up to a limit, and writes nothing. tool_tally.py adds them up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct

from handrail.domain.errors import HandrailError
from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import Entry, Mode, RunStarted
from handrail.domain.journal.mark import START
from handrail.domain.project import scoped, server_in, server_stream
from handrail.domain.scheduling.breaker import Breaker, replay_breaker
from handrail.engine.journal import Archive, Journal, ProjectionReader
from handrail.engine.measuring.step_lookup import StepLookup, tool_of, undo_of
from handrail.engine.reading.tool_tally import Called, ServerHistory, Tally, ToolFigures
from handrail.engine.stream_pages import entries_of

EVENTS_MAX: Final = 1_000_000
"""How many of the latest events are read; if older ones are left out, the report says so."""
BATCH: Final = 2_000
EARLIER_MS: Final = 3_600_000
"""How long before `since` to start reading: calls that end after it started earlier, and clocks differ a little."""

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
    lookup: StepLookup = field(init=False)

    def __post_init__(self) -> None:
        self.lookup = StepLookup(self.store)

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
            self.lookup.note(entry.stream, entry.event)

    def _counts(self, project: str) -> bool:
        return self.project in (None, project)

    async def _called(self, run: str, path: str) -> Called:
        pinned = await self.lookup.run(run)
        if pinned is None or pinned.mode != Mode.RUN or not self._counts(pinned.project):
            return NO_TOOL  # what a run only records was done by its agent
        step = await self.lookup.step(pinned, path)
        tool, undo = tool_of(step, pinned), undo_of(step, pinned)
        return Called(tool or None, undo or None, is_own_undo=step.undo is None) if tool or undo else NO_TOOL
