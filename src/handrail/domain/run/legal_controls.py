"""The actions that are legal in a run's current state, each with the steps it can be used on.

Pure. The table of moves is in status.py; here they are given as the actions that users know."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from handrail.domain.run.state import Run
from handrail.domain.run.status import RUN_OPEN, RunStatus, StepStatus
from handrail.domain.run.step_path import is_in_undo
from handrail.domain.run.step_state import StepState


class Action(StrEnum):
    """What a person or an agent can do to a run."""

    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RETRY = "retry"
    SKIP = "skip"
    ACCEPT = "accept"
    COMPENSATE = "compensate"
    APPROVE = "approve"
    REJECT = "reject"
    FORK = "fork"


ANSWERS: Final = frozenset({Action.APPROVE, Action.REJECT})
"""The actions that answer an approval."""


class Legal(Struct, frozen=True):
    """An action that is legal now; on a step, or on the run as a whole."""

    action: Action
    step: str = ""


_OF_RUN: Final = {
    RunStatus.RUNNING: (Action.PAUSE, Action.CANCEL, Action.COMPENSATE, Action.FORK),
    RunStatus.PAUSED: (Action.RESUME, Action.CANCEL, Action.COMPENSATE, Action.FORK),
    RunStatus.FAILED: (Action.COMPENSATE, Action.FORK),
    RunStatus.CANCELLED: (Action.COMPENSATE, Action.FORK),
    RunStatus.COMPLETED: (Action.FORK,),
    RunStatus.COMPENSATED: (Action.FORK,),
    RunStatus.COMPENSATION_FAILED: (Action.FORK,),
}
_OF_STEP: Final = {
    StepStatus.FAILED: (Action.RETRY, Action.SKIP),
    StepStatus.UNCERTAIN: (Action.RETRY, Action.ACCEPT, Action.SKIP),
}


def legal_actions(run: Run) -> list[Legal]:
    """All actions that are legal now, those on steps first."""
    of_steps = [Legal(action, path) for path, state in run.steps.items() for action in _of_step(run, path, state)]
    return [*of_steps, *(Legal(action) for action in _OF_RUN.get(run.status, ()))]


def is_undo_undecided(run: Run, state: StepState) -> bool:
    """Whether someone must decide on the step's undo: it failed and so did the compensation, or it is uncertain."""
    has_failed = state.status is StepStatus.COMPENSATION_FAILED and run.status is RunStatus.COMPENSATION_FAILED
    return has_failed or state.undo_uncertain


def legal_words(run: Run) -> str:
    """The same in words, as a hint."""
    legal = legal_actions(run)
    if not legal:
        return f"the run is {run.status.value}: no action is possible now"
    words = [f"{one.action.value} {one.step}".strip() for one in legal]
    return f"legal now: {', '.join(words[:12])}"


def _of_step(run: Run, path: str, state: StepState) -> tuple[Action, ...]:
    if is_undo_undecided(run, state):
        return (Action.RETRY, Action.SKIP)
    is_undo = run.status is RunStatus.COMPENSATING and is_in_undo(path)
    if run.status not in RUN_OPEN and not is_undo:
        return ()
    if state.status is StepStatus.WAITING and state.digest:
        return (Action.APPROVE, Action.REJECT)
    return _OF_STEP.get(state.status, ())
