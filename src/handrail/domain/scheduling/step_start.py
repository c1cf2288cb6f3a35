"""Step starts: what has to be done to start a ready step, or its undo.

Pure. A step whose condition is false is skipped; a tool is called with its arguments filled in; a person is asked;
loops and inlined workflows open. An expression that can't be evaluated fails the step, never the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from handrail.domain.checks.finding import Path
from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import (
    Approve,
    AtMax,
    Call,
    Category,
    Definition,
    Each,
    Effect,
    Prompt,
    Repeat,
    Tool,
)
from handrail.domain.errors import Invalid
from handrail.domain.run.approval import question_of
from handrail.domain.run.command import (
    Command,
    FailAttempt,
    FailStep,
    FailUndo,
    OpenStep,
    RequestApproval,
    SkipStep,
    StartAttempt,
    StartUndo,
)
from handrail.domain.run.scope import condition_is_true, evaluate, rendered
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import Lane, Located, locate
from handrail.domain.secrets.secret_reference import reference_places

InputCheck: TypeAlias = Callable[[Definition, Mapping[str, Any]], tuple[Mapping[str, Any], Sequence[str]]]
"""Returns the inputs that a workflow would start with, defaults filled in, and what is wrong with them."""


class CallTool(Struct, frozen=True):
    """Call a tool with these arguments; with `own_undo`, let the tool undo its earlier call.

    `references` are the places in the arguments where references to secrets are resolved. Elsewhere, for instance in
    the result of an earlier step, a reference stays plain text: otherwise its author could read any secret."""

    path: str
    work: Tool
    args: Mapping[str, Any]
    own_undo: bool = False
    references: tuple[Path, ...] = ()


class LeaveToAgent(Struct, frozen=True):
    """An agent does this step: there is nothing to do until it asks for it."""

    path: str


class Grant(Struct, frozen=True):
    """Only these commands have to be journaled."""

    commands: tuple[Command, ...]


StepStart: TypeAlias = CallTool | LeaveToAgent | Grant


def start_of(run: Run, definition: Definition, path: str, *, now: int, check: InputCheck) -> StepStart:
    """What has to be done to start this ready step."""
    found = locate(definition, path)
    step, lane = found.step, found.lane
    try:
        # On a retry the condition was already true once, and is not asked again.
        if step.when is not None and not run.step(path).started and not condition_is_true(step.when, run, lane):
            return Grant((SkipStep(step=path, reason=f"`when: {step.when}` is false", is_condition=True),))
        match step.work:
            case Tool() as work:
                return _to_call(run, lane, path, work)
            case Prompt():
                return LeaveToAgent(path)
            case Approve() as work:
                question_of(run, definition, path, asked=run.step(path).asked + 1)  # Invalid if it can't be rendered
                expires = now + duration_ms(work.expires) if work.expires else None
                return Grant((RequestApproval(step=path, expires=expires),))
            case Each() as work:
                items = _items(evaluate(work.items, run, lane), work)
                return Grant((OpenStep(step=path, rounds=len(items), values=items),))
            case Repeat():
                return Grant((OpenStep(step=path),))
            case Call() as work:
                inputs = _inputs(definition, work, rendered(work.with_, run, lane), check)
                return Grant((OpenStep(step=path, values=inputs),))
    except Invalid as error:
        return Grant(_failed(path, found, str(error)))


def undo_start_of(run: Run, definition: Definition, path: str, *, check: InputCheck) -> StepStart:
    """What has to be done to start the undo of this step."""
    found = locate(definition, path)
    step, lane = found.step, found.lane
    try:
        match step.undo:
            case Tool() as work:
                return _to_call(run, lane, path, work)
            case Call() as work:
                inputs = _inputs(definition, work, rendered(work.with_, run, lane), check)
                return Grant((StartUndo(step=path, values=inputs),))
            case Prompt():
                return Grant((StartUndo(step=path),))
            case None if isinstance(step.work, Tool):
                return _to_call(run, lane, path, step.work, own_undo=True)
            case None:
                return _no_undo(path, "the workflow does not say how to undo this step")
    except Invalid as error:
        return _no_undo(path, str(error))


def _to_call(run: Run, lane: Lane, path: str, work: Tool, *, own_undo: bool = False) -> CallTool:
    args = rendered(work.args, run, lane)
    return CallTool(path, work, args, own_undo, reference_places(work.args, args, is_top=not lane.caller))


def _no_undo(path: str, message: str) -> Grant:
    failed = FailUndo(step=path, category=Category.INVALID_INPUT, message=message)
    return Grant((StartUndo(step=path), failed))


def _items(value: Any, work: Each) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise Invalid(f"`each: {work.items}` is not a list")
    if len(value) > work.max and work.at_max is AtMax.LEAVE:
        return list(value[: work.max])
    if len(value) > work.max:
        raise Invalid(f"`each: {work.items}` has {len(value)} items, more than its bound of {work.max}")
    return list(value)


def _inputs(definition: Definition, work: Call, given: Any, check: InputCheck) -> Mapping[str, Any]:
    # By the pinned definition: the workflow in the library may ask for other inputs by now.
    inputs, wrong = check(definition.pinned[work.workflow], given)
    if wrong:
        raise Invalid(f"{work.workflow} can't start: {'; '.join(wrong)}")
    return inputs


def _failed(path: str, found: Located, message: str) -> tuple[Command, ...]:
    # Opened first, without rounds: a step can only fail that has started, in the table of moves as for readers.
    if isinstance(found.step.work, Call | Each | Repeat):
        failed = FailStep(step=path, category=Category.INVALID_INPUT, message=message)
        return (OpenStep(step=path, rounds=0), failed)
    attempt = StartAttempt(step=path, effect=Effect.NONE)
    return (attempt, FailAttempt(step=path, category=Category.INVALID_INPUT, message=message))
