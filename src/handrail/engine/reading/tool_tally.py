"""Counts tool calls from events: how many, how long, how they failed, and when servers were unavailable.

No I/O; memory is bounded however many calls there are. tool_stats.py reads the events."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from math import ceil
from typing import Final

from msgspec import Struct

from handrail.domain.journal.event import (
    About,
    ApprovalRequested,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    Entry,
    Event,
    How,
    RetryScheduled,
    StepBecameUncertain,
    StepCancelled,
    StepCompensated,
    StepCompleted,
    StepDeferred,
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    UndoStarted,
)
from handrail.domain.journal.store_event import BreakerClosed, BreakerOpened, BreakerProbed
from handrail.foundation.bounded_cache import BoundedCache

TOOLS_MAX: Final = 1_000
"""How many tools are listed; calls of other tools are only counted."""
SERVERS_MAX: Final = 1_000
OUTAGES_MAX: Final = 20
"""How many of the latest outages of each server are listed."""
SLOTS_MAX: Final = 200
OPEN_MAX: Final = 10_000
"""How many running calls are remembered, to know how long they took."""
EXACT_MS: Final = 1_000
"""Below this, durations are exact; above, they have three digits, so that the number of buckets is bounded."""
TOOK_MS_MAX: Final = 10**10
MESSAGE_SHOWN: Final = 200
LOST: Final = "lost"
"""The failure of a call whose outcome was never seen; not a category, because the tool did not report one."""
CANCELLED: Final = "cancelled"


class Called(Struct, frozen=True):
    """Which tool does a step, and which undoes it; None if no tool does."""

    tool: str | None
    undo: str | None
    is_own_undo: bool = False
    """Whether the tool undoes its own effect."""


class _Ending(Struct, frozen=True, kw_only=True):
    """How a call of a tool, or an undo, ended."""

    step: str
    is_undo: bool = False
    failure: str = ""
    took: int | None = None
    """As the engine measured it; 0 if unknown, None if it says nothing about the tool."""
    again: bool = False
    """Whether it is retried automatically."""


class CallsInSlot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The calls in one slot of the time that is looked at; slots without calls are left out."""

    start: int
    calls: int
    failed: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None


class ToolFigures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The statistics of the calls of a tool, or of all tools of a server."""

    tool: str
    is_undo: bool = False
    """Whether these are calls of the tool's own undo."""
    calls: int = 0
    failures: dict[str, int] = {}
    """By category; `lost` are those whose outcome was never seen."""
    retries: int = 0
    p50_ms: int | None = None
    p95_ms: int | None = None
    p99_ms: int | None = None
    max_ms: int | None = None
    last: int = 0
    slots: tuple[CallsInSlot, ...] = ()
    """The same over time, if that was asked for."""


class Outage(Struct, kw_only=True, omit_defaults=True):
    """A time in which a server was not called, from the first opening of its breaker to its closing."""

    opened: int
    reason: str
    failures: int
    until: int
    openings: int = 1
    probes: int = 0
    closed: int | None = None

    def take(self, entry: Entry) -> None:
        """Add the breaker's next event."""
        match entry.event:
            case BreakerOpened(failures=failures, until=until):
                self.openings, self.failures, self.until = self.openings + 1, failures, until
            case BreakerProbed():
                self.probes += 1
            case BreakerClosed():
                self.closed = entry.at


class ServerHistory(Struct, frozen=True, kw_only=True):
    """The latest outages of a server, oldest first."""

    server: str
    outages: tuple[Outage, ...]


class Times:
    """Durations in buckets: exact below a second, three digits above."""

    def __init__(self) -> None:
        self._buckets: Counter[int] = Counter()
        self.max: int | None = None

    def add(self, milliseconds: int) -> None:
        """Add a duration."""
        took = min(max(0, milliseconds), TOOK_MS_MAX)
        self.max = took if self.max is None else max(self.max, took)
        self._buckets[_rounded(took)] += 1

    def at(self, *percents: int) -> list[int | None]:
        """The durations at these percentiles, given in rising order; None if there are none."""
        wanted = [max(1, ceil(percent * self._buckets.total() / 100)) for percent in percents]
        found: list[int | None] = []
        seen = 0
        for bucket in sorted(self._buckets):
            seen += self._buckets[bucket]
            while len(found) < len(wanted) and seen >= wanted[len(found)]:
                found.append(bucket)
        return found or [None] * len(percents)


