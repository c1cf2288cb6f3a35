"""The decision: a run and a command in, events out.

Pure. A command that is not legal in the run's state raises Conflict, which says what is. Moves of single steps are
decided in decide_step.py."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from handrail.domain.definition.model import Call, Category, Definition, Each, OnFailure, Repeat
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import (
    About,
    ActionRecorded,
    AnswerCameLate,
    AttemptStarted,
    CompensationStarted,
    DecisionRecorded,
    Event,
    Mode,
    Outcome,
    ProjectRecorded,
    Proof,
    RunAdopted,
    RunCancelled,
    RunCompensated,
    RunCompensationFailed,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    StepBecameUncertain,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepRetried,
    VarsSet,
)
from handrail.domain.journal.fact import granted
from handrail.domain.policy.skipping import has_approval
from handrail.domain.run.approval import withdrawals
from handrail.domain.run.baseline import Baseline
from handrail.domain.run.command import (
    AdoptRun,
    AttemptCommand,
    CancelRun,
    Command,
    ExpireRun,
    FinishCompensation,
    FinishRun,
    HolderCommand,
    NoteLateAnswer,
    PauseRun,
    RecordAction,
    RecordDecision,
    RecordProject,
    ResumeRun,
    RetryStep,
    RunCommand,
    SetVars,
    SkipStep,
    StartAttempt,
    StartCompensation,
    StartRun,
    UndoCommand,
    WaitCommand,
)
from handrail.domain.run.decide_step import decide_attempt, decide_end, decide_holder, decide_undo, decide_wait
from handrail.domain.run.guard import require_open, require_quiet, require_ready, require_run_move, require_step_move
from handrail.domain.run.state import Run
from handrail.domain.run.status import (
    RUN_ENDED,
    STEP_BETWEEN_ATTEMPTS,
    STEP_NOT_STARTED,
    STEP_SATISFIED,
    STEP_UNDER_WAY,
    RunStatus,
    StepStatus,
)
from handrail.domain.run.step_path import is_in_undo, locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.compensation import (
    EFFECT_UNKNOWN,
    has_undo,
    holding_back,
    lasting_effect,
    not_compensated,
    not_undone,
    undo_order,
)

DEADLINE: Final = "the deadline has passed"


def decide(run: Run, command: Command, definition: Definition) -> list[Event]:
    """The events that the command causes; Conflict if the run's state does not allow it."""
    events = _decided(run, command, definition)
    return [*events, *withdrawals(run, events, definition)] if run.approvals else events


def _decided(run: Run, command: Command, definition: Definition) -> list[Event]:
    if isinstance(command, StartRun):
        return _start(run, command)
    if run.status is RunStatus.NEW:
        raise Conflict(f"run {run.id} has not started", hint="start it first")
    if isinstance(command, AttemptCommand):  # checked first: nearly all commands are of this kind
        require_open(run, command.step)
        return decide_attempt(run, command, definition)
    if isinstance(command, RunCommand):
        return _decide_run(run, command, definition)
    if isinstance(command, UndoCommand):
        return decide_undo(run, command, definition)
    if isinstance(command, NoteLateAnswer):
        locate(definition, command.step)  # NotFound if there is no such step
        return [granted(AnswerCameLate, command)]
    if not _decides_on_undo(run.step(command.step), command):
        require_open(run, command.step)
    if isinstance(command, WaitCommand):
        return decide_wait(run, command, definition)
    if isinstance(command, HolderCommand):
        return decide_holder(run, command, definition)
    return decide_end(run, command, definition)


def _decides_on_undo(state: StepState, command: Command) -> bool:
    """Whether a command decides on an undo that failed or is uncertain; its run is not open, but being undone."""
    if isinstance(command, SkipStep):
        return state.status is StepStatus.COMPENSATION_FAILED or state.undo_uncertain
    return isinstance(command, RetryStep) and state.undo_uncertain


def _start(run: Run, command: StartRun) -> list[Event]:
    require_run_move(run, RunStatus.RUNNING)
    values = [granted(VarsSet, command)] if command.vars else []
    baseline = [_project("", command.baseline)] if command.baseline is not None else []
    return [granted(RunStarted, command), *baseline, *values, *command.carried]


def _record_project(run: Run, command: RecordProject, definition: Definition) -> list[Event]:
    """The state when the step was first given out; only that it was so, if nothing has changed since the start."""
    locate(definition, command.step)
    if command.step in run.baselines:
        return []
    is_same = command.baseline.is_as(run.baselines.get(""))
    return [_project(command.step, Baseline() if is_same else command.baseline)]


