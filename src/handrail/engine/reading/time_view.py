"""Where the time of a run went, as readers see it: tries, a timeline, and the path that decided how long it took.

Pure functions of what domain/history/ found; times are RFC 3339, durations milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from handrail.domain.definition.model import Category, Definition, Tool
from handrail.domain.history.critical_path import PathStep, critical_path
from handrail.domain.history.failure_parts import FailureParts, failure_parts
from handrail.domain.history.spans import (
    UNDOING,
    WAITING,
    WORKING,
    Span,
    SpanFold,
    SpanKind,
    StepTimes,
    TryOutcome,
    TryTaken,
)
from handrail.domain.history.step_title import title_at
from handrail.domain.instant import instant_text
from handrail.domain.plural import plural
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import locate
from handrail.engine.reading.step_view import Shown, StepView

FOR_PEOPLE: Final = frozenset({SpanKind.PERSON_WAIT, SpanKind.DECISION_WAIT})


class TryView(Shown, frozen=True):
    """One try of a step, or of its undo."""

    step: str
    attempt: int
    started: str
    n: int
    by: str = ""
    ended: str = ""
    took_ms: int | None = None
    outcome: TryOutcome | None = None
    category: Category | None = None
    message: str = ""
    due: str = ""
    """When the next try was to start."""
    wait_ms: int = 0
    """How long the wait before the next try was to be."""
    is_undo: bool = False
    findings: int = 0
    ended_n: int = 0
    parts: FailureParts | None = None
    """Status, host and words of a failure apart."""


class SpanView(Shown, frozen=True):
    """A stretch of time of a step; without an end it lasts."""

    step: str
    kind: SpanKind
    start: str
    n: int
    end: str = ""
    ms: int = 0
    attempt: int = 0


class CriticalStep(Shown, frozen=True):
    """A step that decided how long the run took."""

    step: str
    start: str
    end: str
    title: str = ""
    worked_ms: int = 0
    waited_ms: int = 0
    idle_ms: int = 0


class RunTimeline(Shown, frozen=True):
    """What happened when, and what it cost."""

    run: str
    start: str
    now: str
    """The time that open spans last until."""
    end: str = ""
    spans: tuple[SpanView, ...] = ()
    unshown: int = 0
    critical: tuple[CriticalStep, ...] = ()
    says: str = ""
    """What the critical path cost, in a sentence."""
    took_ms: int = 0
    worked_ms: int = 0
    """The work of all steps together, also of those that ran at once."""
    waited_ms: int = 0
    undone_ms: int = 0


def timed_steps(steps: Sequence[StepView], fold: SpanFold, *, now: int) -> tuple[StepView, ...]:
    """Steps with the time that went into them, and what their checks looked at."""
    times, none = fold.times(now), StepTimes()
    timed = ((step, times.get(step.id, none)) for step in steps)
    return tuple(
        replace(
            step,
            worked_ms=spent.worked,
            waited_ms=spent.waited,
            undone_ms=spent.undone,
            looks_at=fold.looks.get(step.id, {}),
        )
        for step, spent in timed
    )


def tries_view(tries: Sequence[TryTaken], definition: Definition) -> tuple[TryView, ...]:
    """Tries as readers see them."""
    return tuple(replace(_try(one), parts=_parts(one, definition)) for one in tries)


def _parts(one: TryTaken, definition: Definition) -> FailureParts | None:
    step = locate(definition, one.step).step
    work = step.undo if one.is_undo and step.undo is not None else step.work
    return failure_parts(one.message, work.tool) if one.message and isinstance(work, Tool) else None


def _try(one: TryTaken) -> TryView:
    wait = one.due - one.end if one.due is not None and one.end is not None else 0
    return TryView(
        step=one.step,
        attempt=one.attempt,
        started=instant_text(one.start),
        n=one.n,
        by=one.by,
        ended=instant_text(one.end) if one.end is not None else "",
        took_ms=one.end - one.start if one.end is not None else None,
        outcome=one.outcome,
        category=one.category,
        message=one.message,
        due=instant_text(one.due) if one.due is not None else "",
        wait_ms=max(0, wait),
        is_undo=one.is_undo,
        findings=one.findings,
        ended_n=one.ended_n,
    )


def timeline_of(run: Run, definition: Definition, fold: SpanFold, *, now: int, at_most: int) -> RunTimeline:
    """The timeline of a run until now."""
    end = run.ended if run.ended is not None else now
    path = critical_path(run, definition, fold.spans, now=end)
    sums = dict.fromkeys(SpanKind, 0)
    for span in fold.spans:
        sums[span.kind] += span.lasted(end)
    return RunTimeline(
        run=run.id,
        start=instant_text(run.started),
        now=instant_text(now),
        end=instant_text(run.ended) if run.ended is not None else "",
        spans=tuple(_span(span, end) for span in fold.spans[:at_most]),
        unshown=max(0, len(fold.spans) - at_most),
        critical=tuple(_on_path(one, run, definition) for one in path),
        says=_cost(path, run, definition),
        took_ms=max(0, end - run.started),
        worked_ms=_spent(fold, WORKING, end),
        undone_ms=_spent(fold, UNDOING, end),
        waited_ms=_spent(fold, WAITING, end),
    )


def person_waited(fold: SpanFold) -> int:
    """How long a run waited for people who then acted, in milliseconds; what waited at the same time counts once."""
    waits = sorted((one.start, one.end) for one in fold.spans if one.kind in FOR_PEOPLE and one.end is not None)
    total = until = 0
    for start, stop in waits:
        total += max(0, stop - max(start, until))
        until = max(until, stop)
    return total


def _spent(fold: SpanFold, kinds: frozenset[SpanKind], end: int) -> int:
    return sum(span.lasted(end) for span in fold.spans if span.kind in kinds)


def _span(span: Span, now: int) -> SpanView:
    return SpanView(
        step=span.step,
        kind=span.kind,
        start=instant_text(span.start),
        n=span.n,
        end=instant_text(span.end) if span.end is not None else "",
        ms=span.lasted(now),
        attempt=span.attempt,
    )


def _on_path(one: PathStep, run: Run, definition: Definition) -> CriticalStep:
    return CriticalStep(
        step=one.step,
        title=title_at(run, definition, one.step),
        start=instant_text(one.start),
        end=instant_text(one.end),
        worked_ms=one.worked,
        waited_ms=one.waited,
        idle_ms=one.idle,
    )


def _cost(path: Sequence[PathStep], run: Run, definition: Definition) -> str:
    if not path:
        return ""
    worked, waited, idle = (sum(getattr(one, name) for one in path) for name in ("worked", "waited", "idle"))
    longest = max(path, key=lambda one: one.worked + one.waited)
    name = title_at(run, definition, longest.step)
    share = duration_words(longest.worked + longest.waited)
    parts = [(worked, "work"), (waited, "waiting"), (idle, "idle")]
    costs = ", ".join(f"{duration_words(took)} {word}" for took, word in parts if took) or "no time"
    return f"The path of {plural(len(path), 'step')} cost {costs}; the longest is {name} ({longest.step}): {share}."


def duration_words(milliseconds: int) -> str:
    """A duration as people say it: `3 ms`, `3.4 s`, `2 min 10 s`, `1 h 5 min`."""
    if milliseconds < 1_000:
        return f"{milliseconds} ms"
    if milliseconds < 60_000:
        return f"{milliseconds / 1_000:.1f} s"
    minutes, seconds = divmod(milliseconds // 1_000, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"
