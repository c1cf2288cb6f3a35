"""Skipping: who may leave a step out.

Pure. A step without a gate may be skipped by an agent. A check that blocks, `confirm` and an approval are gates: they
are skipped only by a person. A step that contains others is as strict as the strictest step inside it; otherwise
skipping a loop would skip the approvals in it. Its author may let an agent skip it with the checks inside, but never
with an approval, nor with what is reserved to a person. Who skips the first step of an inlined workflow skips all of
it, if nothing else there has started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from handrail.domain.checks.finding import BLOCKING
from handrail.domain.definition.model import Approve, Call, Definition, Prompt, Skippable, Step, Tool
from handrail.domain.journal.event import About
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_NOT_STARTED, StepStatus
from handrail.domain.run.step_path import is_in_undo, locate
from handrail.domain.run.step_state import StepState

_STRICTNESS: Final = (Skippable.AGENT, Skippable.PERSON, Skippable.NOBODY)


def who_may_skip(definition: Definition, step: Step, state: StepState) -> Skippable:
    """Who may skip a step in this state, by what it is and what its author says."""
    if state.about is About.TOOL:
        return _strictest(Skippable.PERSON, _of_step(step))  # its tool has changed: a person must look at it
    inside = list(_with_contents(definition, step))
    if step.skippable is Skippable.AGENT:
        inside = [one for one in inside if one.skippable is not None or isinstance(one.work, Approve)]
    return max((_of_step(one) for one in inside), key=_STRICTNESS.index)


def skipped_with(run: Run, definition: Definition, path: str) -> tuple[str, ...]:
    """The steps that are skipped with a step: the rest of a workflow that was inlined, if it is the first one there and
    the others have not started. Not if they ask a person, who then is asked; nor if it failed: that is a repair."""
    found, status = locate(definition, path), run.step(path).status
    lane = found.lane
    if lane.definition is None or not lane.caller or is_in_undo(path) or not isinstance(found.step.work, Prompt):
        return ()
    first, *others = lane.definition.steps
    rest = tuple(f"{lane.prefix}{one.id}" for one in others)
    is_started = any(run.step(one).status not in STEP_NOT_STARTED for one in rest)
    is_asked = any(has_approval(definition, one) for one in others)
    is_open = status in STEP_NOT_STARTED or status is StepStatus.WAITING
    return () if first.id != found.step.id or not is_open or is_started or is_asked else rest


def has_gate(definition: Definition, step: Step) -> bool:
    """Whether a step, or one inside it, has a check that blocks or needs the user's agreement."""
    return any(_is_gated(one) for one in _with_contents(definition, step))


def has_approval(definition: Definition, step: Step) -> bool:
    """Whether a step is an approval, or contains one."""
    return any(True for _ in approvals_in(definition, step))


def approvals_in(definition: Definition, step: Step) -> Iterator[Approve]:
    """Every approval that a step is, or contains."""
    return (one.work for one in _with_contents(definition, step) if isinstance(one.work, Approve))


def is_reserved(definition: Definition, step: Step, state: StepState) -> bool:
    """Whether skipping a step is left to a person for another reason than its checks."""
    is_said = any(one.skippable is Skippable.PERSON for one in _with_contents(definition, step))
    return is_said or state.about is About.TOOL


def _is_gated(step: Step) -> bool:
    work = step.work
    if not isinstance(work, Prompt | Tool):
        return False
    blocking = BLOCKING[work.bar]
    return any(check.severity in blocking for check in work.checks) or _needs_agreement(step)


def _needs_agreement(step: Step) -> bool:
    return isinstance(step.work, Prompt) and step.work.confirm is not False


def _of_step(step: Step) -> Skippable:
    if isinstance(step.work, Approve):
        # An author can forbid that an approval is skipped, but can't let an agent skip it.
        return _strictest(Skippable.PERSON, step.skippable or Skippable.PERSON)
    return step.skippable or (Skippable.PERSON if _is_gated(step) else Skippable.AGENT)


def _strictest(one: Skippable, other: Skippable) -> Skippable:
    return max(one, other, key=_STRICTNESS.index)


def _with_contents(definition: Definition, step: Step) -> Iterator[Step]:
    """A step and every step inside it, of loops and of inlined workflows."""
    yield step
    inside = step.body
    if isinstance(step.work, Call) and step.work.workflow in definition.pinned:
        inside = definition.pinned[step.work.workflow].steps
    for one in inside:
        yield from _with_contents(definition, one)
