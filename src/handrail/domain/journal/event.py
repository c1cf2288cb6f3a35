"""Events: what has happened, as frozen values in the past tense. The set is closed.

There are four kinds of stream: a run's (`run_...`), a plan's (`plan/<project>/<id>`), a tool server's
(`server/<project>/<name>`) and the store's own (`store`); events of the last three are in store_event.py, those of
approvals in approval_event.py. `Entry` adds who caused an event, when, and its place in the chain. codec.py converts
events to bytes."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias, get_args

from msgspec import Struct, field

from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal.approval_event import About as About
from handrail.domain.journal.approval_event import ApprovalEvent as ApprovalEvent
from handrail.domain.journal.approval_event import ApprovalExpired as ApprovalExpired
from handrail.domain.journal.approval_event import ApprovalGiven as ApprovalGiven
from handrail.domain.journal.approval_event import ApprovalRejected as ApprovalRejected
from handrail.domain.journal.approval_event import ApprovalRequested as ApprovalRequested
from handrail.domain.journal.approval_event import ApprovalWithdrawn as ApprovalWithdrawn
from handrail.domain.journal.approval_event import EffectAhead as EffectAhead
from handrail.domain.journal.fact import Fact
from handrail.domain.journal.store_event import PlanEvent, ServerEvent, StoreEvent

STORE_STREAM: Final = "store"
PLAN_PREFIX: Final = "plan/"
SERVER_PREFIX: Final = "server/"
RUN_PREFIX: Final = "run_"


class Mode(StrEnum):
    """Who does the work: handrail's engine, or the agent, who only reports it."""

    RUN = "run"
    RECORD = "record"


class Proof(StrEnum):
    """How it is known that a step is done: handrail did it or looked at the world, looked only at the output's form, or
    someone claims it."""

    VERIFIED = "verified"
    CHECKED = "checked"
    CLAIMED = "claimed"


class How(StrEnum):
    """How a step was compensated."""

    EXECUTED = "executed"
    BY_AGENT = "by_agent"
    RECORDED = "recorded"
    NOT_NEEDED = "not_needed"


class Outcome(StrEnum):
    """The outcome of a reported action."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class ActionKind(StrEnum):
    """What kind of action is reported."""

    PERFORMED = "performed"
    STOPPED = "stopped"
    CLEANED_UP = "cleaned_up"
    NOTIFIED = "notified"
    ROLLED_BACK = "rolled_back"
    OTHER = "other"


# --- a run as a whole ---------------------------------------------------------------------------


class Fork(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a run was forked from another, and which effects of that one this one does not undo."""

    run: str
    n: int
    step: str
    effects: tuple[str, ...] = ()


class RunStarted(Fact, frozen=True):
    """A run started, pinned to the definition with this content hash; its key can start no other run.

    `pins` are the content hashes of the servers' descriptions of its tools; `behalf` is the person that an agent
    started it for; `trace` is what the caller sent of its own trace (domain/tracing/trace_context.py)."""

    definition: str
    workflow: str
    inputs: Mapping[str, Any] = field(default_factory=dict)
    goal: str = ""
    mode: Mode = Mode.RUN
    deadline: int | None = None
    priority: int = 0
    fork: Fork | None = None
    key: str = ""
    asked: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)
    project: str = ""
    behalf: str = ""
    trace: Mapping[str, Any] = field(default_factory=dict)


class RunAdopted(Fact, frozen=True):
    """A run without a project, or whose project was forgotten, belongs to this project from now on."""

    project: str
    reason: str


class ProjectRecorded(Fact, frozen=True):
    """The state of the project when the run started, or when `step` was given out: rules compare with it.

    Without `commit` it was as when the run started. `dirty` are digests of the files that were not as in the commit,
    `more` is how many others there were. `missing` says why there is no commit to compare with: then `dirty` has the
    digests of all files."""

    step: str = ""
    commit: str = ""
    branch: str = ""
    tree: str = ""
    dirty: Mapping[str, Any] = field(default_factory=dict)
    more: int = 0
    missing: str = ""


class RunPaused(Fact, frozen=True):
    """No new attempt starts until the run is resumed."""

    reason: str


class RunResumed(Fact, frozen=True):
    """The run continues where it was paused."""

    reason: str


class RunCancelled(Fact, frozen=True):
    """The run was ended on request before its work was done."""

    reason: str


