"""Which spans end with new events of a run: of the run, its steps, their attempts, and what undoes them.

Pure. The process that appends the events sends these spans, so that each is sent once, whichever process started what
has ended now. `key` names a span within its run: trace_context.py makes its id of it.

    run  ->  step  ->  step in a loop or workflow  ->  attempt  ->  (the call of a tool, while it is made)
         ->  compensation  ->  undo"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.definition.model import Category, Definition
from handrail.domain.journal.event import (
    ApprovalRequested,
    AttemptFailed,
    AttemptLost,
    Entry,
    Event,
    RetryScheduled,
    RunEvent,
    RunStarted,
    StepCompensated,
    StepCompleted,
    StepDeferred,
    StepEvent,
    StepFailed,
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    step_of,
)
from handrail.domain.run.state import Run, apply_to_run
from handrail.domain.run.status import RUN_STOPPED, STEP_STOPPED, STEP_STUCK, STEP_UNENDED, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO, locate
from handrail.domain.run.step_state import StepState, apply_to_step
from handrail.domain.tracing import names

RUN_KEY: Final = "run"
OK: Final = "ok"
UNDO_ENDS: Final = (StepCompensated, UndoFailed, UndoLost, UndoBecameUncertain)


class EndedSpan(Struct, frozen=True, kw_only=True):
    """A span that is over."""

    name: str
    key: str
    parent: str
    """The key of the span around it; empty for the run's own, which is in the trace of its caller."""
    start: float
    """In milliseconds since 1970, as all instants."""
    end: float
    attributes: Mapping[str, str | int]
    error: str = ""
    """In one word, what went wrong."""


def attempt_key(path: str, number: int, *, is_undo: bool = False) -> str:
    """The key of the span of an attempt, or of one of an undo."""
    return f"{'undo' if is_undo else 'attempt'}:{path}:{number}"


def ended_spans(before: Run, entries: Sequence[Entry], definition: Definition) -> list[EndedSpan]:
    """The spans that end with these events, which follow `before`."""
    # Clocks are set back, and other machines have their own: a span does not end before it starts all the same.
    return [
        span if span.start <= span.end else replace(span, start=span.end)
        for span in _SpanFold(before, definition).spans(entries)
    ]


