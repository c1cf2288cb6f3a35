"""Where the time of a run went: its work, its waits and its undo, each as a span of time.

Pure: a fold over events, which can be continued with later ones. Engine/reading/ shows it."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.rule import LooksAt, looked_at
from handrail.domain.definition.model import Category
from handrail.domain.journal.event import (
    ApprovalEvent,
    ApprovalGiven,
    ApprovalRequested,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    CompensationStarted,
    Entry,
    OutputRefused,
    RetryScheduled,
    RoundStarted,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    StepAccepted,
    StepBecameUncertain,
    StepCancelled,
    StepCompensated,
    StepCompleted,
    StepDeferred,
    StepFailed,
    StepHandedOut,
    StepRetried,
    StepSkipped,
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    UndoStarted,
    step_of,
)
from handrail.domain.policy.actor import ActorKind, kind_of


class SpanKind(StrEnum):
    """What a span of time was spent on."""

    WORK = "work"
    FAILED = "failed"
    """A try that failed."""
    LOST = "lost"
    """A try whose outcome is not known."""
    RETRY_WAIT = "retry_wait"
    TIME_WAIT = "time_wait"
    """Its tool, or its loop, waited for a time."""
    AGENT_WAIT = "agent_wait"
    PERSON_WAIT = "person_wait"
    DECISION_WAIT = "decision_wait"
    """It had failed, or its outcome was unknown, and somebody had to decide."""
    UNDO = "undo"
    UNDO_FAILED = "undo_failed"
    UNDO_WAIT = "undo_wait"
    PAUSED = "paused"
    """The run was paused; of no step."""


WORKING: Final = frozenset({SpanKind.WORK, SpanKind.FAILED, SpanKind.LOST})
UNDOING: Final = frozenset({SpanKind.UNDO, SpanKind.UNDO_FAILED, SpanKind.UNDO_WAIT})
WAITING: Final = frozenset(SpanKind) - WORKING - UNDOING - {SpanKind.PAUSED}


class TryOutcome(StrEnum):
    """How a try ended."""

    COMPLETED = "completed"
    FAILED = "failed"
    LOST = "lost"
    REFUSED = "refused"
    """A check refused the output."""
    DEFERRED = "deferred"
    """The tool asked to be called again later."""
    STOPPED = "stopped"
    """It was stopped together with its run, or somebody went on without it."""


class Span(Struct, frozen=True, kw_only=True):
    """A span of time; without an end it lasts."""

    step: str
    kind: SpanKind
    start: int
    n: int
    """The event that it started with."""
    end: int | None = None
    attempt: int = 0

    def lasted(self, now: int) -> int:
        """How long, in milliseconds."""
        return max(0, (now if self.end is None else self.end) - self.start)


class TryTaken(Struct, frozen=True, kw_only=True):
    """One try of a step, or of its undo: by a tool, or by an agent who submitted an output."""

    step: str
    attempt: int
    start: int
    n: int
    """The event that it started with."""
    by: str
    end: int | None = None
    outcome: TryOutcome | None = None
    category: Category | None = None
    message: str = ""
    due: int | None = None
    """When the next try was to start."""
    is_undo: bool = False
    findings: int = 0
    ended_n: int = 0
    """The event that it ended with."""


class StepTimes(Struct, frozen=True):
    """The time of one step, in milliseconds."""

    worked: int = 0
    waited: int = 0
    undone: int = 0


class SpanFold:
    """The spans and tries of one run so far."""

    def __init__(self) -> None:
        self.n = 0
        self.spans: list[Span] = []
        self.tries: list[TryTaken] = []
        self.looks: dict[str, dict[str, LooksAt]] = {}
        """By step: what each of the checks looked at that its latest output went through."""
        self._open: dict[str, int] = {}
        """By step: its span that lasts."""
        self._trying: dict[str, int] = {}
        """By step: its try that has not ended."""
        self._last: dict[str, int] = {}
        """By step: its last try."""
        self._handed: Counter[str] = Counter()
        """By step: how many tries of agents there were."""

    def take(self, entry: Entry) -> None:
        """Take in the next event; one that was taken in before is passed over."""
        if entry.n <= self.n:
            return
        self.n = entry.n
        step = step_of(entry.event)
        if isinstance(entry.event, StepCompleted | OutputRefused) and entry.event.evidence:
            evidence = entry.event.evidence
            self.looks[entry.event.step] = {str(one.get("rule", "")): looked_at(one) for one in evidence}
        if step is None:
            self._of_run(entry)
        elif isinstance(entry.event, UndoStarted | UndoFailed | UndoLost | UndoBecameUncertain | StepCompensated):
            self._of_undo(step, entry)
        elif isinstance(entry.event, ApprovalEvent | StepHandedOut | OutputRefused):
            self._of_wait(step, entry)
        else:
            self._of_step(step, entry)

    # --- events ---------------------------------------------------------------------------------------

    def _of_run(self, entry: Entry) -> None:
        match entry.event:
            case RunPaused():
                self._begin("", SpanKind.PAUSED, entry)
            case RunResumed():
                self._end("", entry.at)
            case RunFailed() | RunCompleted() | RunCancelled() | CompensationStarted():
                self._stopped(entry)
            case _:
                pass

    def _of_wait(self, step: str, entry: Entry) -> None:
        match entry.event:
            case StepHandedOut():
                is_same = step in self._open and self.spans[self._open[step]].kind is SpanKind.AGENT_WAIT
                if not is_same:
                    self._begin(step, SpanKind.AGENT_WAIT, entry)
                    self._try(step, entry)
            case OutputRefused(findings=findings, output=None):
                self._tried(step, entry, TryOutcome.REFUSED, findings=len(findings))
                self._begin(step, SpanKind.AGENT_WAIT, entry)
                self._try(step, entry)
            case OutputRefused(findings=findings):
                self._noted(step, findings=len(findings))
            case ApprovalRequested():
                if step in self._trying:  # a question of a tool, or about it
                    self._tried(step, entry, TryOutcome.DEFERRED)
                self._begin(step, SpanKind.PERSON_WAIT, entry)
            case ApprovalGiven(missing=missing) if missing:
                pass
            case _:
                self._end(step, entry.at)

    def _of_step(self, step: str, entry: Entry) -> None:
        match entry.event:
            case AttemptStarted(attempt=attempt):
                self._begin(step, SpanKind.WORK, entry, attempt=attempt)
                self._try(step, entry, attempt=attempt)
            case AttemptFailed(category=category, message=message, took=took):
                self._tried(step, entry, TryOutcome.FAILED, category=category, message=message)
                self._end(step, entry.at, SpanKind.FAILED, took=took)
            case RetryScheduled(due=due):
                self._scheduled(step, due)
                self._begin(step, SpanKind.RETRY_WAIT, entry)
            case StepDeferred(due=due):
                self._tried(step, entry, TryOutcome.DEFERRED)
                self._scheduled(step, due)
                self._begin(step, SpanKind.TIME_WAIT, entry)
            case RoundStarted(due=due) if due is not None and due > entry.at:
                self._begin(step, SpanKind.TIME_WAIT, entry)
                self._end(step, due)
            case AttemptLost():
                self._tried(step, entry, TryOutcome.LOST)
                self._end(step, entry.at, SpanKind.LOST)
            case _:
                self._of_end(step, entry)

    def _of_end(self, step: str, entry: Entry) -> None:
        match entry.event:
            case StepCompleted(took=took):
                self._tried(step, entry, TryOutcome.COMPLETED, took=took)
                self._end(step, entry.at, took=took)
            case StepFailed(category=category, message=message):
                self._tried(step, entry, TryOutcome.FAILED, category=category, message=message)
                self._end(step, entry.at)
                self._begin(step, SpanKind.DECISION_WAIT, entry)
            case StepBecameUncertain():
                self._tried(step, entry, TryOutcome.LOST)
                self._end(step, entry.at, SpanKind.LOST)
                self._begin(step, SpanKind.DECISION_WAIT, entry)
            case StepRetried() | StepAccepted() | StepSkipped() | StepCancelled():
                self._tried(step, entry, TryOutcome.STOPPED)
                self._end(step, entry.at)
            case _:
                pass

    def _of_undo(self, step: str, entry: Entry) -> None:
        match entry.event:
            case UndoStarted(attempt=attempt):
                self._begin(step, SpanKind.UNDO, entry, attempt=attempt)
                self._try(step, entry, attempt=attempt, is_undo=True)
            case UndoFailed(category=category, message=message, due=due, took=took):
                self._tried(step, entry, TryOutcome.FAILED, category=category, message=message, took=took)
                self._end(step, entry.at, SpanKind.UNDO_FAILED, took=took)
                if due is not None:
                    self._scheduled(step, due)
                self._begin(step, SpanKind.DECISION_WAIT if due is None else SpanKind.UNDO_WAIT, entry)
            case UndoLost() | UndoBecameUncertain():
                self._tried(step, entry, TryOutcome.LOST)
                self._end(step, entry.at, SpanKind.UNDO_FAILED)
                if isinstance(entry.event, UndoBecameUncertain):
                    self._begin(step, SpanKind.DECISION_WAIT, entry)
            case StepCompensated(took=took):
                self._tried(step, entry, TryOutcome.COMPLETED, took=took)
                self._end(step, entry.at, took=took)
            case _:
                pass

    def _stopped(self, entry: Entry) -> None:
        """The run ended or is undone: nothing waits any longer. If handrail went on by itself, no person was asked."""
        is_own = kind_of(entry.actor) in {ActorKind.SYSTEM, ActorKind.NODE}
        for step, place in list(self._open.items()):
            if is_own and self.spans[place].kind is SpanKind.DECISION_WAIT:
                self.spans[place] = replace(self.spans[place], end=self.spans[place].start)
                del self._open[step]
            else:
                self._end(step, entry.at)
        for step in list(self._trying):
            self._tried(step, entry, TryOutcome.STOPPED)

    # --- spans and tries --------------------------------------------------------------------------------

    def _begin(self, step: str, kind: SpanKind, entry: Entry, *, attempt: int = 0) -> None:
        self._end(step, entry.at)
        self._open[step] = len(self.spans)
        self.spans.append(Span(step=step, kind=kind, start=entry.at, n=entry.n, attempt=attempt))

    def _end(self, step: str, at: int, kind: SpanKind | None = None, *, took: int = 0) -> None:
        place = self._open.pop(step, None)
        if place is None:
            return
        span = self.spans[place]
        # The start of a short call without effect is written together with its end: what the call took counts.
        is_work = span.kind in WORKING or span.kind in UNDOING
        start = min(span.start, at - took) if is_work else span.start
        self.spans[place] = replace(span, end=max(at, start), start=start, kind=kind or span.kind)

    def _try(self, step: str, entry: Entry, *, attempt: int = 0, is_undo: bool = False) -> None:
        self._handed[step] += not attempt
        number = attempt or self._handed[step]
        self._trying[step] = self._last[step] = len(self.tries)
        self.tries.append(
            TryTaken(step=step, attempt=number, start=entry.at, n=entry.n, by=entry.actor, is_undo=is_undo)
        )

    def _tried(
        self,
        step: str,
        entry: Entry,
        outcome: TryOutcome,
        *,
        category: Category | None = None,
        message: str = "",
        took: int = 0,
        findings: int = 0,
    ) -> None:
        place = self._trying.pop(step, None)
        if place is None:
            return
        one = self.tries[place]
        took = took or (entry.event.took if isinstance(entry.event, AttemptFailed) else 0)
        self.tries[place] = replace(
            one,
            start=min(one.start, entry.at - took),
            end=entry.at,
            outcome=outcome,
            category=category,
            message=message,
            findings=findings or one.findings,
            ended_n=entry.n,
        )

    def _noted(self, step: str, *, findings: int) -> None:
        if (place := self._trying.get(step)) is not None:
            self.tries[place] = replace(self.tries[place], findings=findings)

    def _scheduled(self, step: str, due: int) -> None:
        if (place := self._last.get(step)) is not None:
            self.tries[place] = replace(self.tries[place], due=due)

    # --- reading ----------------------------------------------------------------------------------------

    def times(self, now: int) -> dict[str, StepTimes]:
        """The time of each step until now."""
        sums: dict[str, list[int]] = {}
        for span in self.spans:
            if span.step:
                place = 0 if span.kind in WORKING else 2 if span.kind in UNDOING else 1
                sums.setdefault(span.step, [0, 0, 0])[place] += span.lasted(now)
        return {step: StepTimes(*spent) for step, spent in sums.items()}
