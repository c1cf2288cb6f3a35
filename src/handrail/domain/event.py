"""Events: what has happened, as frozen values in the past tense. The set is closed.

Four kinds of stream are kept: a run's (`run_...`), a plan's (`plan/<id>`), a tool server's (`server/<name>`) and the
store's own (`store`); the last three stand in store_event.py. Who caused an event, when, and its place in the chain
stand beside it, in `Entry`. How an event becomes bytes is codec.py's."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias, get_args

from msgspec import Struct, field

from handrail.domain.definition import Category, Effect
from handrail.domain.fact import Fact
from handrail.domain.store_event import PlanEvent, ServerEvent, StoreEvent

STORE_STREAM: Final = "store"
PLAN_PREFIX: Final = "plan/"
SERVER_PREFIX: Final = "server/"
RUN_PREFIX: Final = "run_"


class Mode(StrEnum):
    """Whose hands do the work: handrail's engine, or the agent's own, who only reports."""

    RUN = "run"
    RECORD = "record"


class Proof(StrEnum):
    """How we know that a step is done: handrail did or checked it, or somebody said so."""

    VERIFIED = "verified"
    CLAIMED = "claimed"


class How(StrEnum):
    """How a step was compensated; the four are never confused with each other."""

    EXECUTED = "executed"
    BY_AGENT = "by_agent"
    RECORDED = "recorded"
    NOT_NEEDED = "not_needed"


class Outcome(StrEnum):
    """What came of an action that somebody reports."""

    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class About(StrEnum):
    """What a person is asked about in the middle of a step: a tool that has changed, or what the tool wants to know."""

    TOOL = "tool"
    QUESTION = "question"


class ActionKind(StrEnum):
    """What sort of action somebody reports."""

    PERFORMED = "performed"
    STOPPED = "stopped"
    CLEANED_UP = "cleaned_up"
    NOTIFIED = "notified"
    ROLLED_BACK = "rolled_back"
    OTHER = "other"


# --- a run as a whole ---------------------------------------------------------------------------


class Fork(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a run was forked off another, and what that one did to the world that this one does not take back."""

    run: str
    n: int
    step: str
    effects: tuple[str, ...] = ()


class RunStarted(Fact, frozen=True):
    """A run began, pinned for ever to the definition with this content hash; under a key, nothing else begins.

    `pins` are the content hashes of what tool servers said of the tools that it calls."""

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


class RunPaused(Fact, frozen=True):
    """No new attempt starts until the run is resumed."""

    reason: str


class RunResumed(Fact, frozen=True):
    """The run goes on with exactly the rest."""

    reason: str


class RunCancelled(Fact, frozen=True):
    """The run ended before its work was done, because somebody wanted that."""

    reason: str


class RunCompleted(Fact, frozen=True):
    """Every step is completed or skipped."""

    outputs: Mapping[str, Any] = field(default_factory=dict)


class RunFailed(Fact, frozen=True):
    """The run ended because a step failed for good and policy said to stop; without a step, its time was up."""

    step: str
    message: str


class CompensationStarted(Fact, frozen=True):
    """The undoing of these steps began, in this order."""

    reason: str
    steps: tuple[str, ...]


class RunCompensated(Fact, frozen=True):
    """Everything that had to be undone is undone; steps without an undo are named."""

    not_compensated: tuple[str, ...] = ()


class RunCompensationFailed(Fact, frozen=True):
    """Some undo failed for good; a person or agent must act."""

    steps: tuple[str, ...]


class VarsSet(Fact, frozen=True):
    """The agent left values for later steps."""

    vars: Mapping[str, Any]


class DecisionRecorded(Fact, frozen=True):
    """Why someone chose."""

    decision: str
    reason: str
    step: str | None = None
    alternatives: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class ActionRecorded(Fact, frozen=True):
    """What someone did."""

    description: str
    step: str | None = None
    outcome: Outcome | None = None
    action: ActionKind = ActionKind.PERFORMED
    output: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)


# --- a step ---------------------------------------------------------------------------------------


class StepCarried(Fact, frozen=True):
    """The step was done in the run that this one was forked off; its effect, if any, belongs to that one."""

    step: str
    output: Any = None
    is_skipped: bool = False


class StepOpened(Fact, frozen=True):
    """A step that holds other steps (a loop, an inlined workflow) began; `rounds` where they are known.

    `values` is what the steps inside are given: the items of a loop, or the inputs of the workflow."""

    step: str
    rounds: int | None = None
    values: Any = None


class RoundStarted(Fact, frozen=True):
    """A round of a repeat is to begin, at this instant if there is one: journaled first, then waited for."""

    step: str
    round: int
    due: int | None = None


class StepHandedOut(Fact, frozen=True):
    """The agent was given the step to do; a named agent holds it until the lease ends."""

    step: str
    agent: str = ""
    until: int | None = None


class OutputRefused(Fact, frozen=True):
    """What the agent handed in failed a check, and the step stays with the agent; or what a tool came to did.

    `output` is what a tool came to: its effect is there, and may have to be undone."""

    step: str
    findings: tuple[Mapping[str, Any], ...]
    evidence: tuple[Mapping[str, Any], ...] = ()
    output: Any = None


