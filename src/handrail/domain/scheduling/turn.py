"""The turn: what a run does next. Decided only here, for the conductor, for rehearsals and for readers.

Pure: it reads an agenda that is up to date and does not change it. Calling tools, waiting for limits and writing to
the journal is done by the caller (engine/running/conductor.py). A turn that is not carried out is returned again by
the next call."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import OnFailure
from handrail.domain.errors import Invalid
from handrail.domain.run.approval_reach import held_by, withdrawn_in
from handrail.domain.run.command import (
    Command,
    ExpireApproval,
    ExpireRun,
    FinishCompensation,
    FinishRun,
    LoseAttempt,
    LoseUndo,
    StartCompensation,
)
from handrail.domain.run.status import RunStatus
from handrail.domain.run.step_path import UNDO, top_lane
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.loop_rounds import container_commands, outputs_of
from handrail.domain.scheduling.step_start import Grant, InputCheck, LeaveToAgent, StepStart, start_of

STARTS_MAX: Final = 200
"""How many steps of each kind a turn offers to start."""


class Turn(Struct, frozen=True):
    """What can be done now: commands to journal, and steps to start, the most urgent first.

    An empty turn means that the run waits (for a call, a timer, an agent, a person), or is over."""

    commands: tuple[Command, ...] = ()
    undos: tuple[str, ...] = ()
    """Steps whose undo may start."""
    calls: tuple[str, ...] = ()
    """Steps that may start and call a tool."""

    def __bool__(self) -> bool:
        return bool(self.commands or self.undos or self.calls)


NOTHING: Final = Turn()


def next_turn(agenda: Agenda, *, check: InputCheck, under_way: Collection[str] = (), at_most: int = STARTS_MAX) -> Turn:
    """What the run does next, given the calls in progress: steps by path, undos by path with `!undo`.

    `at_most` limits the steps to start: 0 if there is no slot left for another call."""
    match agenda.run.status:
        case RunStatus.RUNNING:
            return _doing(agenda, check, under_way, at_most)
        case RunStatus.COMPENSATING:
            return _undoing(agenda, check, under_way, at_most)
        case _:
            return NOTHING


def ready_for_agent(agenda: Agenda, *, check: InputCheck) -> list[str]:
    """The ready steps that only an agent can do, without those whose condition is false."""
    started = ((path, _start(agenda, path, check)) for path in agenda.ready_steps.others)
    left = [*agenda.ready_steps.prompts, *(path for path, one in started if isinstance(one, LeaveToAgent))]
    return list(_approved(agenda, left))


def _doing(agenda: Agenda, check: InputCheck, under_way: Collection[str], at_most: int) -> Turn:
    run = agenda.run
    if run.expires is not None and agenda.now >= run.expires:
        # Before anything else: after its deadline a run starts nothing, not even what became ready in the same turn.
        return Turn((ExpireRun(),))
    if commands := _noted(agenda, check, under_way):
        return Turn(tuple(commands))
    if (halt := agenda.tracked.halt) is not None:
        return Turn(() if under_way else _halted(agenda, halt))  # calls in progress finish first, and are journaled
    if agenda.is_stuck or agenda.is_done:
        return Turn(() if under_way else (_end(agenda),))
    return Turn(_opened(agenda, check), calls=_free(_approved(agenda, agenda.ready_steps.calls), under_way, at_most))


def _undoing(agenda: Agenda, check: InputCheck, under_way: Collection[str], at_most: int) -> Turn:
    undos = agenda.undos
    again, lost = _interrupted(agenda, under_way)
    if commands := (*_noted(agenda, check, under_way), *lost):
        return Turn(commands)
    if not undos.ready and not undos.under_way:
        return Turn(() if under_way or undos.uncertain else (FinishCompensation(),))
    to_undo = (path for path in undos.ready if path + UNDO not in under_way)
    return Turn(
        _opened(agenda, check),
        undos=tuple(islice((*again, *islice(to_undo, at_most)), at_most)),
        calls=_free(_approved(agenda, agenda.ready_steps.calls), under_way, at_most),
    )


def _noted(agenda: Agenda, check: InputCheck, under_way: Collection[str]) -> list[Command]:
    """What must be journaled before another step starts: expired and withdrawn questions, rounds, lost attempts."""
    # In progress by the journal, but not here: the worker that had the lease before ended in the middle of it.
    lost = agenda.tracked.busy.difference(under_way)
    if not lost and not agenda.tracked.expired and not agenda.tracked.withdrawn and not agenda.containers:
        return []  # the usual case, checked at every event of a run
    commands: list[Command] = [ExpireApproval(step=path) for path in agenda.tracked.expired]
    again = [_start(agenda, path, check) for path in agenda.tracked.withdrawn]
    commands += [command for one in again if isinstance(one, Grant) for command in one.commands]
    commands += container_commands(agenda)
    return [*commands, *(LoseAttempt(step=path) for path in sorted(lost))]


def _interrupted(agenda: Agenda, under_way: Collection[str]) -> tuple[list[str], list[Command]]:
    """Undos that have started but are not in progress: those to call again now, and those that were lost."""
    again: list[str] = []
    lost: list[Command] = []
    for path in agenda.undos.by_tool():
        state = agenda.run.step(path)
        if path + UNDO in under_way or (state.due or 0) > agenda.now:
            continue
        # An attempt that failed or was lost has a time for the next one; without it, it was interrupted just now.
        if state.due is None:
            lost.append(LoseUndo(step=path))
        else:
            again.append(path)
    return again, lost


def _halted(agenda: Agenda, policy: OnFailure) -> tuple[Command, ...]:
    if policy is OnFailure.STOP:
        return (FinishRun(),)
    # The first that failed with this policy: later failures are its consequences more often than not.
    path = next(path for path, own in agenda.tracked.failed.items() if own is policy)
    return (StartCompensation(reason=f"{path} failed: {agenda.run.step(path).message}"),)


def _end(agenda: Agenda) -> Command:
    if agenda.is_stuck:
        return FinishRun()
    try:
        return FinishRun(outputs=outputs_of(agenda.definition, agenda.run, top_lane(agenda.definition)))
    except Invalid as error:
        return FinishRun(flaw=f"the outputs can't be evaluated: {error}")


def _opened(agenda: Agenda, check: InputCheck) -> tuple[Command, ...]:
    """The commands that start ready steps which call no tool, so that no limit applies to them."""
    if not agenda.ready_steps.others:
        return ()
    started = [_start(agenda, path, check) for path in _approved(agenda, agenda.ready_steps.others)]
    return tuple(command for one in started if isinstance(one, Grant) for command in one.commands)


def _start(agenda: Agenda, path: str, check: InputCheck) -> StepStart:
    return start_of(agenda.run, agenda.definition, path, now=agenda.now, check=check)


def _approved(agenda: Agenda, ready: Iterable[str]) -> Iterable[str]:
    """Those of the ready steps that wait for no approval that was withdrawn."""
    run = agenda.run
    if not run.approvals or next(withdrawn_in(run), None) is None:
        return ready
    return (path for path in ready if run.step(path).withdrawn or not held_by(run, agenda.definition, path))


def _free(ready: Iterable[str], under_way: Collection[str], at_most: int) -> tuple[str, ...]:
    # The journal may show a step as ready while its call is in progress: its start is not journaled yet, or its last
    # attempt has ended and the call is still cleaning up.
    return tuple(islice((path for path in ready if path not in under_way), at_most)) if at_most else ()
