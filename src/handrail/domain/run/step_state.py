"""The state of a step: replays the events about it.

Pure. It never refuses an event: it has already happened. state.py has the run as a whole, and calls this."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal.event import (
    About,
    AnswerCameLate,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalOverridden,
    ApprovalRejected,
    ApprovalRequested,
    ApprovalWithdrawn,
    AttemptEvent,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    EndEvent,
    Entry,
    HolderEvent,
    OutputRefused,
    Proof,
    RetryScheduled,
    RoundStarted,
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
    UndoBecameUncertain,
    UndoEvent,
    UndoFailed,
    UndoLost,
    UndoStarted,
    WaitEvent,
)
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.run.status import StepStatus
from handrail.domain.run.tool_question import PersonReply


class ExceptionKind(StrEnum):
    """How a step was left out by somebody, rather than by its own condition."""

    SKIPPED_STEP = "skipped_step"
    SKIPPED_CHECK = "skipped_check"
    OVERRIDE = "override"


GATES_PASSED: Final = frozenset({ExceptionKind.SKIPPED_CHECK, ExceptionKind.OVERRIDE})
"""The exceptions that a list of runs counts: somebody went past a gate."""


class StepState(Struct, frozen=True, kw_only=True):
    """The state of one step."""

    status: StepStatus = StepStatus.PENDING
    attempts: int = 0
    undo_attempts: int = 0
    tries: int = 0
    """How many outputs were refused since a person last decided."""
    unchecked: bool = False
    """Whether its last output could not be checked, so that it was no try."""
    output: Any = None
    started: int | None = None
    ended: int | None = None
    opened: int | None = None
    """When it started, or started again: somebody had it retried."""
    tried: int | None = None
    """When its last attempt started, or that of its undo."""
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
    asked: int = 0
    """How often a person was asked for this approval."""
    unanswered: int = 0
    """How often in a row the time to answer passed."""
    withdrawn: bool = False
    """Whether the approval was given and then withdrawn, because a value has changed, and was not given again since."""
    approvers: tuple[str, ...] = ()
    """Who has approved what is asked now."""
    channel: str = ""
    """How the answer came."""
    undo_values: Any = None
    """The inputs of the workflow that undoes it."""
    exception: ExceptionKind | None = None
    """How somebody left it out or went past it."""
    broke: int = 0
    """The event at which its undo last failed permanently."""
    undo_capture: Any = None
    """What another tool that undoes it captured before the first attempt of that, so that it can be repeated."""
    undo_lost: int = 0
    """How many attempts of its undo were lost in crashes since it was last requested."""
    undo_uncertain: bool = False
    """Whether its undo started and its outcome will never be known: someone must decide."""

    @property
    def looked_at(self) -> str:
        """How it was looked at, for readers: `verified` and `checked` only if a check ran, else `claimed` or nothing.

        What handrail executed or a person approved is stored as `verified`, too: nobody looked at the world for it."""
        return self.proof if self.checks or self.proof == Proof.CLAIMED else ""


# Replay writes this text into rows: another wording would make the rows of existing stores differ from a replay.
EXPIRED: Final = "nobody answered in time"

UNDO_UNKNOWN: Final = "its undo was interrupted, and whether it is undone is unknown"

ApprovalAnswer: TypeAlias = ApprovalGiven | ApprovalRejected | ApprovalExpired | ApprovalWithdrawn
"""What can become of a question."""


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
            return replace(_started(opened, entry), rounds=event.rounds, values=event.values)
        case RoundStarted():
            return replace(state, round=event.round, due=event.due)
        case _:
            assert_never(event)


def _after_wait(state: StepState, event: WaitEvent, entry: Entry) -> StepState:
    match event:
        case StepHandedOut():
            return replace(_started(state, entry), status=StepStatus.WAITING, agent=event.agent, due=event.until)
        case OutputRefused(unchecked=True):
            return replace(state, unchecked=True)
        case OutputRefused(output=None):
            return replace(state, tries=state.tries + 1, unchecked=False)
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
        more = {
            "effects": list(event.effects),
            "unshown": event.unshown,
            "approvals": event.approvals if event.approvals > 1 else 0,
            "not_by": event.not_by,
        }
        shown = {**asked, **{name: value for name, value in more.items() if value}}
        asking = replace(_started(waiting, entry), started=entry.at, effect=Effect.NONE, values=shown)
        return replace(asking, asked=state.asked + 1, approvers=())
    form = {"schema": event.schema} if event.schema is not None else {}
    return replace(_started(waiting, entry), values={**asked, **form})


def _started(state: StepState, entry: Entry) -> StepState:
    """The step, which has started now unless it had before."""
    if state.opened is not None and state.started is not None:
        return state
    opened = entry.at if state.opened is None else state.opened
    return replace(state, started=entry.at if state.started is None else state.started, opened=opened)


def _after_reply(state: StepState, event: ApprovalAnswer, entry: Entry) -> StepState:
    """A tool step continues with a person's answer, unless the person rejected the tool itself."""
    if state.about is About.TOOL and not isinstance(event, ApprovalGiven):
        return replace(_after_answer(state, event, entry), about=None, digest="", values=None)
    content = event.content if isinstance(event, ApprovalGiven) else None
    reply = PersonReply(agreed=isinstance(event, ApprovalGiven), content=content)
    answers = {**(state.answers or {}), state.digest: reply}
    again = replace(state, status=StepStatus.READY, due=None, digest="", about=None, values=None)
    return replace(again, answers=answers)


