"""The decision about one step of a run: handing out, asking, trying, ending, undoing.

Pure. Called by decide.py, which has made sure that the run has started."""

from __future__ import annotations

from typing import assert_never

from handrail.domain.command import (
    AcceptStep,
    AttemptCommand,
    CompensateStep,
    CompleteStep,
    EndCommand,
    ExpireApproval,
    FailAttempt,
    FailUndo,
    GiveApproval,
    HandOutStep,
    LoseAttempt,
    OpenStep,
    RefuseOutput,
    RejectApproval,
    RequestApproval,
    RetryStep,
    SkipStep,
    StartAttempt,
    StartUndo,
    UndoCommand,
    WaitCommand,
)
from handrail.domain.compensation import undo_order
from handrail.domain.definition import Definition
from handrail.domain.errors import Conflict
from handrail.domain.event import (
    ApprovalExpired,
    ApprovalGiven,
    ApprovalRejected,
    ApprovalRequested,
    AttemptFailed,
    AttemptStarted,
    Event,
    OutputRefused,
    RetryScheduled,
    StepAccepted,
    StepBecameUncertain,
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepHandedOut,
    StepOpened,
    StepRetried,
    StepSkipped,
    UndoFailed,
    UndoStarted,
)
from handrail.domain.guard import legal_text, require_ready, require_step_move
from handrail.domain.path import locate
from handrail.domain.run import Run, StepState
from handrail.domain.status import MOVES, RUN_MOVES, RunStatus, StepStatus


def decide_wait(run: Run, command: WaitCommand, definition: Definition) -> list[Event]:
    """Hand a step out, or ask a person; and what they answered."""
    state = run.step(command.step)
    match command:
        case HandOutStep(step=step, agent=agent, until=until):
            require_step_move(step, state, StepStatus.WAITING)
            require_ready(run, step, definition)
            return [StepHandedOut(step=step, agent=agent, until=until)]
        case RefuseOutput(step=step, findings=findings):
            require_step_move(step, state, StepStatus.COMPLETED)
            return [OutputRefused(step=step, findings=findings)]
        case RequestApproval(step=step):
            require_step_move(step, state, StepStatus.WAITING)
            require_ready(run, step, definition)
            asked = ApprovalRequested(
                step=step, digest=command.digest, text=command.text, by=command.by, expires=command.expires
            )
            return [asked]
        case GiveApproval(step=step, digest=digest, reason=reason):
            _require_asked(step, state, digest)
            return [ApprovalGiven(step=step, digest=digest, reason=reason)]
        case RejectApproval(step=step, digest=digest, reason=reason):
            _require_asked(step, state, digest)
            return [ApprovalRejected(step=step, digest=digest, reason=reason)]
        case ExpireApproval(step=step):
            _require_asked(step, state, state.digest)
            return [ApprovalExpired(step=step)]
        case _:
            assert_never(command)


def _require_asked(step: str, state: StepState, digest: str) -> None:
    if state.status is not StepStatus.WAITING or not state.digest:
        raise Conflict(f"step {step!r} does not wait for an approval", hint=legal_text(MOVES[state.status]))
    if state.digest != digest:
        raise Conflict(f"what step {step!r} asks for has changed since you looked", hint="read it again, then answer")


def decide_attempt(run: Run, command: AttemptCommand, definition: Definition) -> list[Event]:
    """Try a step, and what came of the try."""
    state = run.step(command.step)
    match command:
        case OpenStep(step=step, rounds=rounds):
            require_step_move(step, state, StepStatus.RUNNING)
            require_ready(run, step, definition)
            return [StepOpened(step=step, rounds=rounds)]
        case StartAttempt(step=step):
            require_step_move(step, state, StepStatus.RUNNING)
            require_ready(run, step, definition)
            return [AttemptStarted(step=step, attempt=state.attempts + 1)]
        case FailAttempt(step=step, category=category, message=message, due=due):
            require_step_move(step, state, StepStatus.FAILED)
            failed = AttemptFailed(step=step, attempt=state.attempts, category=category, message=message)
            if due is None:
                return [failed, StepFailed(step=step, category=category, message=message)]
            return [failed, RetryScheduled(step=step, attempt=state.attempts + 1, due=due)]
        case LoseAttempt(step=step):
            require_step_move(step, state, StepStatus.UNCERTAIN)
            return [StepBecameUncertain(step=step, attempt=state.attempts)]
        case _:
            assert_never(command)


def decide_end(run: Run, command: EndCommand, definition: Definition) -> list[Event]:
    """End a step, or take an end back."""
    state = run.step(command.step)
    match command:
        case CompleteStep(step=step):
            require_step_move(step, state, StepStatus.COMPLETED)
            if state.status is StepStatus.UNCERTAIN:
                raise Conflict(f"step {step!r} is uncertain", hint="accept it, retry it, skip it or compensate")
            done = StepCompleted(step=step, output=command.output, proof=command.proof, checks=command.checks)
            return [done]
        case SkipStep(step=step, reason=reason):
            require_step_move(step, state, StepStatus.SKIPPED)
            if state.status is StepStatus.PENDING:
                require_ready(run, step, definition)
            return [StepSkipped(step=step, reason=reason)]
        case RetryStep(step=step, reason=reason):
            require_step_move(step, state, StepStatus.READY)
            return [StepRetried(step=step, reason=reason)]
        case AcceptStep(step=step, reason=reason, output=output):
            if state.status is not StepStatus.UNCERTAIN:
                raise Conflict(
                    f"step {step!r} is {state.status.value}, not uncertain", hint=legal_text(MOVES[state.status])
                )
            return [StepAccepted(step=step, reason=reason, output=output)]
        case _:
            assert_never(command)


# --- the undo of a step -----------------------------------------------------------------------------


def decide_undo(run: Run, command: UndoCommand, definition: Definition) -> list[Event]:
    """Undo a step, and what came of that."""
    state = run.step(command.step)
    match command:
        case StartUndo(step=step):
            _require_compensating(run)
            if state.status is not StepStatus.COMPENSATING:
                require_step_move(step, state, StepStatus.COMPENSATING)
            _require_undo_turn(run, step, definition)
            return [UndoStarted(step=step, attempt=state.undo_attempts + 1)]
        case FailUndo(step=step, category=category, message=message, final=final):
            _require_compensating(run)
            require_step_move(step, state, StepStatus.COMPENSATION_FAILED)
            attempt = state.undo_attempts
            return [UndoFailed(step=step, attempt=attempt, category=category, message=message, final=final)]
        case CompensateStep(step=step):
            require_step_move(step, state, StepStatus.COMPENSATED)
            done = StepCompensated(step=step, how=command.how, description=command.description, details=command.details)
            return [done]
        case _:
            assert_never(command)


def _require_compensating(run: Run) -> None:
    if run.status is not RunStatus.COMPENSATING:
        raise Conflict(f"run {run.id} is {run.status.value}, not compensating", hint=legal_text(RUN_MOVES[run.status]))


def _require_undo_turn(run: Run, step: str, definition: Definition) -> None:
    """A step is undone only after every step that was built on it."""
    later = [path for path in undo_order(run, definition) if path != step and _depends(definition, path, step)]
    if later:
        named = ", ".join(later)
        raise Conflict(f"step {step!r} can't be undone before {named}", hint=f"undo {named} first")


def _depends(definition: Definition, path: str, on: str) -> bool:
    seen: set[str] = set()
    waiting = [path]
    while waiting:
        found = locate(definition, waiting.pop())
        fresh = {found.prefix + name for name in found.step.after} - seen
        if on in fresh:
            return True
        seen |= fresh
        waiting.extend(fresh)
    return False
