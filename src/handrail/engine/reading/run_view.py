"""The view of a run: its state, in one shape for every interface.

Pure functions of a run and its definition; the time is passed in. run_reader.py reads them, step_view.py shows single
steps, and each interface adds its own text for people and calls for agents."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from handrail.domain.definition.model import Category, Definition, Kind, Tool
from handrail.domain.journal.projection import RunRow
from handrail.domain.run.guidance import name_for_agent
from handrail.domain.run.legal_controls import Action, Legal, legal_actions
from handrail.domain.run.state import Run, StepState
from handrail.domain.run.status import RUN_UNDOING, RUN_WITH_REASON, RunStatus, StepStatus
from handrail.domain.run.step_path import locate
from handrail.domain.scheduling.compensation import not_compensated, not_undone, undo_order
from handrail.engine.clock import instant_text
from handrail.engine.reading.prospect import Prospect, prospect_of
from handrail.engine.reading.step_view import NOTHING, LiveState, Shown, StepView, steps_of

NAMED_MAX: Final = 10
"""How many steps are named in one line."""
OF_RUN: Final = (Action.COMPENSATE, Action.CANCEL)
"""The actions on a run that can resolve a failure."""


class Detail(StrEnum):
    """How much is shown."""

    SUMMARY = "summary"
    FULL = "full"


class WaitingKind(StrEnum):
    """Who or what a run waits for."""

    AGENT = "agent"
    APPROVAL = "approval"
    CONFIRMATION = "confirmation"
    DECISION = "decision"


class Progress(Shown, frozen=True):
    """The progress of a run, in steps known so far: `done` are over, of which `skipped` were skipped."""

    done: int
    total: int
    skipped: int = 0


class WaitingFor(Shown, frozen=True):
    """Who a run waits for, and what for."""

    kind: WaitingKind
    step: str
    since: str = ""
    text: str = ""
    by: tuple[str, ...] = ()
    expires: str = ""
    schema: Any = None
    """The form of the answer, if a yes or no is not enough."""


class RecoveryOption(Shown, frozen=True):
    """A way to resolve a failure: the action, its step if it has one, and what it does."""

    action: Action
    means: str
    step: str = ""


class Try(Shown, frozen=True):
    """One failed attempt: when, how long it took, and its message."""

    attempt: int
    at: str
    category: Category
    message: str
    took_ms: int = 0


class Failure(Shown, frozen=True):
    """What went wrong, and how to resolve it; without a category it is unknown whether the attempt happened."""

    step: str
    message: str
    attempts: int
    tool: str = ""
    """The tool that was called: the message may be its text, which comes from outside."""
    category: Category | None = None
    tries: tuple[Try, ...] = ()
    """Its last attempts, from the journal."""
    options: tuple[RecoveryOption, ...] = ()


class ForkView(Shown, frozen=True):
    """The run that this one was forked from, and which effects are not undone."""

    run: str
    step: str
    effects: tuple[str, ...] = ()


class Status(Shown, frozen=True):
    """The state of a run."""

    run: str
    workflow: str
    status: RunStatus
    progress: Progress
    goal: str = ""
    waiting_for: tuple[WaitingFor, ...] = ()
    failure: Failure | None = None
    options: tuple[RecoveryOption, ...] = ()
    """What can still be done about a cancelled run."""
    reason: str = ""
    priority: int = 0
    started: str = ""
    ended: str = ""
    deadline: str = ""
    not_compensated: tuple[str, ...] = ()
    fork: ForkView | None = None
    outputs: Mapping[str, Any] = {}
    steps: tuple[StepView, ...] = ()
    receipt: str = ""


class RunSummary(Shown, frozen=True):
    """A run in a list."""

    run: str
    workflow: str
    status: RunStatus
    done: int
    goal: str = ""
    waiting_for: tuple[WaitingFor, ...] = ()
    started: str = ""
    updated: str = ""
    ended: str = ""


def status_of(
    run: Run,
    definition: Definition,
    *,
    now: int,
    detail: Detail = Detail.SUMMARY,
    within: LiveState = NOTHING,
    prospect: Prospect | None = None,
) -> Status:
    """The state of a run; `within` is known only to the process that executes it; `prospect` can be passed in if it was
    computed already."""
    prospect = prospect or prospect_of(run, definition, now=now)
    lasting = _lasting(run, definition)
    steps = steps_of(run, definition, prospect, within, lasting) if detail is Detail.FULL else ()
    return Status(
        run=run.id,
        workflow=run.workflow,
        status=shown_status(run, prospect),
        progress=_progress(run, definition, prospect),
        goal=run.goal,
        waiting_for=waiting_for(run, prospect),
        failure=_failure(run, definition, prospect),
        options=_options(run, definition) if run.status is RunStatus.CANCELLED else (),
        reason=run.reason if run.status in RUN_WITH_REASON else "",
        priority=run.priority,
        started=_instant(run.started),
        ended=_instant(run.ended),
        deadline=_instant(run.deadline),
        not_compensated=lasting,
        fork=_origin(run),
        outputs=run.outputs,
        steps=steps,
        receipt=run.receipt,
    )


def shown_status(run: Run, prospect: Prospect) -> RunStatus:
    """The status to show: a run that only an agent or a person can move is waiting."""
    is_waiting = run.status is RunStatus.RUNNING and prospect.is_settled
    return RunStatus.WAITING if is_waiting else run.status


def listed(row: RunRow, seen: Status | None = None) -> RunSummary:
    """A run in a list: from its row, and from its full status if that was read."""
    return RunSummary(
        run=row.id,
        workflow=row.workflow,
        status=seen.status if seen else RunStatus(row.status),
        done=row.done,
        goal=row.goal,
        waiting_for=seen.waiting_for if seen else (),
        started=_instant(row.started),
        updated=_instant(row.updated),
        ended=_instant(row.ended),
    )


def waiting_for(run: Run, prospect: Prospect) -> tuple[WaitingFor, ...]:
    """Everyone a run waits for, and what for."""
    agents = [
        WaitingFor(
            kind=WaitingKind.AGENT,
            step=name_for_agent(run, path),
            since=_instant(run.step(path).started),
            by=_agent(run.step(path)),
        )
        for path in prospect.for_agent
    ]
    asked = [_question(path, run.step(path)) for path in prospect.asked]
    undecided = [
        WaitingFor(kind=WaitingKind.DECISION, step=path, since=_instant(run.step(path).ended or run.step(path).started))
        for path in prospect.undecided
    ]
    return (*undecided, *asked, *agents)


def _question(path: str, state: StepState) -> WaitingFor:
    asked = state.values if isinstance(state.values, Mapping) else {}
    return WaitingFor(
        kind=WaitingKind.APPROVAL,
        step=path,
        since=_instant(state.started),
        text=str(asked.get("text", "")),
        by=tuple(asked.get("by", ())),
        expires=_instant(state.due),
        schema=asked.get("schema"),
    )


def _agent(state: StepState) -> tuple[str, ...]:
    return (state.agent,) if state.agent else ()


def _progress(run: Run, definition: Definition, prospect: Prospect) -> Progress:
    skipped = sum(state.status is StepStatus.SKIPPED for state in run.steps.values())
    return Progress(done=run.done, total=_total(run, definition, prospect), skipped=skipped)


def _total(run: Run, definition: Definition, prospect: Prospect) -> int:
    """How many steps are known: those with events, and those to come in lists that are open."""
    top = prospect.agenda.lanes.get("")
    names = top.left if top is not None else [step.id for step in definition.steps]
    to_come = sum(name not in run.steps for name in names)
    inner = (opened for prefix, opened in prospect.agenda.lanes.items() if prefix)
    return (
        len(run.steps)
        + to_come
        + sum(opened.lane.prefix + name not in run.steps for opened in inner for name in opened.left)
    )


def _lasting(run: Run, definition: Definition) -> tuple[str, ...]:
    """Effects that remain of a run that is undone: those without an undo, and after its end all that are not undone."""
    if run.status not in RUN_UNDOING:
        return ()
    return tuple((not_compensated if run.status is RunStatus.COMPENSATING else not_undone)(run, definition))


def _origin(run: Run) -> ForkView | None:
    fork = run.fork
    return ForkView(run=fork.run, step=fork.step, effects=fork.effects) if fork else None


def _failure(run: Run, definition: Definition, prospect: Prospect) -> Failure | None:
    path = _failed_step(run, prospect)
    if path is None:
        return None
    state = run.step(path)
    is_uncertain = state.status is StepStatus.UNCERTAIN
    lost = "an attempt started, and whether it happened is unknown"
    work = locate(definition, path).step.work
    return Failure(
        step=path,
        tool=work.tool if isinstance(work, Tool) else "",
        category=None if is_uncertain else state.category,
        message=lost if is_uncertain else state.message + _untried(run, definition),
        attempts=state.undo_attempts if state.status is StepStatus.COMPENSATION_FAILED else state.attempts,
        options=_options(run, definition, path),
    )


def _untried(run: Run, definition: Definition) -> str:
    """What a failed compensation did not try to undo, because a failed undo comes first."""
    if run.status is not RunStatus.COMPENSATION_FAILED:
        return ""
    rest = undo_order(run, definition)
    left = [path for path in rest if run.step(path).status is not StepStatus.COMPENSATION_FAILED]
    return f"; not undone because of that: {named(left)}" if left else ""


def _failed_step(run: Run, prospect: Prospect) -> str | None:
    if prospect.undecided:
        return prospect.undecided[0]
    if run.status is not RunStatus.FAILED:
        return None
    return next((path for path, state in run.steps.items() if state.status is StepStatus.FAILED), None)


def _options(run: Run, definition: Definition, path: str = "") -> tuple[RecoveryOption, ...]:
    """The ways to resolve the failure of a step, or of a run that has ended."""
    undone = undo_order(run, definition)
    legal = legal_actions(run)
    of_step = [one for one in legal if path and one.step == path]
    of_run = [one for action in OF_RUN for one in legal if one.action is action and not one.step]
    if path and run.status is RunStatus.FAILED:
        of_run.append(Legal(Action.FORK, path.partition(".")[0].partition("[")[0]))
    kept = [one for one in (*of_step, *of_run) if one.action is not Action.COMPENSATE or undone]
    return tuple(
        RecoveryOption(
            action=one.action,
            means=_means(one.action, definition, path, run.step(path), undone),
            step=one.step,
        )
        for one in kept
    )


def _means(action: Action, definition: Definition, path: str, state: StepState, undone: list[str]) -> str:
    is_undo = state.status is StepStatus.COMPENSATION_FAILED
    match action:
        case Action.RETRY:
            return "try its undo again" if is_undo else AGAIN[locate(definition, path).step.kind]
        case Action.SKIP:
            return "give up on undoing it: its effect stays" if is_undo else "continue without it"
        case Action.ACCEPT:
            return "it did happen: count it as completed"
        case Action.COMPENSATE:
            return f"undo {named(undone)}"
        case Action.FORK:
            return "start a new run from there that takes over what was done before"
        case _:
            return f"end the run; what was done stays: {named(undone)}" if undone else "end the run"


AGAIN: Final[Mapping[Kind, str]] = {
    Kind.TOOL: "call it again under the same key",
    Kind.PROMPT: "give it to the agent again",
    Kind.APPROVE: "ask again",
    Kind.WORKFLOW: "continue it",
    Kind.EACH: "continue its rounds",
    Kind.REPEAT: "allow as many rounds again",
}


def named(paths: list[str]) -> str:
    """The names of steps in one line, the first few of them."""
    more = len(paths) - NAMED_MAX
    return ", ".join(paths[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")


def _instant(milliseconds: int | None) -> str:
    return instant_text(milliseconds) if milliseconds else ""
