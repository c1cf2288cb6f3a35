"""Forking: what a new run takes over from another, and which effects of that one nothing undoes.

Pure. The fork itself is an ordinary start of a run (engine/running/control.py)."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from handrail.domain.definition.model import Definition
from handrail.domain.errors import Invalid
from handrail.domain.journal.event import Fork, Proof, StepCarried
from handrail.domain.policy.skipping import has_approval
from handrail.domain.run.command import StartRun
from handrail.domain.run.scope import outputs_of_rounds
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_SATISFIED, STEP_UNDOABLE, StepStatus
from handrail.domain.run.step_path import locate, top_lane
from handrail.domain.scheduling.compensation import lasting_effect


class ForkShare(Struct, frozen=True):
    """What a fork shares with the run that it comes from."""

    carried: tuple[StepCarried, ...]
    """The steps whose results it takes over."""
    effects: tuple[str, ...]
    """The steps that it does again although their effect remains: it does not undo them."""


def shared_by_fork(run: Run, definition: Definition, step: str) -> ForkShare:
    """What a fork from this step shares; Invalid if the step is inside another."""
    kept = _kept(run, definition, _from_step_on(definition, step))
    rest = (path for path in run.steps if path.split(".")[0].split("[")[0] not in kept)
    return ForkShare(tuple(_carried(run, definition, kept)), tuple(_lasting(run, definition, rest)))


def fork_request(run: Run, definition: Definition, step: str, *, key: str = "") -> StartRun:
    """The start of a fork from this step."""
    share = shared_by_fork(run, definition, step)
    return StartRun(
        goal=run.goal,
        mode=run.mode,
        priority=run.priority,
        fork=Fork(run=run.id, n=run.n, step=step, effects=share.effects),
        carried=share.carried,
        vars=run.vars,
        pins=run.pins,
        key=key,
    )


def _from_step_on(definition: Definition, step: str) -> set[str]:
    """A step and all that could only start after it."""
    found = locate(definition, step)
    if found.parent:
        raise Invalid(f"{step!r} is inside {found.parent!r}", hint=f"fork from {found.parent!r}, as a whole")
    again, waiting = {step}, [step]
    while waiting:
        later = set(found.lane.course.followers[waiting.pop()]) - again
        again |= later
        waiting.extend(later)
    return again


def _kept(run: Run, definition: Definition, again: set[str]) -> set[str]:
    """The steps whose results a fork takes over: done, and so is everything that they depend on.

    A step whose dependency was undone must run again after it, and an approval must be asked again: what was approved
    is made again."""
    needs = top_lane(definition).course.needs
    done = [step for step in definition.steps if run.step(step.id).status in STEP_SATISFIED]
    # What was approved, skipped or overridden in one run says nothing about another.
    decided = {step.id for step in done if _has_exception(run, step.id) or has_approval(definition, step)}
    kept = {step.id for step in done} - again - decided
    while dropped := {step for step in kept if not set(needs[step]) <= kept}:
        kept -= dropped
    return kept


def _has_exception(run: Run, step: str) -> bool:
    """Whether a step, or one inside it, was left out by somebody."""
    inside = (f"{step}.", f"{step}[")
    return any(state.exception for path, state in run.steps.items() if path == step or path.startswith(inside))


def _carried(run: Run, definition: Definition, kept: set[str]) -> list[StepCarried]:
    carried = []
    for step in definition.steps:
        state = run.step(step.id)
        if step.id not in kept:
            continue
        output = outputs_of_rounds(run, step, step.id) if step.body else state.output
        is_skipped = state.status is StepStatus.SKIPPED
        proof = Proof(state.proof or Proof.VERIFIED)
        carried.append(
            StepCarried(step=step.id, output=output, is_skipped=is_skipped, proof=proof, checks=state.checks)
        )
    return carried


def _lasting(run: Run, definition: Definition, paths: Iterable[str]) -> list[str]:
    """The steps that had a lasting effect and were not undone."""
    return [
        path
        for path in paths
        if run.step(path).status in STEP_UNDOABLE and lasting_effect(locate(definition, path), run.step(path))
    ]
