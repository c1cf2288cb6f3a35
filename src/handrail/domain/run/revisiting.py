"""Revisiting: which steps of a list are next if a condition that was false may become true later.

Pure. In such a list (`revisit: true`) one step is done at a time. After each, the first step in the order of the list
whose condition is true is next; only when none is left are the others skipped."""

from __future__ import annotations

from handrail.domain.definition.model import Step
from handrail.domain.errors import Invalid
from handrail.domain.run.scope import condition_is_true
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_MOVING, STEP_SATISFIED, StepStatus
from handrail.domain.run.step_path import Lane


def is_revisited(lane: Lane) -> bool:
    """Whether the steps of this list are looked at again."""
    return lane.definition is not None and lane.definition.revisit


def next_steps(run: Run, lane: Lane) -> list[str]:
    """The steps of a list that have not started and come next: one, or all if they are only left to be skipped."""
    waiting = [step for step in lane.course.steps if run.step(lane.prefix + step.id).status is StepStatus.PENDING]
    first = next((step.id for step in waiting if not _is_passed(run, lane, step)), None)
    return [step.id for step in waiting] if first is None else [first]


def steps_before(run: Run, lane: Lane, name: str) -> list[str]:
    """The steps of a list that must be over before this one starts."""
    found: list[str] = []
    is_later = False
    for step in lane.course.steps:
        status = run.step(lane.prefix + step.id).status
        if step.id == name:
            is_later = True
        elif status in STEP_MOVING or (
            not is_later and status not in STEP_SATISFIED and not _is_passed(run, lane, step)
        ):
            found.append(step.id)
    return found


def _is_passed(run: Run, lane: Lane, step: Step) -> bool:
    """Whether a step has not started, and its condition is false now."""
    if step.when is None or run.step(lane.prefix + step.id).status is not StepStatus.PENDING:
        return False
    try:
        return not condition_is_true(step.when, run, lane)
    except Invalid:
        return False  # its start will fail, and say why
