"""The prospect of a run: whether handrail can move it by itself now, and which agent or person it waits for.

Pure, and changes nothing. It uses the same agenda and the same turn (domain/scheduling/turn.py) as the conductor. How
it is shown to readers is decided in run_view.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from handrail.domain.definition.model import Approve, Definition, OnFailure, Prompt
from handrail.domain.journal.event import Mode
from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_OPEN, RUN_UNENDED, RUN_WORKING, STEP_REPORT_DUE, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO, is_in_undo, locate
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.compensation import undo_order
from handrail.domain.scheduling.turn import next_turn, ready_for_agent


class Prospect(Struct, frozen=True, kw_only=True):
    """What a run can do next, and who has to do it."""

    agenda: Agenda
    can_move: bool
    """Whether handrail has something to do, or a timer to wait for."""
    for_agent: tuple[str, ...]
    """Steps, or undos of steps, that only an agent can do now."""
    asked: tuple[str, ...]
    """Steps that wait for a person's answer."""
    undecided: tuple[str, ...]
    """Steps that need a person's decision."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing happens until an agent or a person acts."""
        return not self.can_move


def prospect_of(run: Run, definition: Definition, *, now: int) -> Prospect:
    """The prospect of a run at this time, for a reader without an agenda of it."""
    agenda = Agenda(definition, run)
    agenda.keep_up(now)
    return prospect_by(agenda)


def prospect_by(agenda: Agenda) -> Prospect:
    """The prospect by an agenda that is up to date."""
    run = agenda.run
    if run.mode is Mode.RECORD:
        return _recorded(run, agenda)
    return Prospect(
        agenda=agenda,
        can_move=_can_move(run, agenda),
        for_agent=_for_agent(run, agenda),
        asked=_asked(run, agenda),
        undecided=_undecided(run, agenda),
    )


def _recorded(run: Run, agenda: Agenda) -> Prospect:
    """The prospect of a run in record mode: everything but approvals is done by the agent."""
    started = [path for path, state in run.steps.items() if state.status in STEP_REPORT_DUE]
    if run.status is RunStatus.COMPENSATING:
        left: tuple[str, ...] = tuple(undo_order(run, agenda.definition))
    else:
        left = (*started, *_ranked(agenda, agenda.ready)) if run.status is RunStatus.RUNNING else ()
    reports = tuple(path for path in left if not isinstance(locate(agenda.definition, path).step.work, Approve))
    return Prospect(agenda=agenda, can_move=False, for_agent=reports, asked=_asked(run, agenda), undecided=())


def _can_move(run: Run, agenda: Agenda) -> bool:
    if run.status not in RUN_WORKING:
        return False
    # A reader can't know whether a started attempt is still in progress: only the worker that executes the run does.
    under_way = agenda.tracked.busy.union(path + UNDO for path in agenda.undos.by_tool())
    return bool(under_way) or agenda.waits_for_time or bool(next_turn(agenda, check=_unchecked, at_most=1))


def _for_agent(run: Run, agenda: Agenda) -> tuple[str, ...]:
    is_halted = (
        run.status is RunStatus.RUNNING and agenda.tracked.halt is not None
    )  # nothing new starts before the undo
    if run.status not in RUN_WORKING or is_halted:
        return ()
    assigned = [path for path in sorted(agenda.tracked.waiting) if not run.step(path).digest]
    prompts = [path for path in assigned if isinstance(locate(agenda.definition, path).step.work, Prompt)]
    ready = _ranked(agenda, ready_for_agent(agenda, check=_unchecked))
    return tuple(dict.fromkeys((*prompts, *ready, *agenda.undos.by_agent())))


def _ranked(agenda: Agenda, paths: Iterable[str]) -> list[str]:
    return sorted(paths, key=agenda.lanes.rank_at)


def _unchecked(_definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    """Does not check inputs: whether an inlined workflow then starts or fails, handrail moves the run."""
    return given, ()


def _asked(run: Run, agenda: Agenda) -> tuple[str, ...]:
    if run.status not in RUN_UNENDED:
        return ()
    return tuple(path for path in sorted(agenda.tracked.waiting) if run.step(path).digest)


def _undecided(run: Run, agenda: Agenda) -> tuple[str, ...]:
    if run.status is RunStatus.COMPENSATION_FAILED:
        return tuple(path for path, state in run.steps.items() if state.status is StepStatus.COMPENSATION_FAILED)
    if run.status is RunStatus.COMPENSATING:
        return tuple(sorted((*filter(is_in_undo, agenda.tracked.uncertain), *agenda.undos.uncertain)))
    if run.status not in RUN_OPEN:
        return ()
    failed = [path for path, policy in agenda.tracked.failed.items() if policy is OnFailure.ASK]
    return tuple(dict.fromkeys((*failed, *sorted(agenda.tracked.uncertain))))