def _project(step: str, baseline: Baseline) -> ProjectRecorded:
    return ProjectRecorded(
        step=step,
        commit=baseline.commit,
        branch=baseline.branch,
        tree=baseline.tree,
        dirty=baseline.dirty,
        more=baseline.more,
        missing=baseline.missing,
    )


def _decide_run(run: Run, command: RunCommand, definition: Definition) -> list[Event]:
    match command:
        case StartRun():
            return _start(run, command)
        case RecordProject():
            return _record_project(run, command, definition)
        case AdoptRun():
            return [granted(RunAdopted, command)] if command.project != run.project else []
        case PauseRun():
            return _pause(run, command)
        case ResumeRun():
            require_run_move(run, RunStatus.RUNNING)
            return [granted(RunResumed, command)]
        case CancelRun():
            return _cancel(run, command, definition)
        case ExpireRun():
            return _expire(run, definition)
        case FinishRun():
            return _finish(run, command, definition)
        case StartCompensation(reason=reason):
            return _start_compensation(run, reason, definition)
        case FinishCompensation():
            return _finish_compensation(run, definition)
        case SetVars() | RecordDecision() | RecordAction():
            return _record(run, command, definition)
        case _:
            assert_never(command)


def _pause(run: Run, command: PauseRun) -> list[Event]:
    if not (command.again and run.status is RunStatus.PAUSED):
        require_run_move(run, RunStatus.PAUSED)
    return [granted(RunPaused, command)]


def _cancel(run: Run, command: CancelRun, definition: Definition) -> list[Event]:
    if run.status is RunStatus.CANCELLED:
        return []  # cancelling twice is allowed and changes nothing
    require_run_move(run, RunStatus.CANCELLED)
    return [*_stopped(run, definition), granted(RunCancelled, command)]


def _stopped(run: Run, definition: Definition) -> list[Event]:
    """What happens to the steps in progress when the run is stopped."""
    stopped: list[Event] = []
    for path, state in run.steps.items():
        if _is_open(state) and may_have_effect(run, definition, path):
            stopped.append(StepBecameUncertain(step=path, attempt=state.attempts))
        elif state.status in STEP_UNDER_WAY:
            stopped.append(StepCancelled(step=path))
    return stopped


def _is_open(state: StepState) -> bool:
    """Whether an attempt was cut short or lost, or failed and may have changed something."""
    if state.status is StepStatus.RUNNING:
        return True
    # A tool that asks a person was called already: what it did before it asked is unknown.
    has_asked = state.about is About.QUESTION or (state.attempts > 0 and bool(state.answers))
    has_started = state.lost > 0 or state.deferred > 0 or has_asked
    is_unknown = has_started or (state.failures > 0 and state.category in EFFECT_UNKNOWN)
    return state.status in STEP_BETWEEN_ATTEMPTS and is_unknown


def may_have_effect(run: Run, definition: Definition, path: str) -> bool:
    """Whether an attempt that was cut short may have had an effect: yes, unless it is known to have none."""
    found, state = locate(definition, path), run.step(path)
    if isinstance(found.step.work, Call | Each | Repeat):
        return False  # the effects belong to the steps inside
    return lasting_effect(found, state) or (state.effect is None and found.step.effect is None)


def _expire(run: Run, definition: Definition) -> list[Event]:
    require_run_move(run, RunStatus.FAILED)
    if definition.on_failure is OnFailure.COMPENSATE:
        return _start_compensation(run, DEADLINE, definition)
    return [*_stopped(run, definition), RunFailed(step="", message=DEADLINE)]


def _finish(run: Run, command: FinishRun, definition: Definition) -> list[Event]:
    states = {step.id: run.step(step.id) for step in definition.steps}
    failed = next((path for path, state in run.steps.items() if state.status is StepStatus.FAILED), None)
    if failed is not None:
        require_run_move(run, RunStatus.FAILED)
        require_quiet(run, definition)
        return [*_stopped(run, definition), RunFailed(step=failed, message=run.step(failed).message)]
    require_run_move(run, RunStatus.COMPLETED)
    rest = [path for path, state in states.items() if state.status not in STEP_SATISFIED]
    if rest:
        raise Conflict(f"run {run.id} is not done: {', '.join(rest)}", hint="finish these steps first")
    return [RunFailed(step="", message=command.flaw) if command.flaw else RunCompleted(outputs=command.outputs)]


