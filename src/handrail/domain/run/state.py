"""A run: replays its events into its state, and derives its projection rows.

Pure. `apply` never refuses an event: it has already happened. decide.py decides what may happen, by the table in
status.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, assert_never, cast

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal.chain import GENESIS, receipt
from handrail.domain.journal.event import (
    About,
    ActionRecorded,
    AnswerCameLate,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalRejected,
    ApprovalRequested,
    AttemptEvent,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    CompensationStarted,
    DecisionRecorded,
    EndEvent,
    Entry,
    Fork,
    HolderEvent,
    Mode,
    OutputRefused,
    RetryScheduled,
    RoundStarted,
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
    StepCarried,
    StepCompensated,
    StepCompleted,
    StepDeferred,
    StepEvent,
    StepFailed,
    StepHandedOut,
    StepOpened,
    StepRetried,
    StepSkipped,
    UndoEvent,
    UndoFailed,
    UndoStarted,
    VarsSet,
    WaitEvent,
    step_of,
)
from handrail.domain.journal.projection import Change, RunRow, StepRow
from handrail.domain.run.status import STEP_SATISFIED, RunStatus, StepStatus
from handrail.domain.run.tool_question import PersonReply
from handrail.domain.run.versioned_table import VersionedTable


class StepState(Struct, frozen=True, kw_only=True):
    """The state of one step."""

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
    about: About | None = None
    """What a person is asked during it; None if the step itself is the question."""
    proof: str = ""
    checks: tuple[str, ...] = ()
    """The checks that handrail ran on its output and that passed."""
    compensation: str = ""
    category: Category | None = None
    message: str = ""
    asks: bool = False
    """Whether a person must decide on its failure, regardless of the policy."""
    refused: bool = False
    """Whether its tool did its work but the result failed the checks: it may have to be undone."""
    effect: Effect | None = None
    """The greatest effect its last attempt can have had, as the tool declared then; None if not declared."""
    repeatable: bool = False
    """Whether a lost attempt, of the step or of its undo, may be repeated under the same key."""
    capture: Any = None
    """What the tool captured before the first attempt, for its own undo."""
    failures: int = 0
    """How many attempts failed since the last manual retry; for the undo: since it was last requested."""
    lost: int = 0
    deferred: int = 0
    round: int = -1
    """The last round of a repeat that has started."""
    rounds: int | None = None
    granted: int = 0
    """How many rounds had started at the last manual retry."""
    values: Any = None
    """The values for the steps inside: the items of a loop, or the inputs of an inlined workflow; or what a person was
    asked."""
    answers: Mapping[str, PersonReply] | None = None
    """What people replied during the step, by the digest of what they were asked."""
    undo_values: Any = None
    """The inputs of the workflow that undoes it."""
    broke: int = 0
    """The event at which its undo last failed permanently."""


class Run(Struct, frozen=True, kw_only=True):
    """The state of a run: the result of replaying its events, nothing else."""

    id: str
    status: RunStatus = RunStatus.NEW
    definition: str = ""
    workflow: str = ""
    goal: str = ""
    mode: Mode = Mode.RUN
    inputs: Mapping[str, Any] = field(default_factory=dict)
    vars: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, Any] = field(default_factory=dict)
    steps: Mapping[str, StepState] = field(default_factory=VersionedTable)
    deadline: int | None = None
    priority: int = 0
    fork: Fork | None = None
    key: str = ""
    asked: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)
    """By tool: the content hash of its server's description of it."""
    reason: str = ""
    """Why it is paused, was cancelled, failed, or is being undone."""
    turned: int = 0
    """The event at which it last started to undo."""
    started: int = 0
    updated: int = 0
    ended: int | None = None
    done: int = 0
    n: int = 0
    head: bytes = GENESIS

    @property
    def receipt(self) -> str:
        """What a caller keeps as proof of the run's current last event."""
        return receipt(self.n, self.head)

    def step(self, path: str) -> StepState:
        """A step's state; a step without events is pending."""
        return self.steps.get(path, _PENDING)


_PENDING: Final = StepState()

# Replay writes this text into rows: another wording would make the rows of existing stores differ from a replay.
EXPIRED: Final = "nobody answered in time"