class _SpanFold:
    """Follows the events one by one, since a span can begin and end within one append."""

    def __init__(self, before: Run, definition: Definition) -> None:
        self._run, self._definition = before, definition
        self._steps: dict[str, StepState] = {}

    def spans(self, entries: Sequence[Entry]) -> Iterator[EndedSpan]:
        for entry in entries:
            path = step_of(entry.event)
            if path is not None:
                was = self._step(path)
                now = self._steps[path] = apply_to_step(was, cast("StepEvent", entry.event), entry)
                yield from self._of_step(path, was, now, entry)
            elif isinstance(entry.event, RunEvent):
                before, self._run = self._run, apply_to_run(self._run, entry.event, entry)
                yield from self._of_run(before, entry)

    def _step(self, path: str) -> StepState:
        known = self._steps.get(path)
        return self._run.step(path) if known is None else known

    # --- the run as a whole -----------------------------------------------------------------------------

    def _of_run(self, before: Run, entry: Entry) -> Iterator[EndedSpan]:
        run = self._run
        if run.status not in RUN_STOPPED or isinstance(entry.event, RunStarted) or run.status is before.status:
            return
        error = run.status.value if run.status is not RunStatus.COMPLETED else ""
        # From `compensation_failed` somebody can end it by hand: then nothing was undone, and there is no further span.
        if before.status is RunStatus.COMPENSATING and run.turned_at is not None:
            yield EndedSpan(
                name=names.COMPENSATION,
                key=f"compensation:{run.turned}",
                parent=RUN_KEY,
                start=run.turned_at,
                end=entry.at,
                attributes={names.RUN: entry.stream, names.RUN_STATUS: run.status.value},
                error=error if run.status is RunStatus.COMPENSATION_FAILED else "",
            )
        if before.first_ended is None:  # one that ended and was undone later has its span already
            yield EndedSpan(
                name=names.run_span(self._definition.id),
                key=RUN_KEY,
                parent="",
                start=run.started,
                end=entry.at,
                attributes=_known(
                    {
                        names.OPERATION: names.INVOKE_WORKFLOW,
                        names.WORKFLOW: self._definition.id,
                        names.VERSION: self._definition.version or "",
                        names.RUN: entry.stream,
                        names.RUN_STATUS: run.status.value,
                        names.PROJECT: run.project,
                    }
                ),
                error=error,
            )

    # --- steps -----------------------------------------------------------------------------------------

    def _of_step(self, path: str, was: StepState, now: StepState, entry: Entry) -> Iterator[EndedSpan]:
        if was.status is StepStatus.RUNNING and was.tried is not None and now.status is not StepStatus.RUNNING:
            yield self._attempt(path, was, now, entry)
        if isinstance(entry.event, UNDO_ENDS) and _is_being_undone(was):
            yield self._undo(path, was, entry)
        if was.status in STEP_UNENDED and now.status in STEP_STOPPED and now.opened is not None:
            yield EndedSpan(
                name=names.step_span(path),
                key=_step_key(path, now),
                parent=self._around(path),
                start=now.opened,
                end=entry.at,
                attributes=_known(
                    {
                        names.RUN: entry.stream,
                        names.STEP: path,
                        names.STEP_KIND: self._kind(path),
                        names.STEP_STATUS: now.status.value,
                    }
                ),
                error=_error_of(now) if now.status in STEP_STUCK else "",
            )

    def _attempt(self, path: str, was: StepState, now: StepState, entry: Entry) -> EndedSpan:
        outcome = _outcome(entry.event, now)
        return EndedSpan(
            name=names.step_span(path, is_attempt=True),
            key=attempt_key(path, was.attempts),
            parent=_step_key(path, was),
            start=_start(was.tried, entry),
            end=entry.at,
            attributes=self._tried(path, was.attempts, outcome, entry),
            error="" if outcome in NO_ERRORS else outcome,
        )

    def _undo(self, path: str, was: StepState, entry: Entry) -> EndedSpan:
        outcome = _undo_outcome(entry.event)
        return EndedSpan(
            name=names.step_span(path, is_undo=True),
            key=attempt_key(path, was.undo_attempts, is_undo=True),
            parent=f"compensation:{self._run.turned}" if self._run.turned else RUN_KEY,
            start=_start(was.tried, entry),
            end=entry.at,
            attributes=self._tried(path, was.undo_attempts, outcome, entry),
            error="" if outcome == OK else outcome,
        )

    def _tried(self, path: str, number: int, outcome: str, entry: Entry) -> Mapping[str, str | int]:
        return {names.RUN: entry.stream, names.STEP: path, names.ATTEMPT: number, names.OUTCOME: outcome}

    def _around(self, path: str) -> str:
        """The key of the span around a step: that of the loop or workflow that it is in, or of the undo."""
        head = path.rpartition(".")[0]
        if not head:
            return RUN_KEY
        if head.endswith(UNDO):
            undone = head.removesuffix(UNDO)
            return attempt_key(undone, self._step(undone).undo_attempts, is_undo=True)
        holder = head[: head.rindex("[")] if head.endswith("]") else head
        return _step_key(holder, self._step(holder))

    def _kind(self, path: str) -> str:
        return locate(self._definition, path).step.kind.value


NO_ERRORS: Final = frozenset({OK, "asked", "deferred", "cancelled"})


def _outcome(event: Event, now: StepState) -> str:
    """How an attempt ended, in one word, by the event that ended it and the state of the step after that."""
    match event:
        case StepCompleted():
            return OK
        case AttemptLost():
            return "lost"
        case ApprovalRequested():
            return "asked"
        case StepDeferred():
            return "deferred"
        case RetryScheduled() | StepFailed():
            return _error_of(now)
        case _:
            return now.status.value


def _undo_outcome(event: Event) -> str:
    match event:
        case StepCompensated():
            return OK
        case UndoFailed(category=category):
            return (category or Category.INTERNAL).value
        case UndoLost():
            return "lost"
        case _:
            return StepStatus.UNCERTAIN.value


def _error_of(state: StepState) -> str:
    return state.category.value if state.category is not None else state.status.value


def _is_being_undone(state: StepState) -> bool:
    """Whether an attempt to undo it is under way, rather than due later."""
    return state.status is StepStatus.COMPENSATING and state.due is None and state.tried is not None


def _start(tried: int | None, entry: Entry) -> float:
    """When an attempt started. A short one is journaled together with its end, which says how long it took."""
    took = entry.event.took if isinstance(entry.event, AttemptFailed | StepCompleted | StepCompensated) else 0
    return min(entry.at if tried is None else tried, entry.at - took)


def _step_key(path: str, state: StepState) -> str:
    # A step that somebody had retried starts again: that is another span.
    return f"step:{path}:{state.opened}"


def _known(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value != ""}
