"""The words for each event of a run, in one line: for logs, and for the latest event of a run.

Pure. What people and agents decided is in whole sentences in story.py; the words for a way of undoing and for who
acted are the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from handrail.domain.history.story_words import HOW, is_somebody
from handrail.domain.journal.event import (
    ActionRecorded,
    AnswerCameLate,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalOverridden,
    ApprovalRejected,
    ApprovalRequested,
    ApprovalWithdrawn,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    CompensationStarted,
    DecisionRecorded,
    Entry,
    How,
    OutputRefused,
    ProjectRecorded,
    Proof,
    RetryScheduled,
    RoundStarted,
    RunAdopted,
    RunCancelled,
    RunCompensated,
    RunCompensationFailed,
    RunCompleted,
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
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    UndoStarted,
    VarsSet,
)
from handrail.domain.plural import plural

Words: TypeAlias = str | Callable[[Any, Entry], str]
"""Words with `{e}` for the event and `{actor}` for who caused it; or a function that returns them."""


def event_line(entry: Entry) -> str:
    """What happened, with the path of the step first if it is about one."""
    words = event_words(entry)
    return f"{entry.event.step}: {words}" if isinstance(entry.event, StepEvent) else words


def event_words(entry: Entry) -> str:
    """What happened, without the name of the step."""
    words = LINES[type(entry.event)]
    return words.format(e=entry.event, actor=entry.actor) if isinstance(words, str) else words(entry.event, entry)


def _tries(words: str) -> Callable[[Any, Entry], str]:
    return lambda event, _: words if event.attempt == 1 else f"{words}, try {event.attempt}"


def _in(words: str) -> Callable[[Any, Entry], str]:
    return lambda event, entry: f"{words} in {max(0, event.due - entry.at) / 1_000:.1f} s"


def _compensated(event: RunCompensated, _entry: Entry) -> str:
    left = f"; NOT undone: {', '.join(event.not_compensated)}" if event.not_compensated else ""
    return f"run compensated{left}"


def _compensation_failed(event: RunCompensationFailed, _entry: Entry) -> str:
    return f"compensation failed; NOT undone: {', '.join(event.remaining)}"


def _answered(what: str, event: ApprovalGiven | ApprovalRejected, entry: Entry) -> str:
    behalf = f" for {event.behalf}" if event.behalf else ""
    channel = f" ({event.channel})" if event.channel else ""
    missing = event.missing if isinstance(event, ApprovalGiven) else 0
    more = f", {missing} more needed" if missing else ""
    return f"{what} by {entry.actor}{behalf}{channel}{more}: {event.reason}"


def _completed(event: StepCompleted, entry: Entry) -> str:
    if event.proof is Proof.VERIFIED:
        return "completed"
    return "completed, checked" if event.proof is Proof.CHECKED else f"completed, claimed by {entry.actor}"


def _skipped(event: StepSkipped, entry: Entry) -> str:
    who = f" by {entry.actor}" if is_somebody(entry.actor) else ""
    return f"skipped{who}{', with its checks' if event.was_gated else ''}: {event.reason}"


LINES: Final[Mapping[type, Words]] = {
    RunStarted: lambda event, _: f"{event.workflow} started" + (f": {event.goal}" if event.goal else ""),
    ProjectRecorded: "the project is recorded: {e.branch} {e.commit}",
    RunAdopted: "adopted by {actor} into {e.project}: {e.reason}",
    RunPaused: "paused by {actor}: {e.reason}",
    RunResumed: "resumed by {actor}: {e.reason}",
    RunCancelled: "cancelled by {actor}: {e.reason}",
    RunCompleted: "run completed",
    RunFailed: "run failed: {e.message}",
    CompensationStarted: lambda event, _: f"undoing {', '.join(event.steps) or 'nothing'}: {event.reason}",
    RunCompensated: _compensated,
    RunCompensationFailed: _compensation_failed,
    VarsSet: lambda event, _: f"variables set: {', '.join(event.vars)}",
    DecisionRecorded: "{actor} decided: {e.decision} ({e.reason})",
    ActionRecorded: "{actor} did: {e.description}",
    AttemptStarted: _tries("started"),
    AttemptFailed: "try {e.attempt} failed ({e.category.value}): {e.message}",
    AttemptLost: "try {e.attempt} was interrupted; trying again",
    AnswerCameLate: "try {e.attempt} answered too late; ignored",
    RetryScheduled: _in("next try"),
    StepDeferred: _in("continues"),
    StepBecameUncertain: "interrupted; unknown whether it took effect",
    StepCompleted: _completed,
    StepFailed: "failed permanently ({e.category.value}): {e.message}",
    StepSkipped: _skipped,
    ApprovalOverridden: "approval OVERRIDDEN by {actor}: {e.reason}",
    StepCancelled: "cancelled",
    StepRetried: "retry requested by {actor}: {e.reason}",
    StepAccepted: "accepted as completed by {actor}: {e.reason}",
    StepCarried: "carried over from the forked run",
    StepOpened: lambda event, _: "started" if event.rounds is None else f"started, {plural(event.rounds, 'round')}",
    RoundStarted: lambda event, _: f"round {event.round + 1}",
    StepHandedOut: lambda event, _: f"assigned to {event.agent or 'the agent'}",
    OutputRefused: lambda event, _: f"output not accepted, {plural(len(event.findings), 'finding')}",
    UndoStarted: _tries("undoing"),
    UndoLost: "undo was interrupted; undoing again",
    UndoBecameUncertain: "undo interrupted; unknown whether it is undone",
    UndoFailed: "undo failed ({e.category.value}): {e.message}",
    StepCompensated: lambda event, _: "undone" if event.how is How.EXECUTED else f"undone ({HOW[event.how]})",
    ApprovalRequested: "approval requested: {e.text}",
    ApprovalGiven: lambda event, entry: _answered("approved", event, entry),
    ApprovalRejected: lambda event, entry: _answered("rejected", event, entry),
    ApprovalExpired: lambda event, _: "approval expired" + (", asking again" if event.again else ""),
    ApprovalWithdrawn: lambda event, _: f"approval withdrawn, asking again: {', '.join(event.changed)} changed",
}