def replay(entries: Iterable[Entry], start: Run) -> Run:
    """The run after these entries."""
    # Collected first and applied once per batch: copying the run for every event would be slow.
    changed: dict[str, StepState] = {}
    run, done, last = start, start.done, None
    for last in entries:
        event = last.event
        path = step_of(event)
        if path is not None:
            before: StepState = changed.get(path) or start.steps.get(path, _PENDING)
            after = changed[path] = apply_to_step(before, cast("StepEvent", event), last)
            done += (after.status in STEP_SATISFIED) - (before.status in STEP_SATISFIED)
        elif isinstance(event, RunEvent):
            run = apply_to_run(run, event, last)
    if last is None:
        return start
    steps = start.steps if isinstance(start.steps, VersionedTable) else VersionedTable(start.steps)
    return replace(run, steps=steps.with_rows(changed), done=done, n=last.n, head=last.hash, updated=last.at)


def apply(run: Run, entry: Entry) -> Run:
    """The run after one more entry."""
    return replay([entry], run)


def apply_to_run(run: Run, event: RunEvent, entry: Entry) -> Run:
    """The run after an event about the run as a whole."""
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
                priority=event.priority,
                fork=event.fork,
                key=event.key,
                asked=event.asked,
                pins=event.pins,
                started=entry.at,
            )
        case RunPaused():
            return replace(run, status=RunStatus.PAUSED, reason=event.reason)
        case RunResumed():
            return replace(run, status=RunStatus.RUNNING, reason="")
        case RunCancelled():
            return replace(run, status=RunStatus.CANCELLED, ended=entry.at, reason=event.reason)
        case RunCompleted():
            return replace(run, status=RunStatus.COMPLETED, outputs=event.outputs, ended=entry.at)
        case RunFailed():
            return replace(run, status=RunStatus.FAILED, ended=entry.at, reason=event.message)
        case CompensationStarted():
            return replace(run, status=RunStatus.COMPENSATING, ended=None, reason=event.reason, turned=entry.n)
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
    """A step's state after an event about it."""
    if isinstance(event, AttemptEvent):
        return _after_attempt(state, event, entry)
    if isinstance(event, EndEvent):
        return _after_end(state, event, entry)
    if isinstance(event, HolderEvent):
        return _after_opening(state, event, entry)
    if isinstance(event, UndoEvent):
        return _after_undo(state, event, entry)
    return _after_wait(state, event, entry)


def _after_opening(state: StepState, event: HolderEvent, entry: Entry) -> StepState:
    match event:
        case StepOpened():
            opened = replace(state, status=StepStatus.RUNNING, actor=entry.actor)
            started = entry.at if state.started is None else state.started
            return replace(opened, rounds=event.rounds, values=event.values, started=started)
        case RoundStarted():
            return replace(state, round=event.round, due=event.due)
        case _:
            assert_never(event)


def _after_wait(state: StepState, event: WaitEvent, entry: Entry) -> StepState:
    match event:
        case StepHandedOut():
            started = entry.at if state.started is None else state.started
            return replace(state, status=StepStatus.WAITING, agent=event.agent, due=event.until, started=started)
        case OutputRefused(output=None):
            return replace(state, tries=state.tries + 1)
        case OutputRefused():
            return replace(state, output=event.output, refused=True)
        case ApprovalRequested():
            return _after_request(state, event, entry)
        case _ if state.about is not None:
            return _after_reply(state, event, entry)
        case _:
            return _after_answer(state, event, entry)


def _after_request(state: StepState, event: ApprovalRequested, entry: Entry) -> StepState:
    waiting = replace(state, status=StepStatus.WAITING, digest=event.digest, due=event.expires, about=event.about)
    asked = {"text": event.text, "by": list(event.by)}
    if event.about is None:
        return replace(waiting, started=entry.at, effect=Effect.NONE, values=asked)
    form = {"schema": event.schema} if event.schema is not None else {}
    return replace(waiting, started=entry.at if state.started is None else state.started, values={**asked, **form})


