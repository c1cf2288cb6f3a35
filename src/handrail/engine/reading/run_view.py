"""The view of a run: its state, in one shape for every interface.

Pure functions of a run and its definition; the time is passed in. run_reader.py reads them, step_view.py shows single
steps, and each interface adds its own text for people and calls for agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from itertools import islice
from typing import Annotated, Any, Final

from msgspec import Meta
from msgspec.structs import replace

from handrail.domain.definition.model import Category, Definition, Kind, Step, Tool
from handrail.domain.history.failure_parts import FailureParts, failure_parts
from handrail.domain.instant import instant_text
from handrail.domain.journal.event import EffectAhead, Mode
from handrail.domain.journal.projection import RunRow
from handrail.domain.policy.act import act_of
from handrail.domain.policy.actor import AGENT_PREFIX
from handrail.domain.policy.table import may
from handrail.domain.policy.verdict import Allowed
from handrail.domain.project import FindProject
from handrail.domain.run.command import AcceptStep, Command, RetryStep, SkipStep
from handrail.domain.run.guidance import name_for_agent
from handrail.domain.run.legal_controls import Action, Legal, is_undo_undecided, legal_actions
from handrail.domain.run.state import Run
from handrail.domain.run.status import (
    RUN_OPEN,
    RUN_UNDOING,
    RUN_WITH_REASON,
    STEP_UNDO_STARTED,
    RunStatus,
    StepStatus,
)
from handrail.domain.run.step_path import locate
from handrail.domain.run.step_state import ExceptionKind, StepState
from handrail.domain.scheduling.compensation import remaining, undo_order
from handrail.engine.reading.effects_left import named as named
from handrail.engine.reading.effects_left import with_effects
from handrail.engine.reading.progress import Progress as Progress
from handrail.engine.reading.progress import progress_of
from handrail.engine.reading.prospect import Prospect, prospect_of
from handrail.engine.reading.step_view import NOTHING, LiveState, Shown, StepView, recorded_text, steps_of

EXCEPTIONS_SHOWN: Final = 50
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
    digest: str = ""
    """Of everything that is asked: an answer is to this, and nothing else."""
    effects: tuple[EffectAhead, ...] = ()
    """The steps that an approval lets start."""
    unshown: int = 0
    approvals: int = 1
    approved_by: tuple[str, ...] = ()
    not_by: str = ""


class Remedy(StrEnum):
    """A way to resolve a failure that is not an action on the run."""

    RECORD = "record"
    """Record that the step is undone."""
    REPORT = "report"
    """Report on the step again, in a run that is only recorded."""


class RecoveryOption(Shown, frozen=True):
    """A way to resolve a failure: the action, its step if it has one, and what it does."""

    # An Action or a Remedy: msgspec can't describe a union of two enums.
    action: Annotated[Any, Meta(extra_json_schema={"enum": [*Action, *Remedy]})]
    means: str
    step: str = ""
    by: str = ""
    """`person` if an agent may not choose it."""


class Try(Shown, frozen=True):
    """One failed attempt: when, how long it took, and its message."""

    attempt: int
    at: str
    category: Category
    message: str
    took_ms: int = 0


class Failure(Shown, frozen=True):
    """What went wrong, and how to resolve it; without a category it is unknown whether the attempt, or the undo,
    happened."""

    step: str
    message: str
    attempts: int
    tool: str = ""
    """The tool that was called: the message may be its text, which comes from outside."""
    category: Category | None = None
    tries: tuple[Try, ...] = ()
    """Its last attempts, from the journal."""
    options: tuple[RecoveryOption, ...] = ()
    parts: FailureParts | None = None
    """Status, host and words apart, in full views."""


class ForkView(Shown, frozen=True):
    """The run that this one was forked from, and which effects are not undone."""

    run: str
    step: str
    effects: tuple[str, ...] = ()


class ExceptionView(Shown, frozen=True):
    """Something that somebody left out of a run or went past; it stays visible."""

    kind: ExceptionKind
    step: str
    by: str
    reason: str


class ProjectView(Shown, frozen=True):
    """The project that a run belongs to; without a folder it has none, or one that was forgotten: `hint` says what to
    do."""

    name: str
    id: str = ""
    folder: str = ""
    hint: str = ""


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
    exceptions: tuple[ExceptionView, ...] = ()
    fork: ForkView | None = None
    outputs: Mapping[str, Any] = {}
    steps: tuple[StepView, ...] = ()
    receipt: str = ""
    project: ProjectView | None = None
    """Its project, where that is not the reader's own."""
    node: str = ""
    """Which node it waits for, and why none has taken it."""


