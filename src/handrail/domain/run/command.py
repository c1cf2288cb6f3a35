"""Commands: what callers can ask of a run or a plan, as frozen values. The set is closed.

Who asks, and when, is passed to dispatch beside the command. decide.py and plan.py decide whether it is granted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field

from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal.event import About, ActionKind, Fork, How, Mode, Outcome, Proof, StepCarried
from handrail.domain.run.baseline import Baseline


class BaseCommand(Struct, frozen=True, kw_only=True):
    """The shape all commands share."""


# --- a run as a whole ---------------------------------------------------------------------------


class StartRun(BaseCommand, frozen=True):
    """Start a run of the definition with this content hash; inputs are validated and complete."""

    definition: str = ""
    workflow: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)
    goal: str = ""
    mode: Mode = Mode.RUN
    deadline: int | None = None
    priority: int = 0
    fork: Fork | None = None
    carried: tuple[StepCarried, ...] = ()
    """What a fork takes over from the run it was forked from."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    """The caller's key for this start: repeated with the same key, one run is started. Only its digest is stored."""
    asked: str = ""
    """The digest of the whole request, so that the key can't be reused for a different one."""
    pins: Mapping[str, str] = field(default_factory=dict)
    """By tool: the content hash of its server's description of it."""
    project: str = ""
    """The id of the project that it belongs to; dispatch fills it in."""
    behalf: str = ""
    """The person that an agent starts it for."""
    baseline: Baseline | None = None
    """The state of the project; dispatch fills it in."""
    trace: Mapping[str, Any] = field(default_factory=dict)
    """The trace that the caller is in; dispatch fills it in."""


class RecordProject(BaseCommand, frozen=True):
    """Record the state of the project when a step is given out."""

    step: str
    baseline: Baseline


class AdoptRun(BaseCommand, frozen=True):
    """Give a run that has no project, or a forgotten one, to this project."""

    project: str
    reason: str


class PauseRun(BaseCommand, frozen=True):
    """Stop new attempts from starting; `again` if a person takes over a pause of somebody else."""

    reason: str
    again: bool = False


class ResumeRun(BaseCommand, frozen=True):
    """Continue after a pause."""

    reason: str


class CancelRun(BaseCommand, frozen=True):
    """End the run before its work is done."""

    reason: str


class ExpireRun(BaseCommand, frozen=True):
    """End the run because its deadline has passed: undo what it did if that is its policy, else fail."""


class FinishRun(BaseCommand, frozen=True):
    """End the run: completed if every step is, otherwise failed; failed too if its outputs are invalid."""

    outputs: Mapping[str, Any] = field(default_factory=dict)
    flaw: str = ""


class StartCompensation(BaseCommand, frozen=True):
    """Undo what the run has done."""

    reason: str


class FinishCompensation(BaseCommand, frozen=True):
    """End the compensation: compensated if every undo worked."""


class SetVars(BaseCommand, frozen=True):
    """Set values for later steps."""

    vars: Mapping[str, Any]


class RecordDecision(BaseCommand, frozen=True):
    """Record a decision and its reason."""

    decision: str
    reason: str
    step: str | None = None
    alternatives: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class RecordAction(BaseCommand, frozen=True):
    """Record what someone did; in a recorded run its outcome moves the step."""

    description: str
    step: str | None = None
    outcome: Outcome | None = None
    action: ActionKind = ActionKind.PERFORMED
    output: Any = None
    details: Mapping[str, Any] = field(default_factory=dict)


# --- a step ---------------------------------------------------------------------------------------


class OpenStep(BaseCommand, frozen=True):
    """Open a step that contains other steps."""

    step: str
    rounds: int | None = None
    values: Any = None


class StartRound(BaseCommand, frozen=True):
    """Start the next round of a repeat, now or when it is due."""

    step: str
    due: int | None = None


class HandOutStep(BaseCommand, frozen=True):
    """Assign a ready step to an agent; `at` is the time now."""

    step: str
    agent: str = ""
    until: int | None = None
    at: int = 0


