"""Rounds: the commands that loops and inlined workflows need: their next round, their end, or their failure.

Pure, and changes nothing. Which lists of steps are open, and which containers need a command, is decided in agenda.py.
The bound of a loop is a promise: a loop that reaches it without being done has failed, unless its author wants it to be
left."""

from __future__ import annotations

from typing import Any

from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import AtMax, Call, Category, Definition, Repeat, Rounds
from handrail.domain.errors import Invalid
from handrail.domain.journal.event import How
from handrail.domain.json import Json
from handrail.domain.run.command import (
    Command,
    CompensateStep,
    CompleteStep,
    FailStep,
    FailUndo,
    StartRound,
)
from handrail.domain.run.scope import condition_is_true, evaluate, read_by
from handrail.domain.run.skipped_values import reads_skipped
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import UNDO, Lane, Located, lane_in, locate
from handrail.domain.scheduling.agenda import Agenda


def container_commands(agenda: Agenda) -> list[Command]:
    """The commands for all containers that need one."""
    # Sorted, so that a replay does the same in the same order.
    return [command for container in sorted(agenda.containers) for command in _needed(agenda, container)]


def _needed(agenda: Agenda, container: str) -> list[Command]:
    run, found = agenda.run, locate(agenda.definition, container)
    state = run.step(container)
    if state.status is StepStatus.COMPENSATING:
        return _undo_ended(agenda, container)
    try:
        if agenda.lanes.is_round_over(found, state):
            return [_round_over(agenda, found)]
    except Invalid as error:
        return [FailStep(step=container, category=Category.INVALID_INPUT, message=str(error))]
    stuck = agenda.lanes.stuck_in(container)
    return [_failed(run, container, stuck)] if stuck is not None else []


def outputs_of(definition: Definition, run: Run, lane: Lane) -> dict[str, Any]:
    """The outputs of a workflow whose steps are all done."""
    return {name: _output_of(source, run, lane) for name, source in definition.outputs.items()}


def _output_of(source: str, run: Run, lane: Lane) -> Json:
    """One output; null if it reads what a skipped step did not leave."""
    try:
        return evaluate(source, run, lane)
    except Invalid:
        if reads_skipped(read_by(source, lane), run, lane):
            return None
        raise


def _round_over(agenda: Agenda, found: Located) -> Command:
    """The command for a container that has nothing left to do in its round."""
    container = found.prefix + found.step.id
    match found.step.work:
        case Repeat(repeat=rounds):
            return _next_round(agenda.run, agenda.definition, found, rounds, agenda.now)
        case Call():
            lane = lane_in(agenda.definition, found)
            outputs = outputs_of(lane.definition, agenda.run, lane) if lane.definition is not None else {}
            return CompleteStep(step=container, output=outputs or None)
        case _:
            return CompleteStep(step=container)


def _failed(run: Run, container: str, prefix: str) -> FailStep:
    inside = [(path, state) for path, state in run.steps.items() if path.startswith(prefix)]
    path, state = next((path, state) for path, state in inside if state.status is StepStatus.FAILED)
    category = state.category or Category.TOOL_ERROR
    return FailStep(step=container, category=category, message=f"{path} failed: {state.message}"[:2_000])


def _next_round(run: Run, definition: Definition, found: Located, rounds: Rounds, now: int) -> Command:
    container = found.prefix + found.step.id
    state = run.step(container)
    lane = lane_in(definition, found, state.round)
    started = state.round + 1
    if _is_enough(run, lane, rounds, started):
        return CompleteStep(step=container)
    # Somebody who retries a loop at its bound grants it that many rounds again.
    if started - state.granted >= rounds.bound:
        if rounds.at_max is AtMax.LEAVE:
            return CompleteStep(step=container)
        return FailStep(
            step=container, category=Category.TIMEOUT, message=f"not done after {started} rounds, its bound"
        )
    due = now + duration_ms(rounds.every) if rounds.every and started else None
    return StartRound(step=container, due=due)


def _is_enough(run: Run, lane: Lane, rounds: Rounds, started: int) -> bool:
    if rounds.times is not None:
        return started >= rounds.times
    if rounds.while_ is not None:
        return not condition_is_true(rounds.while_, run, lane)
    return started > 0 and rounds.until is not None and condition_is_true(rounds.until, run, lane)


def _undo_ended(agenda: Agenda, container: str) -> list[Command]:
    """The command for a step whose undo is a workflow that has ended."""
    if agenda.lanes.is_over(f"{container}{UNDO}."):
        return [CompensateStep(step=container, how=How.EXECUTED)]
    stuck = agenda.lanes.stuck_in(container)
    if stuck is None:
        return []
    failed = _failed(agenda.run, container, stuck)
    return [FailUndo(step=container, category=failed.category, message=failed.message)]