class RunSummary(Shown, frozen=True):
    """A run in a list."""

    run: str
    workflow: str
    status: RunStatus
    done: int
    """How many steps are over; of an ended run with the steps of every round of its loops."""
    goal: str = ""
    waiting_for: tuple[WaitingFor, ...] = ()
    started: str = ""
    updated: str = ""
    ended: str = ""
    project: ProjectView | None = None
    """Its project, in a list of several projects."""
    exceptions: int = 0
    """How many of its checks were skipped and approvals overridden."""


def failure_kind(category: str, tool: str) -> str:
    """The kind of a failure, in brackets for readers; what an agent reports is not an error of a tool."""
    return f" ({category})" if tool or category != Category.TOOL_ERROR else ""


def project_view(run_id: str, project_id: str, find: FindProject) -> ProjectView:
    """The project of a run as readers see it."""
    seen = plan_project_view(project_id, find)
    if seen.folder:
        return seen
    return replace(seen, hint=f"nothing executes it until it has a project: `handrail project adopt {run_id}`")


def plan_project_view(project_id: str, find: FindProject) -> ProjectView:
    """The project of a plan as readers see it; plans from before there were projects are everyone's."""
    project = find(project_id) if project_id else None
    if project is None:
        return ProjectView(name="forgotten" if project_id else "none", id=project_id)
    return ProjectView(name=project.name, id=project.id, folder=project.folder)


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
        progress=progress_of(run, definition, is_full=detail is Detail.FULL),
        goal=run.goal,
        waiting_for=waiting_for(run, prospect, definition),
        failure=_failure(run, definition, prospect, detail),
        options=_options(run, definition) if run.status is RunStatus.CANCELLED else (),
        reason=run.reason if run.status in RUN_WITH_REASON else "",
        priority=run.priority,
        started=_instant(run.started),
        ended=_instant(run.ended),
        deadline=_instant(run.deadline),
        not_compensated=lasting,
        exceptions=exceptions_of(run),
        fork=_origin(run),
        outputs=run.outputs,
        steps=steps,
        receipt=run.receipt,
    )


def steps_seen(
    run: Run, definition: Definition, prospect: Prospect, within: LiveState = NOTHING
) -> tuple[StepView, ...]:
    """Only the steps of a run: readers of a long one ask for them often, and the rest of its status takes as long."""
    return steps_of(run, definition, prospect, within, _lasting(run, definition))


def exceptions_of(run: Run) -> tuple[ExceptionView, ...]:
    """What was skipped or overridden by somebody, the first of them if there are many."""
    found = (
        ExceptionView(kind=state.exception, step=path, by=state.actor, reason=state.message)
        for path, state in run.steps.items()
        if state.exception is not None
    )
    return tuple(islice(found, EXCEPTIONS_SHOWN))


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
        done=seen.progress.done if seen else row.done,
        goal=row.goal,
        waiting_for=seen.waiting_for if seen else (),
        started=_instant(row.started),
        updated=_instant(row.updated),
        ended=_instant(row.ended),
        exceptions=row.exceptions,
    )


