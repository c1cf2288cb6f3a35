"""The turn: what a run does next. Decided here alone, for the conductor, for rehearsals and for readers.

Pure, and only looking: the agenda that is asked must be kept up, and is not changed. Calling tools, waiting for limits
and writing to the journal is up to the caller (engine/conductor.py); a turn that is not carried out is simply offered
again at the next look."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

from msgspec import Struct

from handrail.domain.agenda import Agenda
from handrail.domain.beginning import Grant, InputCheck, LeaveToAgent, StepStart, start_of
from handrail.domain.command import (
    Command,
    ExpireApproval,
    ExpireRun,
    FinishCompensation,
    FinishRun,
    LoseAttempt,
    LoseUndo,
    StartCompensation,
)
from handrail.domain.definition import OnFailure
from handrail.domain.errors import Invalid
from handrail.domain.path import UNDO, top_lane
from handrail.domain.rounds import container_commands, outputs_of
from handrail.domain.status import RunStatus

STARTS_MAX: Final = 200
"""How many steps a turn offers for starting, of each sort."""


class Turn(Struct, frozen=True):
    """What can be done now: commands that only have to be granted, and steps to start, the most urgent first.

    Nothing at all means that the run waits (for a call, a time, an agent, a person), or is over."""

    commands: tuple[Command, ...] = ()
    undos: tuple[str, ...] = ()
    """Steps whose undo may start."""
    calls: tuple[str, ...] = ()
    """Steps that call a tool and may start."""

    def __bool__(self) -> bool:
        return bool(self.commands or self.undos or self.calls)


NOTHING: Final = Turn()


def next_turn(agenda: Agenda, *, check: InputCheck, under_way: Collection[str] = (), at_most: int = STARTS_MAX) -> Turn:
    """What the run does next, given the calls that are under way: steps by path, undos by path with `!undo`.

    `at_most` bounds the steps to start: 0 if there is no slot left for another call."""
    match agenda.run.status:
        case RunStatus.RUNNING:
            return _doing(agenda, check, under_way, at_most)
        case RunStatus.COMPENSATING:
            return _undoing(agenda, check, under_way, at_most)
        case _:
            return NOTHING


def ready_for_agent(agenda: Agenda, *, check: InputCheck) -> list[str]:
    """The ready steps that only an agent can do; not those whose condition does not hold."""
    started = ((path, _begun(agenda, path, check)) for path in agenda.ready_steps.others)
    return [*agenda.ready_steps.prompts, *(path for path, one in started if isinstance(one, LeaveToAgent))]


def _doing(agenda: Agenda, check: InputCheck, under_way: Collection[str], at_most: int) -> Turn:
    run = agenda.run
    if run.deadline is not None and agenda.now >= run.deadline:
        return Turn((ExpireRun(),))
    if commands := _noted(agenda, under_way):
        return Turn(tuple(commands))
    if (halt := agenda.halt) is not None:
        return Turn(() if under_way else _halted(agenda, halt))  # what is under way ends, and is recorded
    if agenda.is_stuck or agenda.is_done:
        return Turn(() if under_way else (_end(agenda),))
    return Turn(_opened(agenda, check), calls=_free(agenda.ready_steps.calls, under_way, at_most))


def _undoing(agenda: Agenda, check: InputCheck, under_way: Collection[str], at_most: int) -> Turn:
    undos = agenda.undos
    again, lost = _interrupted(agenda, under_way)
    if commands := (*_noted(agenda, under_way), *lost):
        return Turn(commands)
    if not undos.ready and not undos.under_way:
        return Turn(() if under_way else (FinishCompensation(),))
    to_undo = (path for path in undos.ready if path + UNDO not in under_way)
    return Turn(
        _opened(agenda, check),
        undos=tuple(islice((*again, *islice(to_undo, at_most)), at_most)),
        calls=_free(agenda.ready_steps.calls, under_way, at_most),
    )


def _noted(agenda: Agenda, under_way: Collection[str]) -> list[Command]:
    """What has to be recorded before any other step starts: questions that expired, rounds, attempts that were lost."""
    lost = agenda.busy.difference(under_way)
    if not lost and not agenda.expired and not agenda.containers:
        return []  # as nearly always, and a run asks at every event
    commands: list[Command] = [ExpireApproval(step=path) for path in agenda.expired]
    commands += container_commands(agenda)
    return [*commands, *(LoseAttempt(step=path) for path in sorted(lost))]


def _interrupted(agenda: Agenda, under_way: Collection[str]) -> tuple[list[str], list[Command]]:
    """Undos that have started and that nobody works on: those to be tried again, and the commands for the others."""
    again: list[str] = []
    lost: list[Command] = []
    for path in agenda.undos.by_tool():
        state = agenda.run.step(path)
        if path + UNDO in under_way or (state.due or 0) > agenda.now:
            continue
        # A failure has been journaled for each attempt that ended; the last one was lost if it has none.
        if state.due is None and not state.repeatable:
            lost.append(LoseUndo(step=path))
        else:
            again.append(path)
    return again, lost


def _halted(agenda: Agenda, policy: OnFailure) -> tuple[Command, ...]:
    if policy is OnFailure.STOP:
        return (FinishRun(),)
    path = next(path for path, own in agenda.failed.items() if own is policy)
    return (StartCompensation(reason=f"{path} failed: {agenda.run.step(path).message}"),)


def _end(agenda: Agenda) -> Command:
    if agenda.is_stuck:
        return FinishRun()
    try:
        return FinishRun(outputs=outputs_of(agenda.definition, agenda.run, top_lane(agenda.definition)))
    except Invalid as error:
        return FinishRun(flaw=f"the outputs can't be worked out: {error}")


def _opened(agenda: Agenda, check: InputCheck) -> tuple[Command, ...]:
    """The start of ready steps that call no tool, so that nothing limits them."""
    if not agenda.ready_steps.others:
        return ()
    started = [_begun(agenda, path, check) for path in agenda.ready_steps.others]
    return tuple(command for one in started if isinstance(one, Grant) for command in one.commands)


def _begun(agenda: Agenda, path: str, check: InputCheck) -> StepStart:
    return start_of(agenda.run, agenda.definition, path, now=agenda.now, check=check)


def _free(ready: Iterable[str], under_way: Collection[str], at_most: int) -> tuple[str, ...]:
    # A step may be ready by the journal while its call is under way: it has not recorded its start yet, or its last
    # attempt has ended and the call is still cleaning up.
    return tuple(islice((path for path in ready if path not in under_way), at_most)) if at_most else ()
