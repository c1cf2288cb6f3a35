"""Endings: whether all runs have come to rest, and what a worker that has nothing to do may still hold.

Judged from the journal alone, by what the definition says: a run that has not ended must be waiting for somebody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from handrail.domain.definition.model import OnFailure, Prompt
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_SATISFIED, RunStatus, StepStatus
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.failure_policy import policy_for
from handrail.engine.running.worker import Worker
from simulation.loop import Process
from simulation.plan_order import containers, could_begin, is_container, open_lists, owes_undo, step_at
from simulation.story import Story
from simulation.witness import Witness

ENDED = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED, RunStatus.COMPENSATED})


def waits_for(story: Story) -> list[tuple[str, str]]:
    """Whom or what the run waits for: a word and a step."""
    run, definition = story.run, story.definition
    if run.status in {RunStatus.PAUSED, RunStatus.COMPENSATION_FAILED}:
        return [(run.status.value, "")]
    waits: list[tuple[str, str]] = []
    for path, state in run.steps.items():
        step = step_at(definition, path)
        if not _is_open(run, path):
            continue
        if state.status is StepStatus.WAITING and state.digest:
            waits.append(("approval", path))
        elif state.undo_uncertain:
            waits.append(("uncertain undo", path))
        elif state.status is StepStatus.WAITING and isinstance(step.work, Prompt):
            waits.append(("agent", path))
        elif state.status is StepStatus.UNCERTAIN or (
            state.status is StepStatus.FAILED and _asks(policy_for(definition, path), state)
        ):
            waits.append(("decision", path))
        elif state.status is StepStatus.COMPENSATING and isinstance(step.undo, Prompt):
            waits.append(("undo", path))
    for prefix, steps in open_lists(definition, run):
        for step in steps:
            state = run.step(prefix + step.id)
            is_new = state.status in {StepStatus.PENDING, StepStatus.READY}
            ready = all(run.step(prefix + name).status in STEP_SATISFIED for name in step.after)
            if isinstance(step.work, Prompt) and is_new and ready:
                waits.append(("agent", prefix + step.id))
    return waits


def _asks(policy: OnFailure, state: StepState) -> bool:
    """Whether somebody must decide on a failure; also on a rejected approval whose followers may have started."""
    return policy is OnFailure.ASK or (policy is OnFailure.CONTINUE and state.withdrawn)


def _is_open(run: Run, path: str) -> bool:
    """Whether the run works on this step: while it is undone, only on undos."""
    if run.status is RunStatus.RUNNING:
        return "!undo" not in path
    state = run.step(path)
    return "!undo" in path or state.status is StepStatus.COMPENSATING or state.undo_uncertain


def unrest(story: Story) -> list[str]:
    """Why a run is neither at its end nor waiting for somebody."""
    run = story.run
    if run.status in ENDED:
        return []
    if not waits_for(story):
        return [f"{run.id} is {run.status.value}, and nobody is asked for anything"]
    if run.status not in {RunStatus.RUNNING, RunStatus.COMPENSATING}:
        return []
    moving = [
        f"{path} is running"
        for path, state in run.steps.items()
        if state.status is StepStatus.RUNNING
        and _is_open(run, path)
        and not is_container(step_at(story.definition, path))
    ]
    return moving if moving else list(_forgotten(story))


def _forgotten(story: Story) -> Iterator[str]:
    """What handrail could do by itself, and does not."""
    run, definition = story.run, story.definition
    failed = [path for path, state in run.steps.items() if state.status is StepStatus.FAILED]
    if run.status is RunStatus.RUNNING:
        if any(policy_for(definition, path) in {OnFailure.COMPENSATE, OnFailure.STOP} for path in failed):
            yield f"{run.id} goes on though {failed} failed"
        yield from (f"{path} could begin" for path in could_begin(definition, run))
        for path, state in run.steps.items():
            is_timed = state.status is StepStatus.WAITING and not state.digest
            is_timed &= all(run.step(above).status is StepStatus.RUNNING for above in containers(path))
            if is_timed and not isinstance(step_at(definition, path).work, Prompt):
                yield f"{path} waits for its time"
        return
    owed = [path for path in run.steps if owes_undo(definition, run, path)]
    yield from (f"{path} could begin" for path in could_begin(definition, run))
    if not owed:
        yield f"{run.id} has nothing left to undo"


def is_at_rest(witness: Witness, workers: Sequence[Worker | None]) -> bool:
    """Whether nothing more will happen by itself."""
    conductors = [conductor for worker in workers if worker is not None for conductor in worker.conductors.values()]
    return all(conductor.is_settled for conductor in conductors) and not why_not_at_rest(witness, workers)


def why_not_at_rest(witness: Witness, workers: Sequence[Worker | None]) -> list[str]:
    """What still moves, or should."""
    reasons = [why for story in witness.stories.values() for why in unrest(story)]
    conductors = [conductor for worker in workers if worker is not None for conductor in worker.conductors.values()]
    busy = [conductor for conductor in conductors if not conductor.is_settled]
    reasons += [f"a conductor of {one.run.id} is at work: {one.postponements} {list(one.calls.tasks)}" for one in busy]
    return reasons


def left_behind(worker: Worker, process: Process) -> Iterator[str]:
    """Invariant 18: what a worker still holds when all runs have ended."""
    throttle = worker._parts.throttle
    if worker.conductors:
        yield f"conductors of {list(worker.conductors)}"
    if throttle._under_way or any(throttle._by_name.values()):
        yield f"{throttle._under_way} calls under way: {throttle._by_name}"
    if any(throttle._waiting.values()) or throttle._offers:
        yield f"runs that wait for a tool: {throttle._waiting} {throttle._offers}"
    if throttle._queued or any(throttle._turns.values()):
        yield f"runs that wait for a turn: {throttle._queued} {throttle._turns}"
    if worker._waiters._waiting:
        yield f"waiters for {list(worker._waiters._waiting)}"
    going = [task for task in process.tasks if not task.done()]
    # It beats and looks around, each with a wait of its own; with a host it serves that as well.
    if len(going) > (4 if worker.host is None else 5):
        yield f"{len(going)} tasks"
