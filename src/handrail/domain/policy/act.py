"""Acts: what a command means to the policy, given the run and the step that it is about.

Pure and total: every command is an act; a test holds that for commands that are added later. table.py says who may."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from handrail.domain.definition.model import Definition, Prompt, Skippable, Step
from handrail.domain.journal.event import Mode, Outcome
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.policy.skipping import has_approval, has_gate, is_reserved, skipped_with, who_may_skip
from handrail.domain.run import command as c
from handrail.domain.run.guidance import is_undo
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import Located, container_of, locate


class Act(StrEnum):
    """Everything that somebody can do."""

    START = "start a run"
    FORK = "fork a run"
    PAUSE = "pause a run"
    RESUME = "resume a run"
    RESUME_FOR_PERSON = "resume a run that a person paused"
    CANCEL = "cancel a run"
    COMPENSATE = "undo what a run did"
    SUBMIT = "submit a prompt step, or take it"
    SUBMIT_AFTER_LIMIT = "submit or retry a step whose output was refused too often"
    SKIP = "skip a step"
    SKIP_CHECKS = "skip a step that has a blocking check or needs the user's agreement"
    SKIP_RESERVED = "skip a step that is reserved to a person, or whose tool has changed"
    SKIP_UNSKIPPABLE = "skip a step that must not be skipped"
    OVERRIDE = "skip an approval"
    SKIP_UNDO = "give up an undo that failed"
    RETRY = "retry a step"
    ACCEPT = "accept an uncertain step"
    ACCEPT_CHECKS = "accept an uncertain step that has a blocking check"
    ANSWER = "answer an approval"
    RECORD = "record a decision, an action, values or a compensation"
    SAVE_PLAN = "save a plan"
    RETIRE_PLAN = "retire a plan"
    EXECUTE = "execute a run: attempts, timers, rounds, ends"
    ADOPT = "adopt a run into another project"
    PAUSE_NODE = "pause or resume a node"
    ARCHIVE = "archive ended runs, or bring them back"
    DELETE_ARCHIVED = "delete archived runs"
    NOTIFY = "test, disable or enable a channel, send dead letters again or discard them, change its key"
    OPERATE = "erase a payload, restore a backup, or accept a journal that differs from its checkpoint"


def act_of(run: Run, definition: Definition, command: c.Command) -> Act:
    """What a command on a run is to the policy."""
    kind = type(command)
    return PLAIN[kind] if kind in PLAIN else IN_CONTEXT[kind](run, definition, command)


def act_of_plan(command: c.PlanCommand) -> Act:
    """What a command on a plan is to the policy."""
    return Act.SAVE_PLAN if isinstance(command, c.SavePlan) else Act.RETIRE_PLAN


def _start(_run: Run, _definition: Definition, command: c.StartRun) -> Act:
    return Act.START if command.fork is None else Act.FORK


def _resume(run: Run, _definition: Definition, _command: c.ResumeRun) -> Act:
    return Act.RESUME_FOR_PERSON if kind_of(run.paused_by) is ActorKind.PERSON else Act.RESUME


def _skip(run: Run, definition: Definition, command: c.SkipStep) -> Act:
    if command.is_condition:
        return Act.EXECUTE
    return _skip_of(run, definition, command.step)


def _skip_of(run: Run, definition: Definition, path: str) -> Act:
    step, state = skipped_step(run, definition, path), run.step(path)
    if state.status is StepStatus.COMPENSATION_FAILED or state.undo_uncertain:
        return Act.SKIP_UNDO  # the work itself is done: only its undo is given up
    match who_may_skip(definition, step, state):
        case Skippable.NOBODY:
            return Act.SKIP_UNSKIPPABLE
        case Skippable.AGENT:
            return Act.SKIP
        case Skippable.PERSON if has_approval(definition, step):
            return Act.OVERRIDE
        case _:
            return Act.SKIP_RESERVED if is_reserved(definition, step, state) else Act.SKIP_CHECKS


def skipped_step(run: Run, definition: Definition, path: str) -> Step:
    """The step that skipping this one leaves out: all of an inlined workflow, if it is the first step there."""
    is_whole = bool(skipped_with(run, definition, path))
    return locate(definition, container_of(path) if is_whole else path).step


def _retry(run: Run, _definition: Definition, command: c.RetryStep) -> Act:
    return Act.SUBMIT_AFTER_LIMIT if run.step(command.step).asks else Act.RETRY


def _accept(_run: Run, definition: Definition, command: c.AcceptStep) -> Act:
    step = locate(definition, command.step).step
    return Act.ACCEPT_CHECKS if has_gate(definition, step) else Act.ACCEPT


def _submit(run: Run, definition: Definition, command: Any) -> Act:
    found, state = locate(definition, command.step), run.step(command.step)
    if not _is_for_agent(run, found, command.step):
        return Act.EXECUTE
    return Act.SUBMIT_AFTER_LIMIT if state.asks else Act.SUBMIT


def _fail_undo(run: Run, definition: Definition, command: c.FailUndo) -> Act:
    is_own = run.mode is Mode.RECORD or _is_for_agent(run, locate(definition, command.step), command.step)
    return Act.RECORD if is_own else Act.EXECUTE


def _report(run: Run, definition: Definition, command: c.RecordAction) -> Act:
    """In a recorded run a report moves its step; elsewhere it is a note."""
    if run.mode is not Mode.RECORD or command.step is None:
        return Act.RECORD
    if command.outcome is Outcome.SKIPPED:
        return _skip_of(run, definition, command.step)
    is_done = command.outcome is Outcome.DONE
    return Act.ANSWER if is_done and has_approval(definition, locate(definition, command.step).step) else Act.RECORD


def _engine_or_record(run: Run, _definition: Definition, _command: Any) -> Act:
    return Act.RECORD if run.mode is Mode.RECORD else Act.EXECUTE


def _is_for_agent(run: Run, found: Located, path: str) -> bool:
    """Whether an agent does the step, or undoes it, whichever is under way."""
    return isinstance(found.step.undo if is_undo(run, path) else found.step.work, Prompt)


PLAIN: Final[Mapping[type[c.BaseCommand], Act]] = {
    c.AdoptRun: Act.ADOPT,
    c.PauseRun: Act.PAUSE,
    c.CancelRun: Act.CANCEL,
    c.StartCompensation: Act.COMPENSATE,
    c.GiveApproval: Act.ANSWER,
    c.RejectApproval: Act.ANSWER,
    c.RecordDecision: Act.RECORD,
    c.SetVars: Act.RECORD,
    c.CompensateStep: Act.RECORD,
    c.FinishCompensation: Act.RECORD,  # granted only once nothing is left to undo
    **dict.fromkeys(
        (
            *(c.ExpireRun, c.OpenStep, c.StartRound, c.AskPerson, c.ExpireApproval, c.StartAttempt, c.FailAttempt),
            c.RecordProject,
            *(c.RefuseResult, c.DeferStep, c.LoseAttempt, c.NoteLateAnswer, c.StartUndo, c.LoseUndo),
        ),
        Act.EXECUTE,
    ),
}
"""Commands that mean the same whatever they are about."""
IN_CONTEXT: Final[Mapping[type[c.BaseCommand], Callable[[Run, Definition, Any], Act]]] = {
    c.StartRun: _start,
    c.ResumeRun: _resume,
    c.SkipStep: _skip,
    c.RetryStep: _retry,
    c.AcceptStep: _accept,
    c.HandOutStep: _submit,
    c.RefuseOutput: _submit,
    c.CompleteStep: _submit,
    c.FailStep: _submit,
    c.FailUndo: _fail_undo,
    c.RecordAction: _report,
    c.FinishRun: _engine_or_record,
    c.RequestApproval: _engine_or_record,
}
"""Commands whose meaning depends on the run and the step."""
