"""A run: replays its events into its state, and derives its projection rows.

Pure. `apply` never refuses an event: it has already happened. decide.py decides what may happen, by the table in
status.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, assert_never, cast

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.domain.journal.chain import GENESIS, receipt
from handrail.domain.journal.event import (
    ActionRecorded,
    CompensationStarted,
    DecisionRecorded,
    Entry,
    Fork,
    Mode,
    ProjectRecorded,
    RunAdopted,
    RunCancelled,
    RunCompensated,
    RunCompensationFailed,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunPaused,
    RunResumed,
    RunStarted,
    StepEvent,
    VarsSet,
    step_of,
)
from handrail.domain.journal.projection import Change, RunRow, StepRow
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.run.baseline import Baseline
from handrail.domain.run.status import STEP_SATISFIED, RunStatus
from handrail.domain.run.step_state import GATES_PASSED, StepState, apply_to_step
from handrail.domain.run.versioned_table import VersionedTable


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
    project: str = ""
    """The id of the project that it belongs to; empty if it was started before there were projects."""
    starter: str = ""
    """The actor who started it."""
    behalf: str = ""
    """The person that an agent started it for."""
    approvals: tuple[str, ...] = ()
    """The approval steps that were asked about, so that no other step has to be looked at for them."""
    baselines: Mapping[str, Baseline] = field(default_factory=dict)
    """By step: the state of the project when it was given out; under the empty name, when the run started."""
    reason: str = ""
    """Why it is paused, was cancelled, failed, or is being undone."""
    paused_by: str = ""
    """Who paused it, as long as it is paused."""
    trace: Mapping[str, Any] = field(default_factory=dict)
    """What its caller sent of the trace that it belongs to."""
    turned: int = 0
    """The event at which it last started to undo."""
    turned_at: int | None = None
    first_ended: int | None = None
    """When it ended for the first time: one that failed can still be undone, and then ends again."""
    started: int = 0
    updated: int = 0
    ended: int | None = None
    done: int = 0
    exceptions: int = 0
    """How many of its checks were skipped and approvals overridden by somebody."""
    n: int = 0
    head: bytes = GENESIS

    @property
    def expires(self) -> int | None:
        """When its deadline ends it; None if it has none, or is no longer doing its steps."""
        # Undoing has no deadline: one that has passed must not wake anything any more.
        return self.deadline if self.status is RunStatus.RUNNING else None

    @property
    def receipt(self) -> str:
        """What a caller keeps as proof of the run's current last event."""
        return receipt(self.n, self.head)

    def step(self, path: str) -> StepState:
        """A step's state; a step without events is pending."""
        return self.steps.get(path, _PENDING)


_PENDING: Final = StepState()


def replay(entries: Iterable[Entry], start: Run) -> Run:
    """The run after these entries."""
    # Collected first and applied once per batch: copying the run for every event would be slow.
    changed: dict[str, StepState] = {}
    run, done, gone_past, last = start, start.done, start.exceptions, None
    for last in entries:
        event = last.event
        path = step_of(event)
        if path is not None:
            before: StepState = changed.get(path) or start.steps.get(path, _PENDING)
            after = changed[path] = apply_to_step(before, cast("StepEvent", event), last)
            done += (after.status in STEP_SATISFIED) - (before.status in STEP_SATISFIED)
            gone_past += (after.exception in GATES_PASSED) - (before.exception in GATES_PASSED)
            if after.asked != before.asked and path not in run.approvals:
                run = replace(run, approvals=(*run.approvals, path))
        elif isinstance(event, RunEvent):
            run = apply_to_run(run, event, last)
    if last is None:
        return start
    steps = start.steps if isinstance(start.steps, VersionedTable) else VersionedTable(start.steps)
    counted = replace(run, steps=steps.with_rows(changed), done=done, exceptions=gone_past)
    return replace(counted, n=last.n, head=last.hash, updated=last.at)


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
                project=event.project,
                starter=entry.actor,
                behalf=event.behalf,
                trace=event.trace,
                started=entry.at,
            )
        case RunPaused():
            # A person's pause stays theirs, also if an agent pauses the run again.
            by = run.paused_by if kind_of(run.paused_by) is ActorKind.PERSON else entry.actor
            return replace(run, status=RunStatus.PAUSED, reason=event.reason, paused_by=by)
        case RunResumed():
            return replace(run, status=RunStatus.RUNNING, reason="", paused_by="")
        case RunCancelled():
            return replace(_ended(run, entry), status=RunStatus.CANCELLED, ended=entry.at, reason=event.reason)
        case RunCompleted():
            return replace(_ended(run, entry), status=RunStatus.COMPLETED, outputs=event.outputs, ended=entry.at)
        case RunFailed():
            return replace(_ended(run, entry), status=RunStatus.FAILED, ended=entry.at, reason=event.message)
        case CompensationStarted():
            turned = replace(run, turned=entry.n, turned_at=entry.at)
            return replace(turned, status=RunStatus.COMPENSATING, ended=None, reason=event.reason)
        case RunCompensated():
            return replace(_ended(run, entry), status=RunStatus.COMPENSATED, ended=entry.at)
        case RunCompensationFailed():
            return replace(_ended(run, entry), status=RunStatus.COMPENSATION_FAILED)
        case RunAdopted() | ProjectRecorded() | VarsSet() | DecisionRecorded() | ActionRecorded():
            return _after_note(run, event)
        case _:
            assert_never(event)


def _ended(run: Run, entry: Entry) -> Run:
    return run if run.first_ended is not None else replace(run, first_ended=entry.at)


def _after_note(run: Run, event: RunAdopted | ProjectRecorded | VarsSet | DecisionRecorded | ActionRecorded) -> Run:
    """The run after an event that leaves its status as it is."""
    match event:
        case RunAdopted():
            return replace(run, project=event.project)
        case ProjectRecorded():
            baseline = Baseline(
                commit=event.commit,
                branch=event.branch,
                tree=event.tree,
                dirty=event.dirty,
                more=event.more,
                missing=event.missing,
            )
            if not event.commit and not event.missing:  # as when the run started
                baseline = run.baselines.get("", baseline)
            return replace(run, baselines={**run.baselines, event.step: baseline})
        case VarsSet():
            return replace(run, vars={**run.vars, **event.vars})
        case _:
            return run


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
        project=run.project,
        exceptions=run.exceptions,
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
