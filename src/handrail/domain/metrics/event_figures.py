"""How the events of the journal add up to figures: one fold, the same whichever process wrote them.

Pure. Which tool and kind a step has is looked up by the caller (engine/reading/journal_figures.py)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from handrail.domain.journal.event import (
    ApprovalExpired,
    ApprovalGiven,
    ApprovalOverridden,
    ApprovalRejected,
    ApprovalRequested,
    ApprovalWithdrawn,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    Entry,
    How,
    OutputRefused,
    RetryScheduled,
    RunCancelled,
    RunCompensated,
    RunCompensationFailed,
    RunCompleted,
    RunFailed,
    RunStarted,
    StepAccepted,
    StepBecameUncertain,
    StepCancelled,
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepHandedOut,
    StepOpened,
    StepSkipped,
    UndoFailed,
    UndoLost,
)
from handrail.domain.journal.store_event import BreakerClosed, BreakerOpened, BreakerProbed
from handrail.domain.metrics import catalog
from handrail.domain.metrics.figures import Figures
from handrail.domain.run.status import RunStatus
from handrail.domain.scheduling.breaker import BreakerStatus
from handrail.foundation.bounded_cache import BoundedCache

OPEN_MAX: Final = 20_000
"""How many open runs and steps are remembered, to know how long they took."""
OK: Final = "ok"
LOST: Final = "lost"

RUN_ENDS: Final[Mapping[type, RunStatus]] = {
    RunCompleted: RunStatus.COMPLETED,
    RunFailed: RunStatus.FAILED,
    RunCancelled: RunStatus.CANCELLED,
    RunCompensated: RunStatus.COMPENSATED,
    RunCompensationFailed: RunStatus.COMPENSATION_FAILED,
}
STEP_ENDS: Final[Mapping[type, str]] = {
    StepCompleted: "completed",
    StepAccepted: "accepted",
    StepFailed: "failed",
    StepSkipped: "skipped",
    StepCancelled: "cancelled",
    StepBecameUncertain: "uncertain",
    StepCompensated: "compensated",
}
STEP_STARTS: Final = frozenset({AttemptStarted, StepHandedOut, StepOpened, ApprovalRequested})
ANSWERS: Final[Mapping[type, str]] = {
    ApprovalGiven: "given",
    ApprovalRejected: "rejected",
    ApprovalExpired: "expired",
    ApprovalWithdrawn: "withdrawn",
    ApprovalOverridden: "overridden",
}
BREAKERS: Final[Mapping[type, BreakerStatus]] = {
    BreakerOpened: BreakerStatus.OPEN,
    BreakerProbed: BreakerStatus.HALF_OPEN,
    BreakerClosed: BreakerStatus.CLOSED,
}


class StepFacts(Struct, frozen=True):
    """What a definition says of a step: its kind, which tool does it, and which undoes it."""

    kind: str = ""
    tool: str = ""
    undo: str = ""


NO_FACTS: Final = StepFacts()


class EventFigures:
    """Adds events up, in the order of each stream."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures
        for status in RUN_ENDS.values():
            # From the start: the first failures are no increase of a figure that was never seen before them.
            figures.count(catalog.RUNS_ENDED, status.value, by=0)
        self._runs: BoundedCache[str, int] = BoundedCache(OPEN_MAX)
        """By run: when it started."""
        self._steps: BoundedCache[tuple[str, str], int] = BoundedCache(OPEN_MAX)

    def take(self, kind: str, entry: Entry, step: StepFacts = NO_FACTS) -> None:
        """Add one event."""
        event = entry.event
        self.figures.count(catalog.EVENTS, kind)
        made = type(event)
        if isinstance(event, RunStarted):
            self.figures.count(catalog.RUNS_STARTED)
            self._runs.put(entry.stream, entry.at)
        elif made in RUN_ENDS:
            self._end_run(entry, RUN_ENDS[made].value)
        elif made in BREAKERS:
            self.figures.count(catalog.BREAKER_CHANGES, BREAKERS[made].value)
        if made in ANSWERS:
            self.figures.count(catalog.APPROVALS_ANSWERED, ANSWERS[made])
        if made in STEP_STARTS or made in STEP_ENDS:
            self._take_step(entry, step)
        self._take_call(entry, step)
        if isinstance(event, StepCompleted | OutputRefused):
            self._take_checks(event.evidence)

    def _end_run(self, entry: Entry, status: str) -> None:
        self.figures.count(catalog.RUNS_ENDED, status)
        started = self._runs.pop(entry.stream)
        if started is not None:
            self.figures.observe(catalog.RUN_SECONDS, (entry.at - started) / 1_000, status)

    def _take_step(self, entry: Entry, step: StepFacts) -> None:
        event = entry.event
        place = (entry.stream, getattr(event, "step", ""))
        if type(event) in STEP_STARTS:
            if place not in self._steps:  # the first attempt counts: a step takes as long as all of them
                self._steps.put(place, entry.at)
            return
        outcome = STEP_ENDS[type(event)]
        self.figures.count(catalog.STEPS_ENDED, step.kind, outcome)
        started = self._steps.pop(place)
        if started is not None and isinstance(event, StepCompleted):
            self.figures.observe(catalog.STEP_SECONDS, (entry.at - started) / 1_000, step.kind)

    def _take_call(self, entry: Entry, step: StepFacts) -> None:
        match entry.event:
            case StepCompleted(took=took) if step.tool:
                self._called(step.tool, OK, took)
            case AttemptFailed(category=category, took=took) if step.tool:
                self._called(step.tool, category.value, took)
            case AttemptLost() | StepBecameUncertain() if step.tool:
                self.figures.count(catalog.ATTEMPTS, step.tool, LOST)
            case RetryScheduled() if step.tool:
                self.figures.count(catalog.RETRIES, step.tool)
            case StepCompensated(how=How.EXECUTED) if step.undo:
                self.figures.count(catalog.UNDOS, step.undo, OK)
            case UndoFailed(category=category) if step.undo:
                self.figures.count(catalog.UNDOS, step.undo, category.value)
            case UndoLost() if step.undo:
                self.figures.count(catalog.UNDOS, step.undo, LOST)
            case _:
                pass

    def _called(self, tool: str, outcome: str, took_ms: int) -> None:
        self.figures.count(catalog.ATTEMPTS, tool, outcome)
        self.figures.observe(catalog.ATTEMPT_SECONDS, took_ms / 1_000, tool)

    def _take_checks(self, evidence: Iterable[Mapping[str, Any]]) -> None:
        for one in evidence:
            rule, is_cached = str(one.get("rule", "")), bool(one.get("cached"))
            self.figures.count(catalog.CHECKS, rule, "passed" if one.get("passed") else "failed")
            self.figures.count(catalog.CHECK_CACHE, "hit" if is_cached else "miss")
            if not is_cached:
                self.figures.observe(catalog.CHECK_SECONDS, float(one.get("took", 0)) / 1_000, rule)
