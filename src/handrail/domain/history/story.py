"""A run as a story: what people and agents decided entry by entry, in their words; the routine between is
folded into one sentence with the range of its entries.

Pure: a function of the events. why.py tells why a run is where it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from handrail.domain.history.story_words import (
    EventWords,
    fixed,
    named,
    refused,
    requested,
    somebody,
    worded,
)
from handrail.domain.journal.event import (
    ActionRecorded,
    ApprovalExpired,
    ApprovalGiven,
    ApprovalOverridden,
    ApprovalRejected,
    ApprovalRequested,
    ApprovalWithdrawn,
    AttemptFailed,
    CompensationStarted,
    DecisionRecorded,
    Entry,
    Event,
    OutputRefused,
    RetryScheduled,
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
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepRetried,
    StepSkipped,
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    UndoStarted,
    step_of,
)
from handrail.domain.plural import plural
from handrail.domain.policy.actor import ActorKind, kind_of

MESSAGE: Final = "message"


class StoryKind(StrEnum):
    """What an entry of a story is about."""

    START = "start"
    ROUTINE = "routine"
    APPROVAL = "approval"
    DECISION = "decision"
    ACTION = "action"
    REFUSED = "refused"
    FAILURE = "failure"
    UNDO = "undo"
    CONTROL = "controlled"
    END = "end"


class StoryEntry(Struct, frozen=True, kw_only=True):
    """One entry: a sentence, and the events that it tells of."""

    kind: StoryKind
    first: int
    last: int
    at: int
    until: int
    text: str
    actor: str = ""
    step: str = ""
    words: str = ""
    """What a person or an agent wrote, or what a tool said."""
    facts: Mapping[str, str] = {}


WORDED: Final[Mapping[type[Any], tuple[StoryKind, Callable[[Any, Entry], EventWords]]]] = {
    RunStarted: (StoryKind.START, lambda e, at: EventWords(f"{somebody(at)} started {e.workflow}", words=e.goal)),
    RunAdopted: (StoryKind.CONTROL, worded("{who} moved the run to this project", words="reason")),
    RunPaused: (StoryKind.CONTROL, worded("{who} paused the run", words="reason")),
    RunResumed: (StoryKind.CONTROL, worded("{who} resumed the run", words="reason")),
    RunCancelled: (StoryKind.CONTROL, worded("{who} cancelled the run", words="reason")),
    RunCompleted: (StoryKind.END, fixed("The run is completed")),
    RunFailed: (StoryKind.END, worded("The run failed", words=MESSAGE)),
    RunCompensated: (StoryKind.END, lambda e, _: EventWords(_undone(e.not_compensated))),
    RunCompensationFailed: (
        StoryKind.END,
        lambda e, _: EventWords(f"Not all is undone: the undo of {named(e.steps)} failed"),
    ),
    CompensationStarted: (StoryKind.UNDO, lambda e, at: EventWords(_undoing(e, at), words=e.reason)),
    DecisionRecorded: (
        StoryKind.DECISION,
        lambda e, at: EventWords(
            f"{somebody(at)} decided: {e.decision}",
            words=e.reason,
            facts={"instead of": "; ".join(e.alternatives)} if e.alternatives else {},
        ),
    ),
    ActionRecorded: (StoryKind.ACTION, worded("{who} reports", words="description")),
    StepRetried: (StoryKind.DECISION, worded("{who} has {step} tried again", words="reason")),
    StepAccepted: (StoryKind.DECISION, worded("{who} says that {step} did happen", words="reason")),
    StepSkipped: (StoryKind.DECISION, worded("{who} skipped {step}", words="reason")),
    ApprovalOverridden: (StoryKind.DECISION, worded("{who} went past the approval {step}", words="reason")),
    StepFailed: (StoryKind.FAILURE, worded("{step} failed permanently ({category})", words=MESSAGE)),
    StepBecameUncertain: (StoryKind.FAILURE, worded("{step} was cut short: its outcome is unknown")),
    UndoBecameUncertain: (StoryKind.FAILURE, worded("The undo of {step} was cut short: its outcome is unknown")),
    UndoFailed: (StoryKind.FAILURE, worded("The undo of {step} failed ({category})", words=MESSAGE)),
    OutputRefused: (StoryKind.REFUSED, refused),
    ApprovalRequested: (StoryKind.APPROVAL, requested),
    ApprovalGiven: (
        StoryKind.APPROVAL,
        lambda e, at: EventWords(
            f"{somebody(at)} approved {e.step}"
            + (f"; {plural(e.missing, 'more yes', 'more')} needed" * bool(e.missing)),
            words=e.reason,
            facts={"digest": e.digest} | ({"by way of": e.channel} if e.channel else {}),
        ),
    ),
    ApprovalRejected: (
        StoryKind.APPROVAL,
        lambda e, at: EventWords(f"{somebody(at)} rejected {e.step}", words=e.reason, facts={"digest": e.digest}),
    ),
    ApprovalExpired: (
        StoryKind.APPROVAL,
        lambda e, _: EventWords(f"The time to answer {e.step} passed" + ("; it is asked again" if e.again else "")),
    ),
    ApprovalWithdrawn: (
        StoryKind.APPROVAL,
        lambda e, _: EventWords(
            f"The approval {e.step} no longer counts: {named(e.changed)} changed; it is asked again"
        ),
    ),
}
"""The words for each event; all others are routine."""
UNDO_ROUTINE: Final = (UndoStarted, UndoLost, StepCompensated)


def story_of(entries: Sequence[Entry]) -> list[StoryEntry]:
    """The story of a run, in the order of its journal."""
    teller = _Teller()
    following: list[Entry | None] = [*(later for _, later in pairwise(entries)), None]
    for entry, later in zip(entries, following, strict=True):
        teller.take(entry, later.event if later is not None else None)
    teller.fold()
    return teller.story


class _Teller:
    """Tells events one by one, and folds what is routine."""

    def __init__(self) -> None:
        self.story: list[StoryEntry] = []
        self.routine: list[Entry] = []
        self.is_undo = False

    def take(self, entry: Entry, later: Event | None) -> None:
        event = entry.event
        if isinstance(event, UNDO_ROUTINE):
            self._add(entry, is_undo=True)
        elif _is_routine(event, later, entry):
            self._add(entry, is_undo=False)
        else:
            self._say(entry)

    def _add(self, entry: Entry, *, is_undo: bool) -> None:
        if self.routine and self.is_undo != is_undo:
            self.fold()
        self.is_undo = is_undo
        self.routine.append(entry)

    def fold(self) -> None:
        """End the sentence about what was routine."""
        if not self.routine:
            return
        first, last = self.routine[0], self.routine[-1]
        words = _undo_sentence(self.routine) if self.is_undo else _sentence(self.routine)
        self.story.append(
            StoryEntry(
                kind=StoryKind.UNDO if self.is_undo else StoryKind.ROUTINE,
                first=first.n,
                last=last.n,
                at=first.at,
                until=last.at,
                text=words,
            )
        )
        self.routine = []

    def _say(self, entry: Entry) -> None:
        # The try that failed, or the override, is described together with what it led to.
        before = self.routine.pop() if self.routine and _belongs(self.routine[-1].event, entry.event) else entry
        self.fold()
        kind, tell = WORDED[type(entry.event)]
        words = tell(entry.event, entry)
        self.story.append(
            StoryEntry(
                kind=kind,
                first=before.n,
                last=entry.n,
                at=before.at,
                until=entry.at,
                text=words.text,
                actor=entry.actor,
                step=step_of(entry.event) or getattr(entry.event, "step", None) or "",
                words=words.words,
                facts=words.facts,
            )
        )


def _is_routine(event: Event, later: Event | None, entry: Entry) -> bool:
    """Whether an event needs no entry of its own."""
    match event:
        case StepSkipped():
            return kind_of(entry.actor) not in {ActorKind.PERSON, ActorKind.AGENT}  # by its own condition
        case UndoFailed(final=False):
            return True
        case ApprovalOverridden():
            return isinstance(later, StepSkipped)  # what follows says it
        case _:
            return type(event) not in WORDED


def _belongs(before: Event, event: Event) -> bool:
    is_try = isinstance(before, AttemptFailed) and isinstance(event, StepFailed | OutputRefused)
    is_override = isinstance(before, ApprovalOverridden) and isinstance(event, StepSkipped)
    return (is_try or is_override) and step_of(before) == step_of(event)


def _sentence(routine: Sequence[Entry]) -> str:
    events = [entry.event for entry in routine]
    parts = [
        _counted(events, StepCompleted, "step", "completed"),
        _counted(events, StepSkipped, "step", "skipped by a condition"),
        _counted(events, RetryScheduled, "failed try", "repeated", nouns="failed tries"),
    ]
    words = "; ".join(part for part in parts if part)
    started = dict.fromkeys(filter(None, map(step_of, events)))
    return words or (f"{named(started)} started" if started else plural(len(events), "entry", "entries"))


def _counted(events: Iterable[Event], kind: type[Any], noun: str, verb: str, *, nouns: str = "") -> str:
    """How many events of a kind there were, and their steps; empty if there were none."""
    steps = [event.step for event in events if isinstance(event, kind)]
    return f"{plural(len(steps), noun, nouns)} {verb}: {named(dict.fromkeys(steps))}" if steps else ""


def _undo_sentence(routine: Sequence[Entry]) -> str:
    ways: dict[str, list[str]] = {}
    for entry in routine:
        if isinstance(entry.event, StepCompensated):
            ways.setdefault(entry.event.how, []).append(entry.event.step)
    if not ways:
        return f"Undoing {named(dict.fromkeys(filter(None, (step_of(entry.event) for entry in routine))))}"
    return "; ".join(f"{plural(len(steps), 'step')} undone ({HOW[how]}): {named(steps)}" for how, steps in ways.items())


HOW: Final = {
    "executed": "executed",
    "by_agent": "by the agent",
    "recorded": "recorded, done elsewhere",
    "not_needed": "not needed",
}


def _undoing(event: CompensationStarted, entry: Entry) -> str:
    what = f"{plural(len(event.steps), 'step')}: {named(event.steps)}" if event.steps else "what was done"
    return f"{somebody(entry)} started to undo {what}"


def _undone(left: Sequence[str]) -> str:
    return f"The run is undone, except {named(left)}" if left else "The run is undone"
