"""Compensation: which steps of a run are to be undone, and in which order.

Pure. The undo itself is run in engine/running/conductor.py. How a step is undone is in the definition, or in what its
tool captured before the step ran."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from handrail.domain.definition.effect import effect_of
from handrail.domain.definition.model import Category, Definition, Each, Effect, Repeat
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_UNDOABLE, RunStatus, StepStatus
from handrail.domain.run.step_path import Lane, Located, container_of, is_in_undo, lane_in, locate
from handrail.domain.run.step_state import StepState

EFFECT_UNKNOWN: Final = frozenset({Category.TRANSIENT, Category.TIMEOUT, Category.CANCELLED, Category.INTERNAL})
"""Failures after which it is unknown whether the attempt changed anything."""


def undo_order(run: Run, definition: Definition) -> list[str]:
    """The steps that still have to be undone, newest first."""
    # By end time, newest first: a later step may depend on what an earlier one created, so it must be undone first.
    return [path for path in _newest_first(run) if needs_undo(run, definition, path)]


def remaining(run: Run, definition: Definition) -> list[str]:
    """Every step whose effect remains when undoing is over: while it goes on only those that it will not undo."""
    is_going_on = run.status is RunStatus.COMPENSATING
    return not_compensated(run, definition) if is_going_on else not_undone(run, definition)


def not_undone(run: Run, definition: Definition) -> list[str]:
    """Every step whose effect remains or may remain: its undo failed or was not tried, or it has no undo."""
    return list(dict.fromkeys((*undo_order(run, definition), *not_compensated(run, definition))))


def not_compensated(run: Run, definition: Definition) -> list[str]:
    """The steps whose effect stays or may stay: they have no undo, someone gave up on it, or they failed in a way that
    leaves it unknown whether they changed anything."""
    left = [path for path, state in run.steps.items() if _may_have_left(state) and _is_done(run, definition, path)]
    return [*left, *(path for path in _newest_first(run) if _is_lasting(run, definition, path))]


def _may_have_left(state: StepState) -> bool:
    if state.status is StepStatus.FAILED:
        # A command that ended with an error has run all the same: how far it came is not known.
        is_half_done = state.category is Category.TOOL_ERROR and state.effect is Effect.IRREVERSIBLE
        return is_half_done or state.category in EFFECT_UNKNOWN
    return state.status is StepStatus.SKIPPED and state.undo_attempts > 0


def _is_done(run: Run, definition: Definition, path: str) -> bool:
    """Whether the step itself was attempted, and its effect lasts."""
    return (
        not is_in_undo(path)
        and run.step(path).attempts > 0
        and lasting_effect(locate(definition, path), run.step(path))
    )


def needs_undo(run: Run, definition: Definition, path: str) -> bool:
    """Whether the step has an effect that is still to be undone, and an undo exists."""
    state = run.step(path)
    is_done = state.status in STEP_UNDOABLE or is_refused(state)
    if not is_done or is_in_undo(path):
        return False
    found = locate(definition, path)
    return has_undo(found, state) and not _is_undone_as_a_whole(run, definition, path)


def is_refused(state: StepState) -> bool:
    """Whether the step's tool did its work, but the step failed its checks."""
    return state.status is StepStatus.FAILED and state.refused


def has_undo(found: Located, state: StepState) -> bool:
    """Whether the step has a lasting effect, and it or its tool has an undo for it."""
    return lasting_effect(found, state) and (found.step.undo is not None or state.capture is not None)


def lasting_effect(found: Located, state: StepState) -> bool:
    """Whether the step has a lasting effect: as its tool declared when it ran, else as the definition says."""
    effect = state.effect if state.effect is not None else effect_of(found.step)
    return effect not in {None, Effect.NONE}


def holding_back(run: Run, definition: Definition, path: str) -> str | None:
    """A step that must be undone before this one, because it ran after it; None if this one can be undone now."""
    # Diamonds in the graph: without this, the same steps would be visited once for every path to them.
    seen: set[str] = set()
    waiting = list(_built_on(run, definition, locate(definition, path)))
    while waiting:
        later = waiting.pop()
        name = later.lane.prefix + later.step.id
        if name in seen:
            continue
        seen.add(name)
        state = run.step(name)
        if needs_undo(run, definition, name):
            return name
        if state.status is StepStatus.COMPENSATED or (state.status is StepStatus.PENDING and not state.started):
            continue  # it is undone already, or never ran: nothing after it can depend on it
        waiting.extend(_inside(run, definition, later))
        waiting.extend(_built_on(run, definition, later))
    return None


def _built_on(run: Run, definition: Definition, found: Located) -> Iterator[Located]:
    """The steps that could only start after this one: its direct followers."""
    step, lane = found.step, found.lane
    for name in lane.course.followers[step.id]:
        yield Located(lane.course.named[name], lane)
    if not lane.parent or is_in_undo(lane.prefix):
        return
    container = locate(definition, lane.parent)
    if lane.loops and _is_sequential(container):
        next_round = lane.loops[-1].round + 1
        if next_round < _rounds(run, lane.parent):
            yield from _steps_of(lane_in(definition, container, next_round))
    # What follows the container could only start after this step, too.
    yield from _built_on(run, definition, container)


def _inside(run: Run, definition: Definition, found: Located) -> Iterator[Located]:
    """The steps inside a step, in every round that has started."""
    path = found.lane.prefix + found.step.id
    if found.step.body:
        for number in range(_rounds(run, path)):
            yield from _steps_of(lane_in(definition, found, number))
    elif run.step(path).values is not None and found.step.kind == "workflow":
        yield from _steps_of(lane_in(definition, found))


def _steps_of(lane: Lane) -> Iterator[Located]:
    return (Located(step, lane) for step in lane.course.steps)


def _rounds(run: Run, path: str) -> int:
    state = run.step(path)
    return state.round + 1 if state.rounds is None else state.rounds


def _is_sequential(container: Located) -> bool:
    work = container.step.work
    return isinstance(work, Repeat) or (isinstance(work, Each) and work.parallel == 1)


def _is_undone_as_a_whole(run: Run, definition: Definition, path: str) -> bool:
    """Whether a step that contains this one has ended and has an undo for everything inside it."""
    container = container_of(path)
    while container:
        status = run.step(container).status
        has_ended = status in STEP_UNDOABLE or status is StepStatus.COMPENSATED
        if has_ended and locate(definition, container).step.undo is not None:
            return True
        container = container_of(container)
    return False


def _is_lasting(run: Run, definition: Definition, path: str) -> bool:
    if is_in_undo(path) or _is_undone_as_a_whole(run, definition, path):
        return False
    found, state = locate(definition, path), run.step(path)
    return lasting_effect(found, state) and not has_undo(found, state)


def _newest_first(run: Run) -> list[str]:
    """The steps that were done and may have changed something, newest first."""
    # What its tool declared to change nothing is left out before anything is looked up: of a run that reads thousands
    # of files nothing is left.
    touched = [
        (path, state)
        for path, state in run.steps.items()
        if state.effect is not Effect.NONE and (state.status in STEP_UNDOABLE or is_refused(state))
    ]
    # Steps that ended in the same millisecond keep the journal's order, which is the order of the table.
    ordered = sorted(enumerate(touched), key=lambda item: (item[1][1].ended or item[1][1].started or 0, item[0]))
    return [path for _, (path, _) in reversed(ordered)]
