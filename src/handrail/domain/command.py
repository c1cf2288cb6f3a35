"""Commands: what may be asked of a run or a plan, as frozen values. The set is closed.

Who asks and when stand beside a command, in dispatch. Whether it is granted is decided in decide.py and plan.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from handrail.domain.definition import Category, Effect
from handrail.domain.event import About, ActionKind, Fork, How, Mode, Outcome, Proof, StepCarried


class BaseCommand(Struct, frozen=True, kw_only=True):
    """The shape all commands share."""


# --- a run as a whole ---------------------------------------------------------------------------


class StartRun(BaseCommand, frozen=True):
    """Begin a run of the definition with this content hash; inputs are checked and complete."""

    definition: str = ""
    workflow: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    goal: str = ""
    mode: Mode = Mode.RUN
    deadline: int | None = None
    priority: int = 0
    fork: Fork | None = None
    carried: tuple[StepCarried, ...] = ()
    """What a fork takes over from the run it was forked off."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    """The caller's name for this start: asked for twice, the run is begun once. Only its digest is kept."""
    asked: str = ""
    """The digest of all that was asked under the key, so that it can't stand for something else later."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """By tool: the content hash of what its server says of it."""


class PauseRun(BaseCommand, frozen=True):
    """Let no new attempt start."""

    reason: str


class ResumeRun(BaseCommand, frozen=True):
    """Go on after a pause."""

    reason: str


class CancelRun(BaseCommand, frozen=True):
    """End the run before its work is done."""

    reason: str


class ExpireRun(BaseCommand, frozen=True):
    """End the run because its time is up: undo what it did if that is its policy, else fail."""


class FinishRun(BaseCommand, frozen=True):
    """End the run: completed if every step is, failed otherwise, or if its outputs have a flaw."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    flaw: str = ""


class StartCompensation(BaseCommand, frozen=True):
    """Undo what the run has done."""

    reason: str


class FinishCompensation(BaseCommand, frozen=True):
    """End the undoing: compensated if all of it worked."""


class SetVars(BaseCommand, frozen=True):
    """Leave values for later steps."""

    vars: Mapping[str, Any]


class RecordDecision(BaseCommand, frozen=True):
    """Write down why someone chose."""

    decision: str
    reason: str
    step: str | None = None
    alternatives: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class RecordAction(BaseCommand, frozen=True):
    """Write down what someone did; in a recorded run its outcome moves the step."""

    description: str
    step: str | None = None
    outcome: Outcome | None = None
    action: ActionKind = ActionKind.PERFORMED
    output: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)


# --- a step ---------------------------------------------------------------------------------------


class OpenStep(BaseCommand, frozen=True):
    """Begin a step that holds other steps."""

    step: str
    rounds: int | None = None
    values: Any = None


class StartRound(BaseCommand, frozen=True):
    """Begin the next round of a repeat, at once or when it is due."""

    step: str
    due: int | None = None


class HandOutStep(BaseCommand, frozen=True):
    """Give a ready step to the agent, at this instant."""

    step: str
    agent: str = ""
    until: int | None = None
    at: int = 0


class RefuseOutput(BaseCommand, frozen=True):
    """Turn down what the agent handed in; `last` if somebody must decide now."""

    step: str
    findings: tuple[Mapping[str, Any], ...]
    evidence: tuple[Mapping[str, Any], ...] = ()
    last: bool = False


class RequestApproval(BaseCommand, frozen=True):
    """Ask a person."""

    step: str
    digest: str
    text: str
    by: tuple[str, ...] = ()
    expires: int | None = None


class AskPerson(BaseCommand, frozen=True):
    """Ask a person in the middle of a step that calls a tool: about the tool, or what the tool wants to know."""

    step: str
    digest: str
    text: str
    about: About
    schema: Any = None


class GiveApproval(BaseCommand, frozen=True):
    """Say yes to exactly what the digest stands for, at this instant; with what was asked for."""

    step: str
    digest: str
    reason: str
    at: int = 0
    content: Any = None


class RejectApproval(BaseCommand, frozen=True):
    """Say no, at this instant."""

    step: str
    digest: str
    reason: str
    at: int = 0