def _after_answer(state: StepState, event: ApprovalAnswer, entry: Entry) -> StepState:
    ended = replace(state, actor=entry.actor, ended=entry.at, due=None)
    match event:
        case ApprovalGiven(missing=missing) if missing:
            return replace(state, approvers=(*state.approvers, entry.actor))
        case ApprovalGiven():
            given = replace(ended, approvers=(*state.approvers, entry.actor), withdrawn=False, unanswered=0)
            return replace(given, status=StepStatus.COMPLETED, proof="verified", channel=event.channel)
        case ApprovalRejected():
            failed = replace(ended, channel=event.channel, unanswered=0)
            return replace(failed, status=StepStatus.FAILED, category=Category.PERMISSION, message=event.reason)
        case ApprovalExpired(again=True):
            return replace(_asked_again(state), unanswered=state.unanswered + 1)
        case ApprovalExpired():
            failed = replace(ended, unanswered=0)
            return replace(failed, status=StepStatus.FAILED, category=Category.TIMEOUT, message=EXPIRED)
        case ApprovalWithdrawn():
            was_given = state.status is StepStatus.COMPLETED
            return replace(_asked_again(state), withdrawn=state.withdrawn or was_given)
        case _:
            assert_never(event)


def _asked_again(state: StepState) -> StepState:
    """An approval that will be asked for again: nothing of an earlier question counts any longer."""
    opened = None if state.status is StepStatus.COMPLETED else state.opened  # it was over: it starts again
    again = replace(state, status=StepStatus.READY, digest="", due=None, ended=None, opened=opened, values=None)
    return replace(again, approvers=(), proof="", channel="", actor="")


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
        opened=entry.at if state.opened is None else state.opened,
        tried=entry.at,
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
            return _after_skip(ended, event, entry)
        case ApprovalOverridden():
            return replace(state, exception=ExceptionKind.OVERRIDE)
        case StepCancelled():
            return replace(ended, status=StepStatus.CANCELLED)
        case StepRetried() if state.undo_uncertain:
            # Its next attempt is due now; without a due time it would count as lost again.
            again = replace(state, status=StepStatus.COMPENSATING, due=entry.at, failures=0)
            return replace(again, undo_lost=0, undo_uncertain=False, message="")
        case StepRetried():
            again = replace(state, status=StepStatus.READY, ended=None, due=None, failures=0, lost=0, asks=False)
            # Only a person can repeat a step that was refused too often; an agent that gives up and tries again can't.
            tries = 0 if state.asks else state.tries
            return replace(again, tries=tries, digest="", about=None, granted=state.round + 1, opened=None)
        case StepAccepted():
            done = replace(ended, status=StepStatus.COMPLETED, output=event.output, proof="claimed")
            return replace(done, actor=entry.actor, category=None, message="")
        case StepCarried():
            status = StepStatus.SKIPPED if event.is_skipped else StepStatus.COMPLETED
            done = replace(ended, status=status, output=event.output, effect=Effect.NONE)
            return replace(done, actor=entry.actor, started=entry.at, proof=event.proof.value, checks=event.checks)
        case _:
            assert_never(event)


def _after_skip(state: StepState, event: StepSkipped, entry: Entry) -> StepState:
    skipped = replace(state, status=StepStatus.SKIPPED, actor=entry.actor, message=event.reason, undo_uncertain=False)
    is_somebody = kind_of(entry.actor) in {ActorKind.PERSON, ActorKind.AGENT}
    is_undo = state.status is StepStatus.COMPENSATION_FAILED or state.undo_uncertain
    if state.exception is not None or is_undo or not is_somebody:
        return skipped  # a step whose undo was given up was done: it is listed as not undone
    kind = ExceptionKind.SKIPPED_CHECK if event.was_gated else ExceptionKind.SKIPPED_STEP
    return replace(skipped, exception=kind)


def _after_undo(state: StepState, event: UndoEvent, entry: Entry) -> StepState:
    match event:
        case UndoStarted():
            # A first attempt, or one after a permanent failure, counts its failures and losses from zero.
            is_again = state.status is StepStatus.COMPENSATING
            failures, lost = (state.failures, state.undo_lost) if is_again else (0, 0)
            captured = state.undo_capture if is_again and event.capture is None else event.capture
            undoing = replace(state, status=StepStatus.COMPENSATING, undo_attempts=event.attempt, due=None)
            undoing = replace(undoing, repeatable=event.idempotent, failures=failures, undo_lost=lost)
            return replace(undoing, undo_values=event.values, undo_capture=captured, tried=entry.at)
        case UndoFailed():
            status = StepStatus.COMPENSATION_FAILED if event.final else state.status
            failed = replace(state, status=status, due=event.due, failures=state.failures + 1)
            broke = entry.n if event.final else state.broke
            return replace(failed, category=event.category, message=event.message, broke=broke)
        case UndoLost():
            # Due now, like any next attempt: an attempt without a due time is one that is in progress, or lost.
            return replace(state, due=entry.at, undo_lost=state.undo_lost + 1)
        case UndoBecameUncertain():
            unknown = replace(state, status=StepStatus.UNCERTAIN, due=None, undo_uncertain=True)
            return replace(unknown, category=None, message=UNDO_UNKNOWN)
        case StepCompensated():
            done = replace(state, status=StepStatus.COMPENSATED, compensation=event.how.value, ended=entry.at, due=None)
            return replace(done, category=None, message="", undo_uncertain=False)
        case _:
            assert_never(event)