def _start_compensation(run: Run, reason: str, definition: Definition) -> list[Event]:
    require_run_move(run, RunStatus.COMPENSATING)
    stopped = _stopped(run, definition)
    lost = [event.step for event in stopped if isinstance(event, StepBecameUncertain)]
    order = [
        *(path for path in reversed(lost) if _would_be_undone(run, definition, path)),
        *undo_order(run, definition),
    ]
    return [*stopped, CompensationStarted(reason=reason, steps=tuple(order)), *_undone_again(run, reason)]


def _undone_again(run: Run, reason: str) -> list[Event]:
    """Steps that failed inside a workflow that undoes a step are retried together with it."""
    return [
        StepRetried(step=path, reason=reason)
        for path, state in run.steps.items()
        if state.status is StepStatus.FAILED and is_in_undo(path)
    ]


def _would_be_undone(run: Run, definition: Definition, path: str) -> bool:
    return has_undo(locate(definition, path), run.step(path))


def _finish_compensation(run: Run, definition: Definition) -> list[Event]:
    rest = undo_order(run, definition)
    broken = tuple(path for path in rest if run.step(path).status is StepStatus.COMPENSATION_FAILED)
    # A step that must wait for a failed undo stays as it is: undoing it now would break the order.
    left = [path for path in rest if path not in broken and not (broken and holding_back(run, definition, path))]
    if left:
        raise Conflict(f"run {run.id} still has to undo {', '.join(left)}", hint="undo these steps first")
    require_run_move(run, RunStatus.COMPENSATION_FAILED if broken else RunStatus.COMPENSATED)
    if broken:
        others = tuple(path for path in not_undone(run, definition) if path not in broken)
        return [RunCompensationFailed(steps=broken, not_compensated=others)]
    return [RunCompensated(not_compensated=tuple(not_compensated(run, definition)))]


def _record(run: Run, command: SetVars | RecordDecision | RecordAction, definition: Definition) -> list[Event]:
    if isinstance(command, SetVars):
        require_open(run)
        return [granted(VarsSet, command)]
    if command.step is not None:
        locate(definition, command.step)
    if isinstance(command, RecordDecision):
        return [granted(DecisionRecorded, command)]
    return [granted(ActionRecorded, command), *_moved_by_report(run, command, definition)]


def comes_late(run: Run) -> bool:
    """Whether a report on a step is only a note, because the run is over: facts may come late, and move nothing."""
    return run.status in RUN_ENDED


def _moved_by_report(run: Run, action: RecordAction, definition: Definition) -> Sequence[Event]:
    """In a recorded run the agent's report moves a step; in any other run it is only a note."""
    if run.mode is not Mode.RECORD or action.step is None or action.outcome is None:
        return ()
    if comes_late(run):
        return ()
    if has_approval(definition, locate(definition, action.step).step):
        skipping = action.outcome is Outcome.SKIPPED
        raise Conflict(
            f"step {action.step!r} is an approval, or contains one: a person's answer completes it, not a report",
            hint=f"ask the user to run `handrail {'run skip' if skipping else 'approve'} {run.id} {action.step}`",
        )
    if action.outcome is Outcome.SKIPPED:
        return _decided(run, SkipStep(step=action.step, reason=action.description), definition)
    require_open(run)
    state = run.step(action.step)
    if state.status in STEP_SATISFIED and action.outcome is not Outcome.STARTED:
        raise Conflict(
            f"step {action.step!r} is {state.status.value}, by an earlier report",
            hint="to add a note to it, leave out `outcome`",
        )
    started: list[Event] = []
    if state.status is StepStatus.FAILED:  # a report on a failed step means that the agent tried again
        require_ready(run, action.step, definition)
        started = [
            StepRetried(step=action.step, reason=action.description),
            AttemptStarted(step=action.step, attempt=state.attempts + 1),
        ]
    elif state.status in STEP_NOT_STARTED:
        started = _decided(run, StartAttempt(step=action.step), definition)
    return [*started, *_reported_end(action.step, action, state if not started else None)]


def _reported_end(step: str, action: RecordAction, state: StepState | None) -> Sequence[Event]:
    """The end that a report gives a step; `state` is the step's state, unless this report also started it."""
    if action.outcome is Outcome.DONE:
        if state is not None:
            require_step_move(step, state, StepStatus.COMPLETED)
        return [StepCompleted(step=step, output=action.output, proof=Proof.CLAIMED)]
    if action.outcome is Outcome.FAILED:
        if state is not None:
            require_step_move(step, state, StepStatus.FAILED)
        return [StepFailed(step=step, category=Category.TOOL_ERROR, message=action.description)]
    return ()