def _after_reply(
    state: StepState, event: ApprovalGiven | ApprovalRejected | ApprovalExpired, entry: Entry
) -> StepState:
    """A tool step continues with a person's answer, unless the person rejected the tool itself."""
    if state.about is About.TOOL and not isinstance(event, ApprovalGiven):
        return replace(_after_answer(state, event, entry), about=None, digest="", values=None)
    content = event.content if isinstance(event, ApprovalGiven) else None
    reply = PersonReply(agreed=isinstance(event, ApprovalGiven), content=content)
    answers = {**(state.answers or {}), state.digest: reply}
    again = replace(state, status=StepStatus.READY, due=None, digest="", about=None, values=None)
    return replace(again, answers=answers)


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
            return replace(ended, status=StepStatus.FAILED, category=Category.TIMEOUT, message=EXPIRED)
        case _:
            assert_never(event)


def _after_attempt(state: StepState, event: AttemptEvent, entry: Entry) -> StepState:
    match event:
        case AttemptStarted():
            return _after_attempt_started(state, event, entry)
        case AttemptFailed():
            return replace(state, category=event.category, message=event.message, failures=state.failures + 1)
        case AttemptLost():
            return replace(state, status=StepStatus.READY, lost=state.lost + 1)
        case RetryScheduled():
            return replace(state, status=StepStatus.WAITING, due=event.due)
        case StepDeferred():
            return replace(state, status=StepStatus.WAITING, due=event.due, deferred=state.deferred + 1)
        case StepBecameUncertain():
            return replace(state, status=StepStatus.UNCERTAIN)
        case AnswerCameLate():
            return state
        case _:
            assert_never(event)


def _after_attempt_started(state: StepState, event: AttemptStarted, entry: Entry) -> StepState:
    return replace(
        state,
        status=StepStatus.RUNNING,
        attempts=event.attempt,
        due=None,
        started=entry.at if state.started is None else state.started,
        actor=entry.actor,
        effect=event.effect,
        refused=False,
        repeatable=event.idempotent or event.effect is Effect.NONE,
        # Keep the first capture: it is the state before the step; a later attempt may see changes of the first.
        capture=event.capture if state.capture is None else state.capture,
    )


def _after_end(state: StepState, event: EndEvent, entry: Entry) -> StepState:
    ended = replace(state, ended=entry.at, due=None)
    match event:
        case StepCompleted():
            done = replace(ended, status=StepStatus.COMPLETED, output=event.output, proof=event.proof.value)
            return replace(done, actor=entry.actor, category=None, message="", checks=event.checks)
        case StepFailed():
            failed = replace(ended, status=StepStatus.FAILED, category=event.category, message=event.message)
            return replace(failed, asks=event.asks)
        case StepSkipped():
            return replace(ended, status=StepStatus.SKIPPED, actor=entry.actor, message=event.reason)
        case StepCancelled():
            return replace(ended, status=StepStatus.CANCELLED)
        case StepRetried():
            again = replace(state, status=StepStatus.READY, ended=None, due=None, failures=0, lost=0, asks=False)
            return replace(again, tries=0, digest="", about=None, granted=state.round + 1)
        case StepAccepted():
            done = replace(ended, status=StepStatus.COMPLETED, output=event.output, proof="claimed")
            return replace(done, actor=entry.actor, category=None, message="")
        case StepCarried():
            status = StepStatus.SKIPPED if event.is_skipped else StepStatus.COMPLETED
            done = replace(ended, status=status, output=event.output, effect=Effect.NONE)
            return replace(done, actor=entry.actor, started=entry.at, proof="verified")
        case _:
            assert_never(event)


def _after_undo(state: StepState, event: UndoEvent, entry: Entry) -> StepState:
    match event:
        case UndoStarted():
            # A first attempt, or one after a permanent failure, counts its failures from zero.
            failures = state.failures if state.status is StepStatus.COMPENSATING else 0
            undoing = replace(state, status=StepStatus.COMPENSATING, undo_attempts=event.attempt, due=None)
            return replace(undoing, repeatable=event.idempotent, failures=failures, undo_values=event.values)
        case UndoFailed():
            status = StepStatus.COMPENSATION_FAILED if event.final else state.status
            failed = replace(state, status=status, due=event.due, failures=state.failures + 1)
            broke = entry.n if event.final else state.broke
            return replace(failed, category=event.category, message=event.message, broke=broke)
        case StepCompensated():
            done = replace(state, status=StepStatus.COMPENSATED, compensation=event.how.value, ended=entry.at, due=None)
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