class RunCompleted(Fact, frozen=True):
    """Every step is completed or skipped."""

    outputs: Mapping[str, Any] = field(default_factory=dict)


class RunFailed(Fact, frozen=True):
    """The run ended because a step failed permanently and policy is to stop; without a step, its deadline passed."""

    step: str
    message: str


class CompensationStarted(Fact, frozen=True):
    """The undoing of these steps started, in this order."""

    reason: str
    steps: tuple[str, ...]


class RunCompensated(Fact, frozen=True):
    """Everything that could be undone is undone; steps without an undo are named."""

    not_compensated: tuple[str, ...] = ()


class RunCompensationFailed(Fact, frozen=True):
    """An undo failed permanently; a person or agent must act. All else that is not undone is named, too: what was not
    tried, and what has no undo."""

    steps: tuple[str, ...]
    not_compensated: tuple[str, ...] = ()

    @property
    def remaining(self) -> tuple[str, ...]:
        """Every step whose effect remains."""
        return (*self.steps, *self.not_compensated)


class VarsSet(Fact, frozen=True):
    """Values were set for later steps."""

    vars: Mapping[str, Any]


class DecisionRecorded(Fact, frozen=True):
    """Someone made a decision, and why."""

    decision: str
    reason: str
    step: str | None = None
    alternatives: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class ActionRecorded(Fact, frozen=True):
    """Someone did something."""

    description: str
    step: str | None = None
    outcome: Outcome | None = None
    action: ActionKind = ActionKind.PERFORMED
    output: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)


# --- a step ---------------------------------------------------------------------------------------


class StepCarried(Fact, frozen=True):
    """The step was done in the run that this one was forked from; its effect, if any, belongs to that run."""

    step: str
    output: Any = None
    is_skipped: bool = False
    proof: Proof = Proof.VERIFIED
    """What was known of it there; journals written before say only that it was done."""
    checks: tuple[str, ...] = ()


class StepOpened(Fact, frozen=True):
    """A step that contains other steps (a loop, an inlined workflow) started; `rounds` if their number is known.

    `values` are for the steps inside: the items of a loop, or the inputs of the workflow."""

    step: str
    rounds: int | None = None
    values: Any = None


class RoundStarted(Fact, frozen=True):
    """A round of a repeat starts, at `due` if given: journaled first, then waited for."""

    step: str
    round: int
    due: int | None = None


class StepHandedOut(Fact, frozen=True):
    """The step was assigned to an agent; a named agent keeps it until `until`."""

    step: str
    agent: str = ""
    until: int | None = None


class OutputRefused(Fact, frozen=True):
    """An agent's output failed a check, and the step stays with the agent; or a tool's result did.

    `output` is a tool's result: the tool had its effect, which may have to be undone."""

    step: str
    findings: tuple[Mapping[str, Any], ...]
    evidence: tuple[Mapping[str, Any], ...] = ()
    output: Any = None
    unchecked: bool = False
    """Whether a check could not be applied, for reasons that the agent can't change: it is no try."""


class AttemptStarted(Fact, frozen=True):
    """An attempt started; for a step with an effect this is durable before the tool is called.

    What the tool declared at that time is stored: later, only this says what a lost attempt may have done."""

    step: str
    attempt: int
    effect: Effect | None = None
    idempotent: bool = False
    capture: Any = None


class AttemptFailed(Fact, frozen=True):
    """An attempt failed, after `took` milliseconds. RetryScheduled or StepFailed follows."""

    step: str
    attempt: int
    category: Category
    message: str
    took: int = 0


class RetryScheduled(Fact, frozen=True):
    """The next attempt is due at this time: journaled first, then waited for."""

    step: str
    attempt: int
    due: int


class StepDeferred(Fact, frozen=True):
    """The tool still works or waits: it is called again at this time."""

    step: str
    attempt: int
    due: int


class AttemptLost(Fact, frozen=True):
    """The worker was lost during the attempt; it can be repeated under the same key, and will be."""

    step: str
    attempt: int


class AnswerCameLate(Fact, frozen=True):
    """A tool answered after its attempt was given up. This is recorded, but changes nothing."""

    step: str
    attempt: int
    output: Any = None
    category: Category | None = None
    message: str = ""


class StepCompleted(Fact, frozen=True):
    """The step is done and its output known; `took` is how many milliseconds its tool needed.

    `findings` are notes of checks that do not have to be fixed."""

    step: str
    output: Any = None
    proof: Proof = Proof.VERIFIED
    checks: tuple[str, ...] = ()
    took: int = 0
    evidence: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()


