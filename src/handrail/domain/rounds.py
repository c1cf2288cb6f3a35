"""Rounds: what a step that holds other steps needs: its next round, its end, or its failure.

Pure, and only looking: which lists of steps are open, and which holders need a command, the agenda knows. How many
rounds a loop has at most is a promise: passing it is a failure."""

from __future__ import annotations

from typing import Any

from handrail.domain.agenda import Agenda
from handrail.domain.command import (
    Command,
    CompensateStep,
    CompleteStep,
    FailStep,
    FailUndo,
    StartRound,
)
from handrail.domain.definition import Call, Category, Definition, Repeat, Rounds
from handrail.domain.duration import duration_ms
from handrail.domain.errors import Invalid
from handrail.domain.event import How
from handrail.domain.open_lane import stuck_in
from handrail.domain.path import Lane, Located, lane_in, locate
from handrail.domain.run import Run
from handrail.domain.status import StepStatus
from handrail.domain.values import evaluate, holds


def holder_commands(agenda: Agenda) -> list[Command]:
    """What all the holders need that the agenda names."""
    # In an order that a replay would find again.
    return [command for holder in sorted(agenda.holders) for command in _needed(agenda, holder)]


def _needed(agenda: Agenda, holder: str) -> list[Command]:
    run, found = agenda.run, locate(agenda.definition, holder)
    if run.step(holder).status is StepStatus.COMPENSATING:
        return _undo_ended(agenda, holder)
    try:
        if agenda.is_over(holder):
            return [_round_over(agenda, found)]
    except Invalid as error:
        return [FailStep(step=holder, category=Category.INVALID_INPUT, message=str(error))]
    stuck = stuck_in(agenda.lanes, holder)
    return [_failed(run, holder, stuck)] if stuck is not None else []


def outputs_of(definition: Definition, run: Run, lane: Lane) -> dict[str, Any]:
    """What a workflow hands out when all its steps are done."""
    return {name: evaluate(source, run, lane) for name, source in definition.outputs.items()}


def _round_over(agenda: Agenda, found: Located) -> Command:
    """What a holder needs that has nothing left to do in its round."""
    holder = found.prefix + found.step.id
    match found.step.work:
        case Repeat(repeat=rounds):
            return _next_round(agenda.run, agenda.definition, found, rounds, agenda.now)
        case Call():
            lane = lane_in(agenda.definition, found)
            outputs = outputs_of(lane.definition, agenda.run, lane) if lane.definition is not None else {}
            return CompleteStep(step=holder, output=outputs or None)
        case _:
            return CompleteStep(step=holder)


def _failed(run: Run, holder: str, prefix: str) -> FailStep:
    inside = [(path, state) for path, state in run.steps.items() if path.startswith(prefix)]
    path, state = next((path, state) for path, state in inside if state.status is StepStatus.FAILED)
    category = state.category or Category.TOOL_ERROR
    return FailStep(step=holder, category=category, message=f"{path} failed: {state.message}"[:2_000])


def _next_round(run: Run, definition: Definition, found: Located, rounds: Rounds, now: int) -> Command:
    holder = found.prefix + found.step.id
    state = run.step(holder)
    lane = lane_in(definition, found, state.round)
    begun = state.round + 1
    if _is_enough(run, lane, rounds, begun):
        return CompleteStep(step=holder)
    if begun - state.granted >= rounds.bound:
        return FailStep(step=holder, category=Category.TIMEOUT, message=f"not done after {begun} rounds, its bound")
    due = now + duration_ms(rounds.every) if rounds.every and begun else None
    return StartRound(step=holder, due=due)


def _is_enough(run: Run, lane: Lane, rounds: Rounds, begun: int) -> bool:
    if rounds.times is not None:
        return begun >= rounds.times
    if rounds.while_ is not None:
        return not holds(rounds.while_, run, lane)
    return begun > 0 and rounds.until is not None and holds(rounds.until, run, lane)


def _undo_ended(agenda: Agenda, holder: str) -> list[Command]:
    """What a step needs whose undo is a workflow that has ended."""
    if agenda.is_over(holder):
        return [CompensateStep(step=holder, how=How.EXECUTED)]
    stuck = stuck_in(agenda.lanes, holder)
    if stuck is None:
        return []
    failed = _failed(agenda.run, holder, stuck)
    return [FailUndo(step=holder, category=failed.category, message=failed.message)]
