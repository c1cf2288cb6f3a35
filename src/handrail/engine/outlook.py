"""The outlook of a run: whether handrail can move it by itself now, and who else is waited for.

Pure; made anew from a run whenever somebody looks, by the same agenda that a conductor works by. What readers are told
of it is view.py's."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from handrail.domain.agenda import Agenda
from handrail.domain.beginning import ForAgent, begin
from handrail.domain.compensation import undo_order
from handrail.domain.definition import Call, Definition, OnFailure, Prompt
from handrail.domain.event import Mode
from handrail.domain.path import is_in_undo, locate
from handrail.domain.rounds import look_at_holders
from handrail.domain.run import Run
from handrail.domain.status import RUN_OPEN, RUN_UNENDED, RUN_WORKING, STEP_REPORT_DUE, RunStatus, StepStatus


class Outlook(Struct, frozen=True, kw_only=True):
    """What a run could do next, and by whose hands."""

    agenda: Agenda
    can_move: bool
    """Whether handrail has work or a time to wait for."""
    for_agent: tuple[str, ...]
    """Steps, or undos of steps, that only an agent can do now."""
    asked: tuple[str, ...]
    """Steps that wait for a person's answer."""
    undecided: tuple[str, ...]
    """Steps that somebody must decide on."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing happens until an agent or a person does something."""
        return not self.can_move


def outlook_of(run: Run, definition: Definition, *, now: int) -> Outlook:
    """The outlook of a run at this instant."""
    return outlook_by(Agenda(definition, run), run, now=now)[0]


def outlook_by(agenda: Agenda, run: Run, *, now: int) -> tuple[Outlook, bool]:
    """The outlook by an agenda that is up to date, and whether that agenda can be kept up any longer: not if holders
    were looked at that have something to say, which only the conductor says."""
    if run.mode is Mode.RECORD:
        return _recorded(run, agenda), True
    has_commands = bool(look_at_holders(agenda, run, now=now))
    for_agent = _for_agent(run, agenda, now)
    outlook = Outlook(
        agenda=agenda,
        can_move=_can_move(run, agenda, frozenset(for_agent), has_commands=has_commands, now=now),
        for_agent=for_agent,
        asked=_asked(run, agenda),
        undecided=_undecided(run, agenda),
    )
    return outlook, not has_commands


def _recorded(run: Run, agenda: Agenda) -> Outlook:
    """The outlook of a run that an agent performs itself: all that is left is for its hands."""
    begun = [path for path, state in run.steps.items() if state.status in STEP_REPORT_DUE]
    if run.status is RunStatus.COMPENSATING:
        left: tuple[str, ...] = tuple(undo_order(run, agenda.definition))
    else:
        ready = sorted(agenda.ready, key=agenda.rank)
        left = (*begun, *ready) if run.status is RunStatus.RUNNING else ()
    return Outlook(agenda=agenda, can_move=False, for_agent=left, asked=(), undecided=())


def _can_move(run: Run, agenda: Agenda, for_agent: frozenset[str], *, has_commands: bool, now: int) -> bool:
    match run.status:
        case RunStatus.RUNNING:
            has_more = _is_to_end(run, agenda, now)
        case RunStatus.COMPENSATING:
            has_more = _is_to_undo(agenda)
        case _:
            return False
    is_at_work = bool(agenda.busy or agenda.ready - for_agent)
    return has_commands or is_at_work or has_more or agenda.waits_for_time(run)


def _is_to_end(run: Run, agenda: Agenda, now: int) -> bool:
    is_over = agenda.is_done or agenda.is_stuck or agenda.halt is not None
    return is_over or (run.deadline is not None and now >= run.deadline)


def _is_to_undo(agenda: Agenda) -> bool:
    """Whether handrail itself has something to undo: not an agent, and no workflow whose steps speak for themselves."""
    if agenda.to_undo or not agenda.undoing:
        return True
    undos = (locate(agenda.definition, path).step.undo for path in agenda.undoing)
    return any(not isinstance(undo, Prompt | Call) for undo in undos)


def _for_agent(run: Run, agenda: Agenda, now: int) -> tuple[str, ...]:
    definition = agenda.definition
    is_halted = run.status is RunStatus.RUNNING and agenda.halt is not None  # nothing new begins, until it is undone
    if run.status not in RUN_WORKING or is_halted:
        return ()
    handed_out = [path for path in sorted(agenda.waiting) if not run.step(path).digest]
    prompts = [path for path in handed_out if isinstance(locate(definition, path).step.work, Prompt)]
    ready = [path for path in sorted(agenda.ready, key=agenda.rank) if _is_for_agent(run, definition, path, now)]
    undos = [path for path in agenda.undoing if isinstance(locate(definition, path).step.undo, Prompt)]
    return tuple(dict.fromkeys((*prompts, *ready, *sorted(undos))))


def _is_for_agent(run: Run, definition: Definition, path: str, now: int) -> bool:
    if not isinstance(locate(definition, path).step.work, Prompt):
        return False
    return isinstance(begin(run, definition, path, now=now, check=_unchecked), ForAgent)


def _unchecked(_definition: Definition, given: Any) -> tuple[Any, tuple[str, ...]]:
    """No inputs are checked: an agent's step has none."""
    return given, ()


def _asked(run: Run, agenda: Agenda) -> tuple[str, ...]:
    if run.status not in RUN_UNENDED:
        return ()
    return tuple(path for path in sorted(agenda.waiting) if run.step(path).digest)


def _undecided(run: Run, agenda: Agenda) -> tuple[str, ...]:
    if run.status is RunStatus.COMPENSATION_FAILED:
        return tuple(path for path, state in run.steps.items() if state.status is StepStatus.COMPENSATION_FAILED)
    if run.status is RunStatus.COMPENSATING:
        return tuple(sorted(filter(is_in_undo, agenda.uncertain)))
    if run.status not in RUN_OPEN:
        return ()
    failed = [path for path, policy in agenda.failed.items() if policy is OnFailure.ASK]
    return tuple(dict.fromkeys((*failed, *sorted(agenda.uncertain))))
