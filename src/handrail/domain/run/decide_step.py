"""Decisions about one step of a run: assign, ask, attempt, end, undo.

Pure. Called by decide.py, which has checked that the run has started."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, assert_never

from handrail.domain.definition.model import Approve, Category, Definition
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import (
    ApprovalExpired,
    ApprovalGiven,
    ApprovalOverridden,
    ApprovalRejected,
    ApprovalRequested,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    Event,
    Mode,
    OutputRefused,
    RetryScheduled,
    RoundStarted,
    StepAccepted,
    StepBecameUncertain,
    StepCompensated,
    StepCompleted,
    StepDeferred,
    StepFailed,
    StepHandedOut,
    StepOpened,
    StepRetried,
    StepSkipped,
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    UndoStarted,
)
from handrail.domain.journal.fact import granted
from handrail.domain.plural import plural
from handrail.domain.policy.skipping import has_approval, has_gate, skipped_with
from handrail.domain.run.approval import ASKED_MAX, question_of
from handrail.domain.run.command import (
    AcceptStep,
    AskPerson,
    AttemptCommand,
    CompensateStep,
    CompleteStep,
    DeferStep,
    EndCommand,
    ExpireApproval,
    FailAttempt,
    FailStep,
    FailUndo,
    GiveApproval,
    HandOutStep,
    HolderCommand,
    LoseAttempt,
    LoseUndo,
    OpenStep,
    RefuseOutput,
    RefuseResult,
    RejectApproval,
    RequestApproval,
    RetryStep,
    SkipStep,
    StartAttempt,
    StartRound,
    StartUndo,
    UndoCommand,
    WaitCommand,
)
from handrail.domain.run.guard import assignee, legal_text, require_ready, require_step_move
from handrail.domain.run.state import Run
from handrail.domain.run.status import (
    MOVES,
    RUN_MOVES,
    RUN_OPEN,
    STEP_NOT_STARTED,
    STEP_RETRIABLE,
    RunStatus,
    StepStatus,
)
from handrail.domain.run.step_path import locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.compensation import holding_back

LOST_MAX: Final = 20
"""How many attempts of a step, or of its undo, may be lost in crashes before a person must decide."""


def decide_wait(run: Run, command: WaitCommand, definition: Definition) -> list[Event]:
    """Assign a step or ask a person, and what they answered."""
    state = run.step(command.step)
    match command:
        case HandOutStep(step=step, agent=agent):
            require_step_move(step, state, StepStatus.WAITING)
            _require_not_taken(step, state, agent, at=command.at)
            require_ready(run, step, definition)
            return [granted(StepHandedOut, command)]
        case RefuseOutput(step=step):
            require_step_move(step, state, StepStatus.COMPLETED)
            return _refused(command, tries=state.tries if command.unchecked else state.tries + 1)
        case RequestApproval(step=step):
            require_step_move(step, state, StepStatus.WAITING)
            require_ready(run, step, definition)
            return [_requested(run, command, definition, asked=state.asked + 1)]
        case AskPerson(step=step):
            require_step_move(step, state, StepStatus.WAITING)
            if state.status is not StepStatus.RUNNING:
                require_ready(run, step, definition)
            return [granted(ApprovalRequested, command)]
        case GiveApproval(step=step, digest=digest):
            _require_asked(step, state, digest, at=command.at)
            return [granted(ApprovalGiven, command, missing=_still_missing(step, state, command.who))]
        case RejectApproval(step=step, digest=digest):
            _require_asked(step, state, digest, at=command.at)
            return [granted(ApprovalRejected, command)]
        case ExpireApproval(step=step):
            _require_asked(step, state, state.digest)
            # A tool's question has no time limit; only an approval expires, and it is asked for again.
            return [granted(ApprovalExpired, command, again=state.unanswered + 1 < ASKED_MAX)]
        case _:
            assert_never(command)


def _requested(run: Run, command: RequestApproval, definition: Definition, *, asked: int) -> ApprovalRequested:
    """The request, from the state in which it is recorded: that is what the person sees."""
    step = command.step
    # Not from when the step became ready: a value may have changed since, and the digest must be of what is shown.
    question = question_of(run, definition, step, asked=asked)
    work = locate(definition, step).step.work
    return granted(
        ApprovalRequested,
        command,
        digest=question.digest,
        text=question.text,
        effects=question.effects,
        unshown=question.unshown,
        by=work.by if isinstance(work, Approve) else (),
        approvals=work.approvals if isinstance(work, Approve) else 1,
        not_by=work.not_by if isinstance(work, Approve) else "",
    )


def _still_missing(step: str, state: StepState, who: str) -> int:
    """How many others must approve after this one."""
    asked = state.values if isinstance(state.values, Mapping) else {}
    # Two approvals must come from two people: one who answers twice is still one.
    if who and who in state.approvers:
        raise Conflict(f"{who} has approved step {step!r} already", hint="another person must approve it, too")
    return max(0, int(asked.get("approvals", 1)) - len(state.approvers) - 1)


def _refused(command: RefuseOutput, *, tries: int) -> list[Event]:
    refused = granted(OutputRefused, command)
    # Decided here, by the tries that are recorded: two submissions at the same time are two tries.
    if not 0 < command.tries_max <= tries:
        return [refused]
    message = f"the output was refused {plural(tries, 'time')}"
    return [refused, StepFailed(step=command.step, category=Category.INVALID_INPUT, message=message, asks=True)]


def _require_not_taken(step: str, state: StepState, agent: str, *, at: int) -> None:
    taken_by = assignee(state, at=at)
    if taken_by and taken_by != agent:
        raise Conflict(f"step {step!r} is assigned to {taken_by!r}", hint="take another step, or wait")


def _require_asked(step: str, state: StepState, digest: str, *, at: int = 0) -> None:
    if state.status is not StepStatus.WAITING or not state.digest:
        raise Conflict(f"step {step!r} does not wait for an approval", hint=legal_text(MOVES[state.status]))
    if state.due is not None and at >= state.due:
        hint = "it is asked again with a new digest: look at it again, then answer"
        raise Conflict(f"the time to answer for step {step!r} is over", hint=hint)
    if state.digest != digest:
        message = f"what step {step!r} asks for has changed since you looked: your answer is to {digest}"
        raise Conflict(message, hint=f"look at what is asked now ({state.digest}), then answer that")


def decide_holder(run: Run, command: HolderCommand, definition: Definition) -> list[Event]:
    """Open a step that contains others, start its rounds, and its failure."""
    state = run.step(command.step)
    match command:
        case OpenStep(step=step):
            require_step_move(step, state, StepStatus.RUNNING)
            require_ready(run, step, definition)
            return [granted(StepOpened, command)]
        case StartRound(step=step):
            require_open_holder(step, state)
            return [granted(RoundStarted, command, round=state.round + 1)]
        case FailStep(step=step):
            require_step_move(step, state, StepStatus.FAILED)
            return [granted(StepFailed, command)]
        case _:
            assert_never(command)


def require_open_holder(step: str, state: StepState) -> None:
    """Refuse a round of a loop that is not running."""
    if state.status is not StepStatus.RUNNING:
        raise Conflict(f"step {step!r} is {state.status.value}, not running", hint=legal_text(MOVES[state.status]))


def decide_attempt(run: Run, command: AttemptCommand, definition: Definition) -> list[Event]:
    """Start an attempt of a step, and its result."""
    state = run.step(command.step)
    match command:
        case StartAttempt(step=step):
            require_step_move(step, state, StepStatus.RUNNING)
            require_ready(run, step, definition)
            return [granted(AttemptStarted, command, attempt=state.attempts + 1)]
        case FailAttempt(step=step, due=due):
            require_step_move(step, state, StepStatus.FAILED)
            failed = granted(AttemptFailed, command, attempt=state.attempts)
            if due is None:
                return [failed, granted(StepFailed, command)]
            return [failed, granted(RetryScheduled, command, attempt=state.attempts + 1)]
        case RefuseResult(step=step):
            require_step_move(step, state, StepStatus.FAILED)
            category = Category.TOOL_ERROR
            failed = granted(AttemptFailed, command, attempt=state.attempts, category=category)
            return [granted(OutputRefused, command), failed, granted(StepFailed, command, category=category)]
        case DeferStep(step=step):
            require_step_move(step, state, StepStatus.WAITING)
            return [granted(StepDeferred, command, attempt=state.attempts)]
        case LoseAttempt(step=step):
            require_step_move(step, state, StepStatus.UNCERTAIN)
            # A repeatable attempt is repeated, but not forever: this attempt itself may be what crashes the process.
            if state.repeatable and state.lost < LOST_MAX:
                return [AttemptLost(step=step, attempt=state.attempts)]
            return [StepBecameUncertain(step=step, attempt=state.attempts)]
        case _:
            assert_never(command)


def decide_end(run: Run, command: EndCommand, definition: Definition) -> list[Event]:
    """End a step, or reopen it."""
    state = run.step(command.step)
    match command:
        case CompleteStep(step=step):
            require_step_move(step, state, StepStatus.COMPLETED)
            if state.status is StepStatus.UNCERTAIN:
                raise Conflict(f"step {step!r} is uncertain", hint="accept it, retry it, skip it or compensate")
            return [granted(StepCompleted, command)]
        case SkipStep(step=step):
            require_step_move(step, state, StepStatus.SKIPPED)
            if state.status in STEP_NOT_STARTED:
                require_ready(run, step, definition)
            return _skipped(run, command, definition)
        case RetryStep(step=step, reason=reason):
            return _retried(run, step, reason)
        case AcceptStep(step=step):
            if state.status is not StepStatus.UNCERTAIN:
                raise Conflict(
                    f"step {step!r} is {state.status.value}, not uncertain", hint=legal_text(MOVES[state.status])
                )
            return [granted(StepAccepted, command)]
        case _:
            assert_never(command)


def _skipped(run: Run, command: SkipStep, definition: Definition) -> list[Event]:
    """Skip a step; what is left out with it stays visible."""
    state = run.step(command.step)
    if command.is_condition or state.status is StepStatus.COMPENSATION_FAILED or state.undo_uncertain:
        return [granted(StepSkipped, command)]
    step = locate(definition, command.step).step
    skipped = granted(StepSkipped, command, was_gated=has_gate(definition, step))
    if not has_approval(definition, step):
        rest = skipped_with(run, definition, command.step)
        return [skipped, *(_skipped_too(one, command, definition) for one in rest)]
    return [granted(ApprovalOverridden, command, digest=state.digest), skipped]


def _skipped_too(path: str, command: SkipStep, definition: Definition) -> StepSkipped:
    was_gated = has_gate(definition, locate(definition, path).step)
    return StepSkipped(step=path, reason=f"skipped with {command.step}: {command.reason}", was_gated=was_gated)


def _retried(run: Run, step: str, reason: str) -> list[Event]:
    """Retry a step; if it contains others, with everything that failed inside it."""
    state = run.step(step)
    if state.status not in STEP_RETRIABLE:
        if state.status is StepStatus.COMPLETED:
            raise Conflict(f"step {step!r} is completed: there is nothing to retry", hint="fork the run from this step")
        require_step_move(step, state, StepStatus.READY)
        raise Conflict(
            f"step {step!r} is {state.status.value}: there is nothing to retry",
            hint="wait for it, or do what it waits for",
        )
    if state.undo_uncertain:
        return [StepRetried(step=step, reason=reason)]  # only its undo is called again
    inside = [
        path
        for path, inner in run.steps.items()
        if inner.status is StepStatus.FAILED and path.startswith((f"{step}.", f"{step}["))
    ]
    return [StepRetried(step=path, reason=reason) for path in (step, *inside)]


# --- the undo of a step -----------------------------------------------------------------------------


def decide_undo(run: Run, command: UndoCommand, definition: Definition) -> list[Event]:
    """Undo a step, and the result of that."""
    state = run.step(command.step)
    match command:
        case StartUndo(step=step):
            _require_compensating(run)
            _require_certain(step, state)
            if state.status is not StepStatus.COMPENSATING:
                _require_undoable(step, state, StepStatus.COMPENSATING)
            if later := holding_back(run, definition, step):
                raise Conflict(f"step {step!r} can't be undone before {later!r}", hint=f"undo {later!r} first")
            return [granted(UndoStarted, command, attempt=state.undo_attempts + 1)]
        case FailUndo(step=step, due=due):
            _require_compensating(run)
            require_step_move(step, state, StepStatus.COMPENSATION_FAILED)
            return [granted(UndoFailed, command, attempt=state.undo_attempts, final=due is None)]
        case LoseUndo(step=step):
            _require_compensating(run)
            require_step_move(step, state, StepStatus.COMPENSATION_FAILED)
            return [_undo_lost(step, state)]
        case CompensateStep(step=step):
            _require_recordable(run, step, definition)
            _require_undoable(step, state, StepStatus.COMPENSATED)
            return [granted(StepCompensated, command)]
        case _:
            assert_never(command)


def _require_recordable(run: Run, step: str, definition: Definition) -> None:
    """Refuse to record an undo of what has none: then what was approved could be changed behind the approval's back."""
    if has_approval(definition, locate(definition, step).step):
        raise Conflict(f"step {step!r} is an approval, or contains one: there is nothing to undo", hint="leave it so")
    if run.mode is Mode.RUN and run.status in RUN_OPEN and run.step(step).status is StepStatus.COMPLETED:
        raise Conflict(
            f"run {run.id} is not being undone: step {step!r} counts as done, and others build on it",
            hint="cancel or compensate the run first",
        )


def _require_undoable(step: str, state: StepState, target: StepStatus) -> None:
    """Refuse the undo of a step that had no effect."""
    if state.status is StepStatus.FAILED and not state.refused:
        raise Conflict(f"step {step!r} failed: there is nothing to undo", hint="retry it, or skip it")
    require_step_move(step, state, target)


def _require_compensating(run: Run) -> None:
    if run.status is not RunStatus.COMPENSATING:
        raise Conflict(f"run {run.id} is {run.status.value}, not compensating", hint=legal_text(RUN_MOVES[run.status]))


def _require_certain(step: str, state: StepState) -> None:
    """Refuse to repeat an undo before someone has decided, if it is unknown whether it happened."""
    if state.undo_uncertain:
        hint = "retry it, skip it, or record that it is undone"
        raise Conflict(f"whether step {step!r} is undone is unknown: someone must decide", hint=hint)


def _undo_lost(step: str, state: StepState) -> Event:
    """A lost undo is repeated unless it opted out, but not forever: it may itself be what crashes the process."""
    if state.repeatable and state.undo_lost < LOST_MAX:
        return UndoLost(step=step, attempt=state.undo_attempts)
    return UndoBecameUncertain(step=step, attempt=state.undo_attempts)
