"""Which commands an action on a run stands for, and on which step.

Pure. Control (engine/running/control.py) grants them; a preview (domain/preview/) only decides on them. Answers to
approvals and forks are made elsewhere: they need more than the run."""

from __future__ import annotations

from typing import Final

from handrail.domain.definition.model import Definition
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.journal.event import Mode
from handrail.domain.json import Json
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.run.command import (
    AcceptStep,
    CancelRun,
    Command,
    FinishCompensation,
    PauseRun,
    ResumeRun,
    RetryStep,
    StartCompensation,
)
from handrail.domain.run.legal_controls import Action, legal_actions, legal_words
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.scheduling.compensation import undo_order

ON_RUN: Final = frozenset({Action.PAUSE, Action.RESUME, Action.CANCEL, Action.COMPENSATE})
"""The actions on a run as a whole."""


def only_step(run: Run, action: Action) -> str:
    """The only step that an action can apply to; empty if the action is on the run."""
    steps = [legal.step for legal in legal_actions(run) if legal.action is action]
    if action is Action.SKIP and not steps:  # a person may also go past an approval
        steps = [legal.step for legal in legal_actions(run) if legal.action is Action.APPROVE]
    if steps == [""] or action in ON_RUN:
        return ""
    if len(steps) == 1:
        return steps[0]
    if not steps:
        raise Conflict(f"there is no step of {run.id} to {action.value}", hint=legal_words(run))
    raise Invalid(f"which step to {action.value}? {', '.join(steps)}", hint="name the step")


def command_of(
    run: Run, action: Action, step: str, *, actor: str, reason: str, output: Json = None
) -> PauseRun | ResumeRun | CancelRun | StartCompensation | AcceptStep | RetryStep:
    """The command of an action that is neither an answer, a skip nor a fork."""
    match action:
        case Action.PAUSE:
            return PauseRun(reason=reason, again=_is_taken_over(run, actor))
        case Action.RESUME:
            return ResumeRun(reason=reason)
        case Action.CANCEL:
            return CancelRun(reason=reason)
        case Action.COMPENSATE:
            return StartCompensation(reason=reason)
        case Action.ACCEPT:
            return AcceptStep(step=step, reason=reason, output=output)
        case _:
            is_undo = run.step(step).status is StepStatus.COMPENSATION_FAILED
            return StartCompensation(reason=reason) if is_undo else RetryStep(step=step, reason=reason)


def closing_command(run: Run, definition: Definition) -> Command | None:
    """What follows once no failed undo is left: the compensation goes on, or ends; so does one that the agent performs
    itself."""
    is_own_work = run.mode is Mode.RECORD and run.status is RunStatus.COMPENSATING
    if run.status is not RunStatus.COMPENSATION_FAILED and not is_own_work:
        return None
    rest = undo_order(run, definition)
    if is_own_work and rest:
        return None  # the agent has more to undo
    if any(run.step(path).status is StepStatus.COMPENSATION_FAILED for path in rest):
        return None
    return StartCompensation(reason="no failed undo is left") if rest else FinishCompensation()


def _is_taken_over(run: Run, actor: str) -> bool:
    """Whether a person pauses what an agent has paused: then the agent can't resume it any more."""
    return kind_of(actor) is ActorKind.PERSON and kind_of(run.paused_by) is not ActorKind.PERSON
