"""A run: the fold of its events, and the projection rows of that.

Pure. `apply` never refuses: the fact has happened. What may happen is
decided in decide.py, by the table in status.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, assert_never

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.domain.chain import GENESIS, receipt
from handrail.domain.definition import Category
from handrail.domain.event import (
    ActionRecorded,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalRejected,
    ApprovalRequested,
    AttemptFailed,
    AttemptStarted,
    CompensationStarted,
    DecisionRecorded,
    Entry,
    Mode,
    OutputRefused,
    RetryScheduled,
    RunCancelled,
    RunCompensated,
    RunCompensationFailed,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    StepAccepted,
    StepBecameUncertain,
    StepCancelled,
    StepCompensated,
    StepCompleted,
    StepEvent,
    StepFailed,
    StepHandedOut,
    StepOpened,
    StepRetried,
    StepSkipped,
    UndoFailed,
    UndoStarted,
    VarsSet,
)
from handrail.domain.projection import Change, RunRow, StepRow
from handrail.domain.status import SATISFIED, RunStatus, StepStatus


class StepState(Struct, frozen=True, kw_only=True):
    """Where one step stands."""

    status: StepStatus = StepStatus.PENDING
    attempts: int = 0
    undo_attempts: int = 0
    tries: int = 0
    output: Any = None
    started: int | None = None
    ended: int | None = None
    due: int | None = None
    actor: str = ""
    agent: str = ""
    digest: str = ""
    proof: str = ""
    compensation: str = ""
    category: Category | None = None
    message: str = ""


class Run(Struct, frozen=True, kw_only=True):
    """Where a run stands: the fold of its events, nothing else."""

    id: str
    status: RunStatus = RunStatus.NEW
    definition: str = ""
    workflow: str = ""
    goal: str = ""
    mode: Mode = Mode.RUN
    inputs: Mapping[str, Any] = field(default_factory=dict)
    vars: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, StepState] = field(default_factory=dict)
    deadline: int | None = None
    started: int = 0
    updated: int = 0
    ended: int | None = None
    done: int = 0
    n: int = 0
    head: bytes = GENESIS

    @property
    def receipt(self) -> str:
        """What a caller keeps as proof of the run's present end."""
        return receipt(self.n, self.head)

    def step(self, path: str) -> StepState:
        """A step's state; one that no event has touched is pending."""
        return self.steps.get(path, _PENDING)


_PENDING: Final = StepState()


def replay(entries: Iterable[Entry], start: Run) -> Run:
    """The run after these entries."""
    # One copy of the step table for the whole batch: a fold over n events stays linear in n.
    steps = dict(start.steps)
    run = start
    for entry in entries:
        event = entry.event
        if isinstance(event, StepEvent):
            before = steps.get(event.step, _PENDING)
            after = steps[event.step] = apply_to_step(before, event, entry)
            done = run.done + (after.status in SATISFIED) - (before.status in SATISFIED)
            run = replace(run, done=done, n=entry.n, head=entry.hash, updated=entry.at)
        elif isinstance(event, RunEvent):
            run = replace(apply_to_run(run, event, entry), n=entry.n, head=entry.hash, updated=entry.at)
    return replace(run, steps=steps)


def apply(run: Run, entry: Entry) -> Run:
    """The run after one more entry."""
    return replay([entry], run)


def apply_to_run(run: Run, event: RunEvent, entry: Entry) -> Run:
    """The run after an event that concerns it as a whole."""
    match event:
        case RunStarted():
            return replace(
                run,
                status=RunStatus.RUNNING,
                definition=event.definition,
                workflow=event.workflow,
                inputs=event.inputs,
                goal=event.goal,
                mode=event.mode,
                deadline=event.deadline,
                started=entry.at,
            )
        case RunPaused():
            return replace(run, status=RunStatus.PAUSED)
        case RunResumed():
            return replace(run, status=RunStatus.RUNNING)
        case RunCancelled():
            return replace(run, status=RunStatus.CANCELLED, ended=entry.at)
        case RunCompleted():
            return replace(run, status=RunStatus.COMPLETED, outputs=event.outputs, ended=entry.at)
        case RunFailed():
            return replace(run, status=RunStatus.FAILED, ended=entry.at)
        case CompensationStarted():
            return replace(run, status=RunStatus.COMPENSATING, ended=None)
        case RunCompensated():
            return replace(run, status=RunStatus.COMPENSATED, ended=entry.at)
        case RunCompensationFailed():
            return replace(run, status=RunStatus.COMPENSATION_FAILED)
        case VarsSet():
            return replace(run, vars={**run.vars, **event.vars})
        case DecisionRecorded() | ActionRecorded():
            return run
        case _:
            assert_never(event)


def apply_to_step(state: StepState, event: StepEvent, entry: Entry) -> StepState:
    """A step's state after an event that concerns it."""
    match event:
        case StepOpened() | StepHandedOut() | OutputRefused() | ApprovalRequested():
            return _after_wait(state, event, entry)
        case ApprovalGiven() | ApprovalRejected() | ApprovalExpired():
            return _after_answer(state, event, entry)
        case AttemptStarted() | AttemptFailed() | RetryScheduled() | StepBecameUncertain():
            return _after_attempt(state, event, entry)
        case UndoStarted() | UndoFailed() | StepCompensated():
            return _after_undo(state, event, entry)
        case _:
            return _after_end(state, event, entry)