class _SlotTally:
    """The calls of one tool in one slot of time."""

    def __init__(self) -> None:
        self.calls = self.failed = 0
        self.times = Times()

    def calls_in(self, start: int) -> CallsInSlot:
        """Their statistics."""
        p50, p95 = self.times.at(50, 95)
        return CallsInSlot(start=start, calls=self.calls, failed=self.failed, p50_ms=p50, p95_ms=p95)


class _Line:
    """The calls of one tool so far, also by slots of time if these have a length."""

    def __init__(self, slot_ms: int = 0) -> None:
        self.calls = self.retries = self.last = 0
        self.failures: Counter[str] = Counter()
        self.times = Times()
        self.slot_ms = slot_ms
        self.slots: dict[int, _SlotTally] = {}

    def add(self, ending: _Ending, *, at: int, lasted: int | None) -> None:
        """Add a call; `lasted` is the time between its two events, if both were seen."""
        self.calls += 1
        self.last = max(self.last, at)
        self.retries += ending.again
        if ending.failure:
            self.failures[ending.failure] += 1
        took = None if ending.took is None else ending.took or lasted
        if took is not None:
            self.times.add(took)
        if self.slot_ms:
            self._add_to_slot(at // self.slot_ms, took, is_failed=bool(ending.failure))

    def _add_to_slot(self, number: int, took: int | None, *, is_failed: bool) -> None:
        if number not in self.slots and len(self.slots) >= SLOTS_MAX:
            return
        slot = self.slots.setdefault(number, _SlotTally())
        slot.calls += 1
        slot.failed += is_failed
        if took is not None:
            slot.times.add(_coarse(took))

    def figures(self, tool: str, *, is_undo: bool) -> ToolFigures:
        """Their statistics."""
        p50, p95, p99 = self.times.at(50, 95, 99)
        return ToolFigures(
            tool=tool,
            is_undo=is_undo,
            calls=self.calls,
            failures=dict(self.failures.most_common()),
            retries=self.retries,
            p50_ms=p50,
            p95_ms=p95,
            p99_ms=p99,
            max_ms=self.times.max,
            last=self.last,
            slots=tuple(slot.calls_in(number * self.slot_ms) for number, slot in sorted(self.slots.items())),
        )


class Tally:
    """Adds up events in store order; calls that ended before `since` do not count."""

    def __init__(self, *, since: int = 0, slot_ms: int = 0) -> None:
        self._since, self._slot_ms = since, slot_ms
        self._lines: dict[tuple[str, bool], _Line] = {}
        self._servers: dict[str, _Line] = {}
        self._started: BoundedCache[tuple[str, str, bool], int] = BoundedCache(OPEN_MAX)
        self._outages: dict[str, deque[Outage]] = {}
        self.unlisted = 0
        """How many calls were of tools that are not listed."""

    def take(self, entry: Entry, called: Called) -> None:
        """Add an event of a step that a tool does or undoes."""
        match entry.event:
            case AttemptStarted(step=step):
                self._start_call((entry.stream, step, False), entry.at)
            case UndoStarted(step=step):
                self._start_call((entry.stream, step, True), entry.at)
            case RetryScheduled() if called.tool is not None and entry.at >= self._since:
                line = self._line(called.tool, is_undo=False)
                if line is not None:
                    line.retries += 1
            case event:
                ending = _ending(event)
                if ending is not None:
                    self._end(entry, called, ending)

    def take_breaker(self, server: str, entry: Entry) -> None:
        """Add an event of a server's breaker."""
        if entry.at < self._since or (server not in self._outages and len(self._outages) >= SERVERS_MAX):
            return
        outages = self._outages.setdefault(server, deque(maxlen=OUTAGES_MAX))
        now = outages[-1] if outages else None
        if now is not None and now.closed is None:
            now.take(entry)
        elif isinstance(entry.event, BreakerOpened):
            event = entry.event
            reason = _short(event.message)
            outages.append(Outage(opened=entry.at, reason=reason, failures=event.failures, until=event.until))

    def figures(self) -> Sequence[ToolFigures]:
        """The statistics of the calls, by tool."""
        lines = sorted(self._lines.items())
        return [line.figures(tool, is_undo=is_undo) for (tool, is_undo), line in lines]

    def by_server(self) -> Sequence[ToolFigures]:
        """The statistics of the calls, by the first part of a tool's name: its server, or what is built in."""
        return [line.figures(server, is_undo=False) for server, line in sorted(self._servers.items())]

    def history(self) -> Sequence[ServerHistory]:
        """The servers with outages, by name."""
        known = sorted(self._outages.items())
        return [ServerHistory(server=name, outages=tuple(outages)) for name, outages in known if outages]

    def _start_call(self, place: tuple[str, str, bool], at: int) -> None:
        self._started.put(place, at)

    def _end(self, entry: Entry, called: Called, ending: _Ending) -> None:
        started = self._started.pop((entry.stream, ending.step, ending.is_undo))
        tool = called.undo if ending.is_undo else called.tool
        if tool is None or entry.at < self._since or (ending.failure == CANCELLED and started is None):
            return  # it was cancelled before it started, so there was no call
        line = self._line(tool, is_undo=ending.is_undo and called.is_own_undo)
        if line is None:
            self.unlisted += 1
            return
        lasted = None if started is None else entry.at - started
        line.add(ending, at=entry.at, lasted=lasted)
        self._servers[tool.partition(".")[0]].add(ending, at=entry.at, lasted=lasted)

    def _line(self, tool: str, *, is_undo: bool) -> _Line | None:
        line = self._lines.get((tool, is_undo))
        if line is None and len(self._lines) < TOOLS_MAX:
            line = self._lines[tool, is_undo] = _Line(self._slot_ms)
            self._servers.setdefault(tool.partition(".")[0], _Line(self._slot_ms))
        return line


def _ending(event: Event) -> _Ending | None:
    """How a call ended, if this is an event that says so."""
    match event:
        case StepCompleted(step=step):
            return _Ending(step=step, took=event.took)
        case AttemptFailed(step=step, category=category):
            return _Ending(step=step, took=event.took, failure=category.value)
        case StepCompensated(step=step, how=How.EXECUTED):
            return _Ending(step=step, is_undo=True, took=event.took)
        case UndoFailed(step=step, category=category, final=final):
            return _Ending(step=step, is_undo=True, took=event.took, failure=category.value, again=not final)
        case UndoLost(step=step):
            return _Ending(step=step, is_undo=True, failure=LOST, again=True)
        case UndoBecameUncertain(step=step):
            return _Ending(step=step, is_undo=True, failure=LOST)
        case StepDeferred(step=step) | ApprovalRequested(step=step, about=About.QUESTION):
            return _Ending(step=step)  # it is called again: that call has the duration
        case AttemptLost(step=step):
            return _Ending(step=step, failure=LOST, again=True)
        case StepBecameUncertain(step=step):
            return _Ending(step=step, failure=LOST)
        case StepCancelled(step=step):
            return _Ending(step=step, failure=CANCELLED)
        case _:
            return None


def _rounded(milliseconds: int) -> int:
    """The bucket of a duration: itself below a second, else its first three digits."""
    if milliseconds < EXACT_MS:
        return milliseconds
    unit: int = 10 ** (len(str(milliseconds)) - 3)
    return round(milliseconds / unit) * unit


def _coarse(milliseconds: int) -> int:
    """Two digits: enough for a line of a few pixels, and a few hundred buckets at most."""
    unit: int = 10 ** max(0, len(str(milliseconds)) - 2)
    return round(milliseconds / unit) * unit


def _short(message: str) -> str:
    return message if len(message) <= MESSAGE_SHOWN else f"{message[: MESSAGE_SHOWN - 1]}…"
