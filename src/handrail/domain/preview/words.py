"""A preview in words: what the control means, and what to know before it is used. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from handrail.domain.definition.model import Definition
from handrail.domain.journal.event import Mode
from handrail.domain.plural import plural
from handrail.domain.preview.values import ControlPreview, Lasting
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.step_path import is_in_undo, locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.retry import DEFAULT

NAMED_MAX: Final = 10


def means_of(seen: ControlPreview, definition: Definition) -> str:
    """What the control does, in one phrase."""
    if any(one.is_undo for one in seen.calls):
        undos = sum(one.is_undo and not is_in_undo(one.step) for one in seen.calls)
        return f"{THEN_UNDO.get(seen.action, 'undo')} {plural(undos, 'step')}"
    if seen.action is Action.APPROVE:
        return _approved(seen)
    kind = locate(definition, seen.step).step.kind.value if seen.step else ""
    return PHRASES[seen.action].format(
        going=plural(len(seen.in_progress), "call"),
        calls=plural(len(seen.calls), "step"),
        stays=plural(len(seen.stays), "effect"),
        kind=kind,
    )


THEN_UNDO: Final = {Action.REJECT: "reject it, then undo", Action.SKIP: "give this undo up, then undo"}
PHRASES: Final = {
    Action.PAUSE: "start nothing new; wait for {going} in progress",
    Action.RESUME: "go on with {calls}",
    Action.CANCEL: "end the run, and keep {stays}",
    Action.RETRY: "try it again: {kind} step",
    Action.SKIP: "continue without it",
    Action.ACCEPT: "count it as completed: it did happen",
    Action.COMPENSATE: "undo nothing: no step has an effect that can be undone",
    Action.REJECT: "say no: the step fails",
}


def _approved(seen: ControlPreview) -> str:
    if seen.missing:
        return f"one yes; {plural(seen.missing, 'more person', 'more people')} must approve"
    return f"say yes: {plural(len(seen.calls), 'step')} may start by it"


def notes_of(seen: ControlPreview, run: Run, end: Run) -> Iterator[str]:
    """What to know before; `end` is the run as it would be then."""
    if seen.action is Action.RETRY and not any(one.is_undo for one in seen.calls):
        yield from _retried(run.step(seen.step))
    if seen.becomes is RunStatus.PAUSED and seen.action is not Action.PAUSE:
        yield "the run is paused: nothing starts until it is resumed"
    yield from _left(seen)
    if end.status is RunStatus.COMPENSATING and run.mode is not Mode.RECORD:
        yield "somebody has to decide before all of it is undone"


def _left(seen: ControlPreview) -> Iterator[str]:
    if seen.action is Action.CANCEL and any(one.can_be_undone for one in seen.stays):
        yield "what was done can still be undone afterwards"
    if any(one.why is Lasting.NO_UNDO for one in seen.stays):
        yield "what has no undo stays behind"
    if uncertain := [one.step for one in seen.changes if one.becomes is StepStatus.UNCERTAIN]:
        yield f"cut short, so that the outcome is unknown: {', '.join(uncertain[:NAMED_MAX])}"


def _retried(state: StepState) -> Iterator[str]:
    if state.category is not None and state.category not in DEFAULT.on:
        category = state.category.value
        yield f"a failure of the category {category} is not retried by itself: it fails again unless the cause is gone"