def _after_wait(
    state: StepState, event: StepOpened | StepHandedOut | OutputRefused | ApprovalRequested, entry: Entry
) -> StepState:
    match event:
        case StepOpened():
            return replace(state, status=StepStatus.RUNNING, started=entry.at, actor=entry.actor)
        case StepHandedOut():
            started = entry.at if state.started is None else state.started
            return replace(state, status=StepStatus.WAITING, agent=event.agent, due=event.until, started=started)
        case OutputRefused():
            return replace(state, tries=state.tries + 1)
        case ApprovalRequested():
            waiting = replace(state, status=StepStatus.WAITING, digest=event.digest, due=event.expires)
            return replace(waiting, started=entry.at)
        case _:
            assert_never(event)


def _after_answer(
    state: StepState, event: ApprovalGiven | ApprovalRejected | ApprovalExpired, entry: Entry
) -> StepState:
    ended = replace(state, actor=entry.actor, ended=entry.at, due=None)
    match event:
        case ApprovalGiven():
            return replace(ended, status=StepStatus.COMPLETED, proof="verified")
        case ApprovalRejected():
            return replace(ended, status=StepStatus.FAILED, category=Category.PERMISSION, message=event.reason)
        case ApprovalExpired():
            return replace(
                ended, status=StepStatus.FAILED, category=Category.TIMEOUT, message="nobody answered in time"
            )
        case _:
            assert_never(event)


def _after_attempt(
    state: StepState, event: AttemptStarted | AttemptFailed | RetryScheduled | StepBecameUncertain, entry: Entry
) -> StepState:
    match event:
        case AttemptStarted():
            started = entry.at if state.started is None else state.started
            running = replace(state, status=StepStatus.RUNNING, attempts=event.attempt, due=None)
            return replace(running, started=started, actor=entry.actor)
        case AttemptFailed():
            return replace(state, category=event.category, message=event.message)
        case RetryScheduled():
            return replace(state, status=StepStatus.WAITING, due=event.due)
        case StepBecameUncertain():
            return replace(state, status=StepStatus.UNCERTAIN)
        case _:
            assert_never(event)


def _after_end(
    state: StepState,
    event: StepCompleted | StepFailed | StepSkipped | StepCancelled | StepRetried | StepAccepted,
    entry: Entry,
) -> StepState:
    ended = replace(state, ended=entry.at, due=None)
    match event:
        case StepCompleted():
            done = replace(ended, status=StepStatus.COMPLETED, output=event.output, proof=event.proof.value)
            return replace(done, actor=entry.actor, category=None, message="")
        case StepFailed():
            return replace(ended, status=StepStatus.FAILED, category=event.category, message=event.message)
        case StepSkipped():
            return replace(ended, status=StepStatus.SKIPPED, actor=entry.actor, message=event.reason)
        case StepCancelled():
            return replace(ended, status=StepStatus.CANCELLED)
        case StepRetried():
            return replace(state, status=StepStatus.READY, ended=None, due=None)
        case StepAccepted():
            done = replace(ended, status=StepStatus.COMPLETED, output=event.output, proof="claimed")
            return replace(done, actor=entry.actor, category=None, message="")
        case _:
            assert_never(event)


def _after_undo(state: StepState, event: UndoStarted | UndoFailed | StepCompensated, entry: Entry) -> StepState:
    match event:
        case UndoStarted():
            return replace(state, status=StepStatus.COMPENSATING, undo_attempts=event.attempt)
        case UndoFailed():
            status = StepStatus.COMPENSATION_FAILED if event.final else state.status
            return replace(state, status=status, category=event.category, message=event.message)
        case StepCompensated():
            done = replace(state, status=StepStatus.COMPENSATED, compensation=event.how.value, ended=entry.at)
            return replace(done, category=None, message="")
        case _:
            assert_never(event)


def project(run: Run, paths: Iterable[str]) -> Change:
    """The projection rows of a run and of those of its steps that are named."""
    row = RunRow(
        id=run.id,
        workflow=run.workflow,
        definition=run.definition,
        mode=run.mode.value,
        status=run.status.value,
        goal=run.goal,
        started=run.started,
        updated=run.updated,
        ended=run.ended,
        done=run.done,
        n=run.n,
        head=run.head,
    )
    return Change(run=row, steps=tuple(_step_row(run, path) for path in paths))


def _step_row(run: Run, path: str) -> StepRow:
    state = run.steps[path]
    return StepRow(
        run=run.id,
        path=path,
        status=state.status.value,
        attempts=state.attempts,
        started=state.started,
        ended=state.ended,
        due=state.due,
        actor=state.actor,
        proof=state.proof,
        compensation=state.compensation,
        category=state.category.value if state.category else "",
        message=state.message,
    )