class RefuseOutput(BaseCommand, frozen=True):
    """Refuse the output that the agent submitted; after `tries_max` tries a person must decide (0: never)."""

    step: str
    findings: tuple[Mapping[str, Any], ...]
    evidence: tuple[Mapping[str, Any], ...] = ()
    unchecked: bool = False
    """Whether a check could not be applied, for reasons that the agent can't change: it is no try."""
    tries_max: int = 0


class RequestApproval(BaseCommand, frozen=True):
    """Ask a person what the approval says now, until `expires`."""

    step: str
    expires: int | None = None


class AskPerson(BaseCommand, frozen=True):
    """Ask a person during a tool step: about the tool, or a question of the tool."""

    step: str
    digest: str
    text: str
    about: About
    schema: Any = None


class GiveApproval(BaseCommand, frozen=True):
    """Approve exactly what the digest identifies; `content` is the answer that was asked for."""

    step: str
    digest: str
    reason: str
    at: int = 0
    content: Any = None
    who: str = ""
    """The actor who answers: several approvals must come from different people."""
    channel: str = ""
    behalf: str = ""
    is_proven: bool = False
    """Whether the passphrase was asked for, where one is needed: engine/running/answers.py says so."""


class RejectApproval(BaseCommand, frozen=True):
    """Reject what the digest identifies."""

    step: str
    digest: str
    reason: str
    at: int = 0
    channel: str = ""
    behalf: str = ""
    is_proven: bool = False


class ExpireApproval(BaseCommand, frozen=True):
    """Record that the time to answer is over."""

    step: str


class StartAttempt(BaseCommand, frozen=True):
    """Start an attempt of a step, with what its tool declares."""

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
    """Report that an attempt failed; with `due` another one follows then, without it the step has failed."""

    step: str
    category: Category
    message: str
    due: int | None = None
    took: int = 0


class RefuseResult(BaseCommand, frozen=True):
    """Report that a tool's result failed the step's checks: it had its effect, but the step is not done."""

    step: str
    output: Any
    message: str
    findings: tuple[Mapping[str, Any], ...]
    evidence: tuple[Mapping[str, Any], ...] = ()
    took: int = 0


class DeferStep(BaseCommand, frozen=True):
    """Report that the tool asked to be called again at `due`."""

    step: str
    due: int


class LoseAttempt(BaseCommand, frozen=True):
    """Report that an attempt started and its outcome will never be known."""

    step: str


class NoteLateAnswer(BaseCommand, frozen=True):
    """Record an answer that came after its attempt was given up."""

    step: str
    attempt: int
    output: Any = None
    category: Category | None = None
    message: str = ""


class FailStep(BaseCommand, frozen=True):
    """Report that a step failed, such as one that contains other steps."""

    step: str
    category: Category
    message: str


class SkipStep(BaseCommand, frozen=True):
    """Skip a step; `is_condition` if its own condition says so, rather than somebody."""

    step: str
    reason: str
    is_condition: bool = False
    channel: str = ""
    """How it was asked for, if it goes past an approval."""
    is_proven: bool = False
    """Whether the passphrase was asked for then, where one is needed."""


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
    """Start an attempt of a step's undo; an idempotent one is called again if it is lost."""

    step: str
    idempotent: bool = False
    values: Any = None
    capture: Any = None


class FailUndo(BaseCommand, frozen=True):
    """Report that an attempt of an undo failed; with `due` another one follows then, else it was the last."""

    step: str
    category: Category
    message: str
    due: int | None = None
    took: int = 0


class LoseUndo(BaseCommand, frozen=True):
    """Report that an undo started and its outcome will never be known."""

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
    """Save a version of a plan."""

    definition: str
    name: str
    steps: int
    note: str = ""
    pins: Mapping[str, str] = field(default_factory=dict)
    project: str = ""


class RetirePlan(BaseCommand, frozen=True):
    """Stop offering the plan."""

    reason: str


RunCommand: TypeAlias = (
    StartRun
    | RecordProject
    | AdoptRun
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