class ApprovalRequested(Fact, frozen=True):
    """A person was asked; the answer is bound to the digest of what was shown.

    With `about`, the step is one that calls a tool, and goes on when the answer is there; `schema` is its form."""

    step: str
    digest: str
    text: str
    by: tuple[str, ...] = ()
    expires: int | None = None
    about: About | None = None
    schema: Any = None


class ApprovalGiven(Fact, frozen=True):
    """A person said yes to exactly what the digest stands for; `content` is what was asked for."""

    step: str
    digest: str
    reason: str
    content: Any = None


class ApprovalRejected(Fact, frozen=True):
    """A person said no."""

    step: str
    digest: str
    reason: str


class ApprovalExpired(Fact, frozen=True):
    """Nobody answered in time."""

    step: str


class AttemptStarted(Fact, frozen=True):
    """A try began; for a step with an effect this is durable before the tool is called.

    What the tool said of itself by then is kept, since later only this tells what a lost try may have done."""

    step: str
    attempt: int
    effect: Effect | None = None
    idempotent: bool = False
    capture: Any = None


class AttemptFailed(Fact, frozen=True):
    """A try failed, after so many milliseconds. What follows is the next fact: RetryScheduled or StepFailed."""

    step: str
    attempt: int
    category: Category
    message: str
    took: int = 0


class RetryScheduled(Fact, frozen=True):
    """The next try is due at this instant: journaled first, then waited for."""

    step: str
    attempt: int
    due: int


class StepDeferred(Fact, frozen=True):
    """The tool is at work elsewhere, or waits: it is called again at this instant."""

    step: str
    attempt: int
    due: int


class AttemptLost(Fact, frozen=True):
    """Whoever tried was gone in the middle of it; the try may be repeated under the same key, and will be."""

    step: str
    attempt: int


class AnswerCameLate(Fact, frozen=True):
    """A tool answered when its attempt had long been given up. This changes nothing, but it is known."""

    step: str
    attempt: int
    output: Any = None
    category: Category | None = None
    message: str = ""


class StepCompleted(Fact, frozen=True):
    """The step's work is done and its output known; `took` is how many milliseconds its tool needed.

    `findings` are what checks noted and nobody has to mend."""

    step: str
    output: Any = None
    proof: Proof = Proof.VERIFIED
    checks: tuple[str, ...] = ()
    took: int = 0
    evidence: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()


class StepFailed(Fact, frozen=True):
    """The step failed for good: policy allows no further try. `asks` if somebody must decide, whatever the policy."""

    step: str
    category: Category
    message: str
    asks: bool = False


class StepSkipped(Fact, frozen=True):
    """The step will not be done; those after it may go on."""

    step: str
    reason: str


class StepCancelled(Fact, frozen=True):
    """The step was stopped together with its run."""

    step: str


class StepBecameUncertain(Fact, frozen=True):
    """An attempt began and its outcome will never be known; somebody must decide."""

    step: str
    attempt: int


class StepRetried(Fact, frozen=True):
    """Somebody decided that the step is to be tried again."""

    step: str
    reason: str


class StepAccepted(Fact, frozen=True):
    """Somebody knows that an uncertain step did happen; it counts as completed."""

    step: str
    reason: str
    output: Any = None


# --- the undo of a step ---------------------------------------------------------------------------


class UndoStarted(Fact, frozen=True):
    """A try at a step's undo began; an idempotent one may be repeated under its key if it is lost.

    `values` are the inputs of the workflow that undoes it, if one does."""

    step: str
    attempt: int
    idempotent: bool = False
    values: Any = None


class UndoFailed(Fact, frozen=True):
    """A try at a step's undo failed; `final` when policy allows no further one, else the next is due then."""

    step: str
    attempt: int
    category: Category
    message: str
    final: bool = False
    due: int | None = None
    took: int = 0


class StepCompensated(Fact, frozen=True):
    """The step is undone, and this is how."""

    step: str
    how: How
    description: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    took: int = 0


RunEvent: TypeAlias = (
    RunStarted
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
WaitEvent: TypeAlias = (
    StepHandedOut | OutputRefused | ApprovalRequested | ApprovalGiven | ApprovalRejected | ApprovalExpired
)
HolderEvent: TypeAlias = StepOpened | RoundStarted
AttemptEvent: TypeAlias = (
    AttemptStarted | AttemptFailed | AttemptLost | AnswerCameLate | RetryScheduled | StepDeferred | StepBecameUncertain
)
EndEvent: TypeAlias = (
    StepCompleted | StepFailed | StepSkipped | StepCancelled | StepRetried | StepAccepted | StepCarried
)
UndoEvent: TypeAlias = UndoStarted | UndoFailed | StepCompensated
StepEvent: TypeAlias = WaitEvent | HolderEvent | AttemptEvent | EndEvent | UndoEvent
Event: TypeAlias = RunEvent | StepEvent | ServerEvent | PlanEvent | StoreEvent
STEP_EVENTS: Final[frozenset[type[Event]]] = frozenset(get_args(StepEvent))  # much quicker to ask than the union


def step_of(event: Event) -> str | None:
    """The step whose state an event changes, if it does so."""
    return event.step if type(event) in STEP_EVENTS else None  # type: ignore[union-attr]


class Entry(Struct, frozen=True, kw_only=True):
    """An event in its place: which stream, the how-manieth, when, by whom, and the chain's hash up to here."""

    stream: str
    n: int
    at: int
    actor: str
    event: Event
    hash: bytes = b""