def waiting_for(run: Run, prospect: Prospect, definition: Definition) -> tuple[WaitingFor, ...]:
    """Everyone a run waits for, and what for."""
    agents = [
        WaitingFor(
            kind=WaitingKind.AGENT,
            step=name_for_agent(run, path),
            since=_instant(run.step(path).started),
            text=recorded_text(run, locate(definition, path).step) if run.mode is Mode.RECORD else "",
            by=_agent(run.step(path)),
        )
        for path in prospect.for_agent
    ]
    asked = [question_view(path, run.step(path)) for path in prospect.asked]
    undecided = [
        WaitingFor(kind=WaitingKind.DECISION, step=path, since=_instant(run.step(path).ended or run.step(path).started))
        for path in prospect.undecided
    ]
    return (*undecided, *asked, *agents)


def question_view(path: str, state: StepState) -> WaitingFor:
    """What a person is asked at a step."""
    asked = state.values if isinstance(state.values, Mapping) else {}
    return WaitingFor(
        kind=WaitingKind.APPROVAL,
        step=path,
        since=_instant(state.started),
        text=str(asked.get("text", "")),
        by=tuple(asked.get("by", ())),
        expires=_instant(state.due),
        schema=asked.get("schema"),
        digest=state.digest,
        effects=tuple(asked.get("effects", ())),
        unshown=asked.get("unshown", 0),
        approvals=asked.get("approvals", 1),
        approved_by=state.approvers,
        not_by=asked.get("not_by", ""),
    )


def _agent(state: StepState) -> tuple[str, ...]:
    return (state.agent,) if state.agent else ()


def _lasting(run: Run, definition: Definition) -> tuple[str, ...]:
    """Effects that remain of a run that is undone: those without an undo, and after its end all that are not undone."""
    if run.status not in RUN_UNDOING:
        return ()
    return tuple(remaining(run, definition))


def _origin(run: Run) -> ForkView | None:
    fork = run.fork
    return ForkView(run=fork.run, step=fork.step, effects=fork.effects) if fork else None


def _failure(run: Run, definition: Definition, prospect: Prospect, detail: Detail) -> Failure | None:
    path = _failed_step(run, prospect)
    if path is None:
        return None
    state = run.step(path)
    is_undo = is_undo_undecided(run, state)
    tool = _tool_of(locate(definition, path).step, is_undo=is_undo)
    return Failure(
        step=path,
        tool=tool,
        parts=failure_parts(state.message, tool) if detail is Detail.FULL and tool and state.message else None,
        category=None if state.status is StepStatus.UNCERTAIN else state.category,
        message=_undo_message(run, definition, state) if is_undo else _message(state),
        attempts=state.undo_attempts if is_undo else state.attempts,
        options=_options(run, definition, path),
    )


def _tool_of(step: Step, *, is_undo: bool) -> str:
    """The tool that was called; a step without a declared undo is undone by its own tool."""
    work = step.undo if is_undo and step.undo is not None else step.work
    return work.tool if isinstance(work, Tool) else ""


def _message(state: StepState) -> str:
    lost = "an attempt started, and whether it happened is unknown"
    return lost if state.status is StepStatus.UNCERTAIN else state.message


def _undo_message(run: Run, definition: Definition, state: StepState) -> str:
    """What is known of an undo that failed or is uncertain, and everything that was not tried because of it."""
    # A lost attempt may have undone the step: what failed then is only the repetition.
    is_repetition = state.undo_lost > 0 and not state.undo_uncertain
    again = "; an attempt before was interrupted and may have undone it: check" if is_repetition else ""
    left = [path for path in undo_order(run, definition) if _is_untried(run.step(path))]
    return state.message + again + (f"; not undone because of that: {named(left)}" if left else "")


def _is_untried(state: StepState) -> bool:
    return state.status not in STEP_UNDO_STARTED and not state.undo_uncertain