class StepFailed(Fact, frozen=True):
    """The step failed permanently: its policy allows no further attempt. `asks` if a person must decide regardless."""

    step: str
    category: Category
    message: str
    asks: bool = False


class StepSkipped(Fact, frozen=True):
    """The step will not be done; steps after it can start. `was_gated` if somebody skipped its checks with it."""

    step: str
    reason: str
    was_gated: bool = False


class ApprovalOverridden(Fact, frozen=True):
    """A person went past an approval without an answer; StepSkipped follows. `digest` is what was asked, if it was;
    `channel` is how it came."""

    step: str
    reason: str
    digest: str = ""
    channel: str = ""


class StepCancelled(Fact, frozen=True):
    """The step was stopped together with its run."""

    step: str


class StepBecameUncertain(Fact, frozen=True):
    """An attempt started and its outcome will never be known; a person must decide."""

    step: str
    attempt: int


class StepRetried(Fact, frozen=True):
    """Someone decided to try the step again."""

    step: str
    reason: str


class StepAccepted(Fact, frozen=True):
    """Someone confirmed that an uncertain step did happen; it counts as completed."""

    step: str
    reason: str
    output: Any = None


# --- the undo of a step ---------------------------------------------------------------------------


class UndoStarted(Fact, frozen=True):
    """An attempt of a step's undo started; an idempotent one is called again under its key if it is lost.

    `values` are the inputs of the workflow that undoes it, if there is one; `capture` is what the tool that undoes it
    captured before its first attempt."""

    step: str
    attempt: int
    idempotent: bool = False
    values: Any = None
    capture: Any = None


class UndoFailed(Fact, frozen=True):
    """An attempt of a step's undo failed; `final` if policy allows no other, else the next is at `due`."""

    step: str
    attempt: int
    category: Category
    message: str
    final: bool = False
    due: int | None = None
    took: int = 0


class UndoLost(Fact, frozen=True):
    """The worker was lost during the undo; it is called again under its own key, whatever its retry policy."""

    step: str
    attempt: int


class UndoBecameUncertain(Fact, frozen=True):
    """An undo started and whether the step is undone will never be known; a person or agent must decide."""

    step: str
    attempt: int


class StepCompensated(Fact, frozen=True):
    """The step is undone; `how` says in which way."""

    step: str
    how: How
    description: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    took: int = 0


RunEvent: TypeAlias = (
    RunStarted
    | RunAdopted
    | ProjectRecorded
    | RunPaused
    | RunResumed
    | RunCancelled
    | RunCompleted
    | RunFailed
    | CompensationStarted
    | RunCompensated
    | RunCompensationFailed
    | VarsSet
    | DecisionRecorded
    | ActionRecorded
)
WaitEvent: TypeAlias = StepHandedOut | OutputRefused | ApprovalEvent
HolderEvent: TypeAlias = StepOpened | RoundStarted
AttemptEvent: TypeAlias = (
    AttemptStarted | AttemptFailed | AttemptLost | AnswerCameLate | RetryScheduled | StepDeferred | StepBecameUncertain
)
EndEvent: TypeAlias = (
    StepCompleted
    | StepFailed
    | StepSkipped
    | ApprovalOverridden
    | StepCancelled
    | StepRetried
    | StepAccepted
    | StepCarried
)
UndoEvent: TypeAlias = UndoStarted | UndoFailed | UndoLost | UndoBecameUncertain | StepCompensated
StepEvent: TypeAlias = WaitEvent | HolderEvent | AttemptEvent | EndEvent | UndoEvent
Event: TypeAlias = RunEvent | StepEvent | ServerEvent | PlanEvent | StoreEvent
# A set lookup is much faster than isinstance() with the union.
STEP_EVENTS: Final[frozenset[type[Event]]] = frozenset(get_args(StepEvent))


def step_of(event: Event) -> str | None:
    """The step whose state an event changes, if any."""
    return event.step if type(event) in STEP_EVENTS else None  # type: ignore[union-attr]


class Entry(Struct, frozen=True, kw_only=True):
    """An event with its stream, number, time, actor, and the chain's hash up to it."""

    stream: str
    n: int
    at: int
    actor: str
    event: Event
    hash: bytes = b""
