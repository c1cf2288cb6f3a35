"""The story of a run: each of its events as one sentence for people. Values in, words out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from handrail.domain.event import (
    ActionRecorded,
    AnswerCameLate,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalRejected,
    ApprovalRequested,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    CompensationStarted,
    DecisionRecorded,
    Entry,
    OutputRefused,
    Proof,
    RetryScheduled,
    RoundStarted,
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
    UndoFailed,
    UndoStarted,
    VarsSet,
)
from handrail.engine.clock import instant_text
from handrail.interfaces.pictures.caption import plain

HOW: Final = {
    "executed": "undone",
    "by_agent": "undone by the agent",
    "recorded": "undone by hand, as somebody recorded",
    "not_needed": "not in need of undoing",
}


Words: TypeAlias = str | Callable[[Any, Entry], str]
"""A sentence with `{e}` for the event and `{actor}` for who caused it; or what makes one."""


def told(entry: Entry) -> str:
    """One event as a line: when, and what happened."""
    return f"{instant_text(entry.at)[11:19]}  {sentence(entry)}"


def sentence(entry: Entry) -> str:
    """What happened."""
    event = entry.event
    words = SENTENCES.get(type(event), type(event).__name__)
    text = words.format(e=event, actor=entry.actor) if isinstance(words, str) else words(event, entry)
    return plain(f"{event.step}: {text}" if isinstance(event, StepEvent) else text)


def _tries(begins: str) -> Callable[[Any, Entry], str]:
    return lambda event, _: begins if event.attempt == 1 else f"{begins}, try {event.attempt}"


def _in(words: str) -> Callable[[Any, Entry], str]:
    return lambda event, entry: f"{words} in {max(0, event.due - entry.at) / 1_000:.1f} s"


def _compensated(event: RunCompensated, _entry: Entry) -> str:
    left = f"; NOT undone: {', '.join(event.not_compensated)}" if event.not_compensated else ""
    return f"everything that can be undone is undone{left}"


def _completed(event: StepCompleted, entry: Entry) -> str:
    return "done" if event.proof is Proof.VERIFIED else f"done, says {entry.actor}"


SENTENCES: Final[Mapping[type, Words]] = {
    RunStarted: lambda event, _: f"{event.workflow} begins" + (f": {event.goal}" if event.goal else ""),
    RunPaused: "paused by {actor}: {e.reason}",
    RunResumed: "resumed by {actor}: {e.reason}",
    RunCancelled: "cancelled by {actor}: {e.reason}",
    RunCompleted: "everything is done",
    RunFailed: "the run has failed: {e.message}",
    CompensationStarted: lambda event, _: f"undoing {', '.join(event.steps) or 'nothing'}: {event.reason}",
    RunCompensated: _compensated,
    RunCompensationFailed: lambda event, _: f"NOT everything could be undone: {', '.join(event.steps)}",
    VarsSet: lambda event, _: f"values for later: {', '.join(event.vars)}",
    DecisionRecorded: "{actor} decided: {e.decision} ({e.reason})",
    ActionRecorded: "{actor} did: {e.description}",
    AttemptStarted: _tries("begins"),
    AttemptFailed: "try {e.attempt} failed ({e.category.value}): {e.message}",
    AttemptLost: "try {e.attempt} was cut off; it is repeated",
    AnswerCameLate: "try {e.attempt} answered too late; this changes nothing",
    RetryScheduled: _in("the next try is"),
    StepDeferred: _in("goes on"),
    StepBecameUncertain: "was cut off, and nobody knows whether it happened",
    StepCompleted: _completed,
    StepFailed: "has failed for good ({e.category.value}): {e.message}",
    StepSkipped: "skipped: {e.reason}",
    StepCancelled: "stopped",
    StepRetried: "is to be tried again, says {actor}: {e.reason}",
    StepAccepted: "did happen, says {actor}: {e.reason}",
    StepCarried: "carried over from the run before",
    StepOpened: lambda event, _: "begins" if event.rounds is None else f"begins, {event.rounds} round(s)",
    RoundStarted: lambda event, _: f"round {event.round + 1}",
    StepHandedOut: lambda event, _: f"handed to {event.agent or 'the agent'}",
    OutputRefused: lambda event, _: f"what was handed in is refused, {len(event.findings)} finding(s)",
    UndoStarted: _tries("its undo begins"),
    UndoFailed: "its undo failed ({e.category.value}): {e.message}",
    StepCompensated: lambda event, _: HOW[event.how.value],
    ApprovalRequested: "a person is asked: {e.text}",
    ApprovalGiven: "yes, says {actor}: {e.reason}",
    ApprovalRejected: "no, says {actor}: {e.reason}",
    ApprovalExpired: "nobody answered in time",
}
