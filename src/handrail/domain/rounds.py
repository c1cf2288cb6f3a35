"""Rounds: how a step that holds other steps goes on: which round is next, when it is done, and when it has failed.

Pure. Looks at a holder that the agenda named, opens the lists of steps that may be worked on, and answers with the
commands that the holder needs. How many rounds a loop has at most is a promise: passing it is a failure."""

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
from handrail.domain.definition import Category, Definition, Each, Repeat, Rounds
from handrail.domain.duration import duration_ms
from handrail.domain.errors import Invalid
from handrail.domain.event import How
from handrail.domain.path import UNDO, Lane, Located, lane_in, locate
from handrail.domain.run import Run
from handrail.domain.status import StepStatus
from handrail.domain.values import evaluate, holds


def look_at_holders(agenda: Agenda, run: Run, *, now: int) -> list[Command]:
    """What all the steps need that hold others and that the agenda has named."""
    told: dict[str, list[Command]] = {}
    while agenda.holders:
        holder = min(agenda.holders)  # in an order that a replay would find again
        agenda.holders.discard(holder)
        if not told.get(holder):  # else it is looked at again when what it needs is journaled
            told[holder] = look_at(agenda, run, holder, now=now)
    return [command for commands in told.values() for command in commands]


def look_at(agenda: Agenda, run: Run, holder: str, *, now: int) -> list[Command]:
    """What a step that holds others needs now; lists of steps that may be worked on are opened on the way."""
    state = run.step(holder)
    if state.status is StepStatus.COMPENSATING:
        return _look_at_undo(agenda, run, holder)
    if state.status is not StepStatus.RUNNING:
        return []
    found = locate(agenda.definition, holder)
    try:
        match found.step.work:
            case Each() as work:
                commands = _each(agenda, run, holder, work)
            case Repeat() as work:
                commands = _repeat(agenda, run, found, work.repeat, now)
            case _:
                commands = _call(agenda, run, found)
        return commands or _stuck(agenda, run, holder)
    except Invalid as error:
        return [FailStep(step=holder, category=Category.INVALID_INPUT, message=str(error))]


def outputs_of(definition: Definition, run: Run, lane: Lane) -> dict[str, Any]:
    """What a workflow hands out when all its steps are done."""
    return {name: evaluate(source, run, lane) for name, source in definition.outputs.items()}


def _stuck(agenda: Agenda, run: Run, holder: str) -> list[Command]:
    """The failure of a holder in which a list of steps can't go on, once none of the others goes on either."""
    inside = agenda.lanes_in(holder)
    stuck = [prefix for prefix in inside if agenda.lanes[prefix].is_stuck]
    return [_failed(run, holder, stuck[0])] if stuck and len(stuck) == len(inside) else []


def _failed(run: Run, holder: str, prefix: str) -> FailStep:
    inside = [(path, state) for path, state in run.steps.items() if path.startswith(prefix)]
    path, state = next((path, state) for path, state in inside if state.status is StepStatus.FAILED)
    category = state.category or Category.TOOL_ERROR
    return FailStep(step=holder, category=category, message=f"{path} failed: {state.message}"[:2_000])


def _each(agenda: Agenda, run: Run, holder: str, work: Each) -> list[Command]:
    rounds = run.step(holder).rounds or 0
    is_over = agenda.go_round(run, holder, rounds=rounds, parallel=work.parallel)
    return [CompleteStep(step=holder)] if is_over else []


def _repeat(agenda: Agenda, run: Run, found: Located, rounds: Rounds, now: int) -> list[Command]:
    holder = found.prefix + found.step.id
    state = run.step(holder)
    if state.round >= 0:
        if state.due is not None and state.due > now:
            return []
        prefix = f"{holder}[{state.round}]."
        if prefix not in agenda.lanes:
            agenda.enter(run, holder, state.round)
        if not agenda.lane_over(prefix):
            return []
    command = _next_round(run, agenda.definition, found, rounds, now)
    if not isinstance(command, FailStep):
        agenda.leave(f"{holder}[{state.round}].")
    return [command]


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


def _call(agenda: Agenda, run: Run, found: Located) -> list[Command]:
    holder = found.prefix + found.step.id
    lane = lane_in(agenda.definition, found)
    if lane.prefix not in agenda.lanes:
        agenda.enter(run, holder)
    if not agenda.lane_over(lane.prefix) or lane.definition is None:
        return []
    outputs = outputs_of(lane.definition, run, lane)
    agenda.leave(lane.prefix)
    return [CompleteStep(step=holder, output=outputs or None)]


def _look_at_undo(agenda: Agenda, run: Run, holder: str) -> list[Command]:
    prefix = f"{holder}{UNDO}."
    if prefix in agenda.lanes and agenda.lanes[prefix].is_stuck:
        failed = _failed(run, holder, prefix)
        return [FailUndo(step=holder, category=failed.category, message=failed.message)]
    if not agenda.lane_over(prefix):
        return []
    agenda.leave(prefix)
    return [CompensateStep(step=holder, how=How.EXECUTED)]