def _failed_step(run: Run, prospect: Prospect) -> str | None:
    if prospect.undecided:
        return prospect.undecided[0]
    is_reported = run.mode is Mode.RECORD and run.status in RUN_OPEN
    if run.status is not RunStatus.FAILED and not is_reported:
        return None
    return next((path for path, state in run.steps.items() if state.status is StepStatus.FAILED), None)


def _options(run: Run, definition: Definition, path: str = "") -> tuple[RecoveryOption, ...]:
    """The ways to resolve the failure of a step, or of a run that has ended."""
    if run.mode is Mode.RECORD and run.status in RUN_OPEN:
        return (RecoveryOption(action=Remedy.REPORT, means="do it after all, and report that", step=path),)
    undone = undo_order(run, definition)
    legal = legal_actions(run)
    of_step = [one for one in legal if path and one.step == path]
    of_run = [one for action in OF_RUN for one in legal if one.action is action and not one.step]
    if path and run.status is RunStatus.FAILED:
        of_run.append(Legal(Action.FORK, path.partition(".")[0].partition("[")[0]))
    kept = [one for one in (*of_step, *of_run) if one.action is not Action.COMPENSATE or undone]
    is_undo = bool(path) and is_undo_undecided(run, run.step(path))
    options = [
        RecoveryOption(
            action=one.action,
            means=_means(one.action, run, definition, path, is_undo=is_undo),
            step=one.step,
            by="" if _may_agent(run, definition, one) else "person",
        )
        for one in kept
    ]
    return (*options, _by_hand(path)) if is_undo else tuple(options)


_ON_STEP: Final[Mapping[Action, Callable[[str], Command]]] = {
    Action.SKIP: lambda step: SkipStep(step=step, reason=""),
    Action.RETRY: lambda step: RetryStep(step=step, reason=""),
    Action.ACCEPT: lambda step: AcceptStep(step=step, reason=""),
}


def _may_agent(run: Run, definition: Definition, one: Legal) -> bool:
    """Whether the policy lets agents choose this action, as long as its owner has not changed it."""
    if one.action not in _ON_STEP or not one.step:
        return True
    act = act_of(run, definition, _ON_STEP[one.action](one.step))
    return isinstance(may(AGENT_PREFIX, act), Allowed)


def _by_hand(path: str) -> RecoveryOption:
    means = "it is undone, by hand or otherwise, or needs no undo: record that"
    return RecoveryOption(action=Remedy.RECORD, means=means, step=path)


def _means(action: Action, run: Run, definition: Definition, path: str, *, is_undo: bool) -> str:
    match action:
        case Action.RETRY:
            return "try its undo again" if is_undo else _again(run, definition, path)
        case Action.SKIP:
            return "give up on undoing it: its effect stays" if is_undo else "continue without it"
        case Action.ACCEPT:
            return "it did happen: count it as completed"
        case Action.COMPENSATE:
            return with_effects(f"undo {named(undo_order(run, definition))}; ", run, definition, is_undone=True)
        case Action.FORK:
            return "start a new run from there that takes over what was done before"
        case _:
            return with_effects("end the run; ", run, definition, is_undone=False)


def _again(run: Run, definition: Definition, path: str) -> str:
    kind = locate(definition, path).step.kind
    may_repeat = kind is Kind.TOOL and not run.step(path).repeatable and run.step(path).attempts > 0
    return f"{AGAIN[kind]}; the tool does not promise that its effect happens only once" if may_repeat else AGAIN[kind]


AGAIN: Final[Mapping[Kind, str]] = {
    Kind.TOOL: "call it again under the same key",
    Kind.PROMPT: "give it to the agent again",
    Kind.APPROVE: "ask again",
    Kind.WORKFLOW: "continue it",
    Kind.EACH: "continue its rounds",
    Kind.REPEAT: "allow as many rounds again",
}


def _instant(milliseconds: int | None) -> str:
    return instant_text(milliseconds) if milliseconds else ""