class ExpireApproval(BaseCommand, frozen=True):
    """Note that nobody answered in time."""

    step: str


class StartAttempt(BaseCommand, frozen=True):
    """Begin a try of a step, and say what its tool says of itself."""

    step: str
    effect: Effect | None = None
    idempotent: bool = False
    capture: Any = None


class CompleteStep(BaseCommand, frozen=True):
    """Report that a step's work is done."""

    step: str
    output: Any = None
    proof: Proof = Proof.VERIFIED
    checks: tuple[str, ...] = ()
    took: int = 0
    evidence: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Mapping[str, Any], ...] = ()


class FailAttempt(BaseCommand, frozen=True):
    """Report that a try failed; with `due` there is another one then, without it the step has failed."""

    step: str
    category: Category
    message: str
    due: int | None = None
    took: int = 0


class RefuseResult(BaseCommand, frozen=True):
    """Report that a tool's result failed the step's checks: its effect is there, but the step is not done."""

    step: str
    output: Any
    message: str
    findings: tuple[Mapping[str, Any], ...]
    evidence: tuple[Mapping[str, Any], ...] = ()
    took: int = 0


class DeferStep(BaseCommand, frozen=True):
    """Report that the tool wants to be called again then."""

    step: str
    due: int


class LoseAttempt(BaseCommand, frozen=True):
    """Report that a try began whose outcome will never be known."""

    step: str


class NoteLateAnswer(BaseCommand, frozen=True):
    """Write down what a tool answered when its attempt had been given up."""

    step: str
    attempt: int
    output: Any = None
    category: Category | None = None
    message: str = ""


class FailStep(BaseCommand, frozen=True):
    """Report that a step that holds other steps has failed."""

    step: str
    category: Category
    message: str


class SkipStep(BaseCommand, frozen=True):
    """Leave a step out."""

    step: str
    reason: str


class RetryStep(BaseCommand, frozen=True):
    """Try a failed or uncertain step again."""

    step: str
    reason: str


class AcceptStep(BaseCommand, frozen=True):
    """Count an uncertain step as completed."""

    step: str
    reason: str
    output: Any = None


# --- the undo of a step ---------------------------------------------------------------------------


class StartUndo(BaseCommand, frozen=True):
    """Begin a try of a step's undo."""

    step: str
    idempotent: bool = False
    values: Any = None


class FailUndo(BaseCommand, frozen=True):
    """Report that a try of an undo failed; with `due` there is another one then, else it was the last."""

    step: str
    category: Category
    message: str
    due: int | None = None
    took: int = 0


class LoseUndo(BaseCommand, frozen=True):
    """Report that a try of an undo began whose outcome will never be known."""

    step: str


class CompensateStep(BaseCommand, frozen=True):
    """Report that a step is undone, and how."""

    step: str
    how: How
    description: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)
    took: int = 0


# --- plans ------------------------------------------------------------------------------------------


class SavePlan(BaseCommand, frozen=True):
    """Keep a version of a plan."""

    definition: str
    name: str
    steps: int
    note: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)


class RetirePlan(BaseCommand, frozen=True):
    """Offer the plan no longer."""

    reason: str


RunCommand: TypeAlias = (
    StartRun
    | PauseRun
    | ResumeRun
    | CancelRun
    | ExpireRun
    | FinishRun
    | StartCompensation
    | FinishCompensation
    | SetVars
    | RecordDecision
    | RecordAction
)
WaitCommand: TypeAlias = (
    HandOutStep | RefuseOutput | RequestApproval | AskPerson | GiveApproval | RejectApproval | ExpireApproval
)
HolderCommand: TypeAlias = OpenStep | StartRound | FailStep
AttemptCommand: TypeAlias = StartAttempt | FailAttempt | RefuseResult | DeferStep | LoseAttempt
EndCommand: TypeAlias = CompleteStep | SkipStep | RetryStep | AcceptStep
UndoCommand: TypeAlias = StartUndo | FailUndo | LoseUndo | CompensateStep
StepCommand: TypeAlias = WaitCommand | HolderCommand | AttemptCommand | EndCommand | UndoCommand | NoteLateAnswer
PlanCommand: TypeAlias = SavePlan | RetirePlan
Command: TypeAlias = RunCommand | StepCommand
