"""A run as a story: what people and agents decided entry by entry, in their words; the routine between is
folded into one sentence with the range of its entries.

Pure: a fold over events, which can be continued with later ones. why.py tells why a run is where it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from handrail.domain.history.event_line import event_words
from handrail.domain.history.story_words import (
    HOW,
    PATHS,
    EventWords,
    StepNames,
    Wording,
    failed,
    fixed,
    is_somebody,
    named,
    refused,
    requested,
    somebody,
    started,
    worded,
)
from handrail.domain.history.subject import ABOUT, EventSubject
from handrail.domain.journal.codec import kind_of
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
    StepHandedOut,
    StepRetried,
    StepSkipped,
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    UndoStarted,
    step_of,
)
from handrail.domain.plural import plural

MESSAGE: Final = "message"
ACTORS_MAX: Final = 100


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
    event: str = ""
    """The kind of the event that it is about; empty for what is routine."""
    actor: str = ""
    step: str = ""
    words: str = ""
    """What a person or an agent wrote, or what a tool said."""
    notes: tuple[str, ...] = ()
    """Further sentences: which steps needed more than one try."""
    facts: Mapping[str, str] = {}


def _approved(event: ApprovalGiven, entry: Entry, names: StepNames) -> EventWords:
    more = f"; {plural(event.missing, 'more yes', 'more')} needed" if event.missing else ""
    facts = {"digest": event.digest} | ({"by way of": event.channel} if event.channel else {})
    return EventWords(f"{somebody(entry)} approved {names.quoted(event.step)}{more}", words=event.reason, facts=facts)


def _rejected(event: ApprovalRejected, entry: Entry, names: StepNames) -> EventWords:
    facts = {"digest": event.digest}
    return EventWords(f"{somebody(entry)} rejected {names.quoted(event.step)}", words=event.reason, facts=facts)


def _decided(event: DecisionRecorded, entry: Entry, _names: StepNames) -> EventWords:
    facts = {"instead of": "; ".join(event.alternatives)} if event.alternatives else {}
    return EventWords(f"{somebody(entry)} decided: {event.decision}", words=event.reason, facts=facts)


def _expired(event: ApprovalExpired, _entry: Entry, names: StepNames) -> EventWords:
    again = "; it is asked again" if event.again else ""
    return EventWords(f"The time to answer {names.quoted(event.step)} passed{again}")


def _withdrawn(event: ApprovalWithdrawn, _entry: Entry, names: StepNames) -> EventWords:
    step, changed = names.quoted(event.step), named(event.changed)
    return EventWords(f"The approval {step} no longer counts: {changed} changed; it is asked again")


def _undoing(event: CompensationStarted, entry: Entry, names: StepNames) -> EventWords:
    what = plural(len(event.steps), "step") if event.steps else "what was done"
    facts = {"steps": names.listed(event.steps)} if event.steps else {}
    return EventWords(f"{somebody(entry)} chose to undo {what}", words=event.reason, facts=facts)


def _undone(event: RunCompensated, _entry: Entry, names: StepNames) -> EventWords:
    left = event.not_compensated
    return EventWords(f"The run is undone, except {names.listed(left)}" if left else "The run is undone")


def _not_undone(event: RunCompensationFailed, _entry: Entry, names: StepNames) -> EventWords:
    others = f"; not undone either: {names.listed(event.not_compensated)}" if event.not_compensated else ""
    return EventWords(f"Not all is undone: the undo of {names.listed(event.steps)} failed{others}")


WORDED: Final[Mapping[type[Any], tuple[StoryKind, Wording]]] = {
    RunStarted: (StoryKind.START, started),
    RunAdopted: (StoryKind.CONTROL, worded("{who} moved the run to this project", words="reason")),
    RunPaused: (StoryKind.CONTROL, worded("{who} paused the run", words="reason")),
    RunResumed: (StoryKind.CONTROL, worded("{who} resumed the run", words="reason")),
    RunCancelled: (StoryKind.CONTROL, worded("{who} cancelled the run", words="reason")),
    RunCompleted: (StoryKind.END, fixed("The run is completed")),
    RunFailed: (StoryKind.END, worded("The run failed", words=MESSAGE)),
    RunCompensated: (StoryKind.END, _undone),
    RunCompensationFailed: (StoryKind.END, _not_undone),
    CompensationStarted: (StoryKind.UNDO, _undoing),
    DecisionRecorded: (StoryKind.DECISION, _decided),
    ActionRecorded: (StoryKind.ACTION, worded("{who} reports", words="description")),
    StepRetried: (StoryKind.DECISION, worded("{who} chose to retry {step}", words="reason")),
    StepAccepted: (StoryKind.DECISION, worded("{who} confirmed that {step} happened", words="reason")),
    StepSkipped: (StoryKind.DECISION, worded("{who} skipped {step}", words="reason")),
    ApprovalOverridden: (StoryKind.DECISION, worded("{who} went past the approval {step}", words="reason")),
    StepFailed: (StoryKind.FAILURE, failed),
    StepBecameUncertain: (StoryKind.FAILURE, worded("{step} was cut short: its outcome is unknown")),
    UndoBecameUncertain: (StoryKind.FAILURE, worded("The undo of {step} was cut short: its outcome is unknown")),
    UndoFailed: (StoryKind.FAILURE, failed),
    OutputRefused: (StoryKind.REFUSED, refused),
    ApprovalRequested: (StoryKind.APPROVAL, requested),
    ApprovalGiven: (StoryKind.APPROVAL, _approved),
    ApprovalRejected: (StoryKind.APPROVAL, _rejected),
    ApprovalExpired: (StoryKind.APPROVAL, _expired),
    ApprovalWithdrawn: (StoryKind.APPROVAL, _withdrawn),
}
"""The words for each event; all others are routine."""
UNDO_ROUTINE: Final = (UndoStarted, UndoLost, StepCompensated)


class _RoutineLine(Struct, frozen=True):
    """A routine event without its values: of one that the sentence is made of, the event is kept."""

    n: int
    at: int
    kind: type[Any]
    step: str
    event: Event | None = None


class _Part(Struct, frozen=True):
    """What one entry of the story is made of: an event and the routine that belongs to it, or a stretch of routine."""

    lines: tuple[_RoutineLine, ...]
    """Of a stretch, its first and last, and those that its sentence is made of."""
    said: Entry | None = None
    count: int = 0
    is_undo: bool = False


class StoryFold:
    """The story of one run so far."""

    def __init__(self) -> None:
        self.n = 0
        self.noted: list[Entry] = []
        """The events that have words, and those that why.py looks at."""
        self.subjects: Counter[EventSubject] = Counter()
        self.actors: Counter[str] = Counter()
        self._parts: list[_Part] = []
        self._routine: list[_RoutineLine] = []
        self._last: Entry | None = None
        self._is_undo = False
        self._override: Entry | None = None
        """An approval that somebody went past: what follows says so, if it is the skip."""

    def take(self, entry: Entry) -> None:
        """Take in the next event; one that was taken in before is passed over."""
        if entry.n <= self.n:
            return
        self.n = entry.n
        self._last = entry
        self._count(entry)
        if self._is_said_with_override(entry):
            return
        if isinstance(entry.event, ApprovalOverridden):
            self._override = entry
        elif _is_routine(entry):
            self._add(entry, is_undo=isinstance(entry.event, UNDO_ROUTINE))
        else:
            self._say(entry, self._tries(entry.event))

    def _is_said_with_override(self, entry: Entry) -> bool:
        """Say the override before this event; with it, if it is the skip."""
        before, self._override = self._override, None
        if before is None:
            return False
        is_skip = isinstance(entry.event, StepSkipped) and step_of(before.event) == entry.event.step
        self._say(entry if is_skip else before, [_line(before)] if is_skip else ())
        return is_skip

    def story(self, names: StepNames = PATHS) -> list[StoryEntry]:
        """The story, in the order of the journal."""
        parts = [*self._parts, *self._open_part()]
        if self._override is not None:
            parts.append(_Part((), self._override))
        return [_said(part, part.said, names) if part.said is not None else _stretch(part, names) for part in parts]

    def latest(self, names: StepNames) -> str:
        """What happened last, in words."""
        if self._override is None and self._routine:
            return self._latest_routine(names)
        said = self._override or self._parts[-1].said if self._parts else self._override
        return WORDED[type(said.event)][1](said.event, said, names).text if said is not None else ""

    def _latest_routine(self, names: StepNames) -> str:
        step = self._routine[-1].step
        words = event_words(self._last) if self._last is not None else ""
        return f"{names.quoted(step)}: {words}" if step else words

    def _count(self, entry: Entry) -> None:
        if type(entry.event) in WORDED or isinstance(entry.event, NOTED):
            self.noted.append(entry)
        for subject, events in ABOUT.items():
            self.subjects[subject] += type(entry.event) in events
        if is_somebody(entry.actor) and (entry.actor in self.actors or len(self.actors) < ACTORS_MAX):
            self.actors[entry.actor] += 1

    def _add(self, entry: Entry, *, is_undo: bool) -> None:
        if self._is_undo != is_undo:
            self._close()
        self._is_undo = is_undo
        self._routine.append(_line(entry))

    def _tries(self, event: Event) -> list[_RoutineLine]:
        """The tries of a step that then failed, or of an output that was refused: they belong to what they led to."""
        own: list[_RoutineLine] = []
        is_failure = isinstance(event, StepFailed | OutputRefused)
        while is_failure and self._routine and _is_try_of(self._routine[-1], step_of(event)):
            own.append(self._routine.pop())
        return own[::-1]

    def _say(self, entry: Entry, own: Sequence[_RoutineLine] = ()) -> None:
        self._close()
        self._parts.append(_Part(tuple(own), entry))

    def _close(self) -> None:
        """End the sentence about what was routine."""
        self._parts += self._open_part()
        self._routine = []

    def _open_part(self) -> list[_Part]:
        if not self._routine:
            return []
        first, *rest = self._routine
        inner = (one for one in rest[:-1] if one.kind in TELLING)
        return [_Part((first, *inner, *rest[-1:]), count=len(self._routine), is_undo=self._is_undo)]


def story_of(entries: Sequence[Entry], names: StepNames = PATHS) -> list[StoryEntry]:
    """The story of a run, in the order of its journal."""
    fold = StoryFold()
    for entry in entries:
        fold.take(entry)
    return fold.story(names)


NOTED: Final = (AttemptFailed, StepHandedOut, StepCompensated, StepSkipped)
"""The routine that why.py looks at."""
TELLING: Final = frozenset({*NOTED, StepCompleted})
"""The routine that a sentence is made of."""


def _line(entry: Entry) -> _RoutineLine:
    kept = entry.event if isinstance(entry.event, NOTED) else None
    return _RoutineLine(entry.n, entry.at, type(entry.event), step_of(entry.event) or "", kept)


def _is_routine(entry: Entry) -> bool:
    """Whether an event needs no entry of its own."""
    match entry.event:
        case StepSkipped():
            return not is_somebody(entry.actor)  # by its own condition
        case UndoFailed(final=False):
            return True
        case event:
            return type(event) not in WORDED


def _is_try_of(line: _RoutineLine, step: str | None) -> bool:
    return line.step == step and line.kind is not StepCompleted


def _said(part: _Part, entry: Entry, names: StepNames) -> StoryEntry:
    kind, tell = WORDED[type(entry.event)]
    words = tell(entry.event, entry, names)
    tries = sum(one.kind is AttemptFailed for one in part.lines)
    first = part.lines[0] if part.lines else entry
    return StoryEntry(
        kind=kind,
        first=first.n,
        last=entry.n,
        at=first.at,
        until=entry.at,
        text=words.text,
        event=kind_of(entry.event),
        actor=entry.actor,
        step=step_of(entry.event) or getattr(entry.event, "step", None) or "",
        words=words.words,
        facts={**words.facts, **({"tries": str(tries)} if tries else {})},
    )


def _stretch(part: _Part, names: StepNames) -> StoryEntry:
    first, last = part.lines[0], part.lines[-1]
    return StoryEntry(
        kind=StoryKind.UNDO if part.is_undo else StoryKind.ROUTINE,
        first=first.n,
        last=last.n,
        at=first.at,
        until=last.at,
        text=_undo_sentence(part, names) if part.is_undo else _sentence(part, names),
        notes=_retried(part, names),
    )


def _sentence(part: _Part, names: StepNames) -> str:
    parts = [
        _counted(part, StepCompleted, "completed", names),
        _counted(part, StepSkipped, "skipped by a condition", names),
        _given(part, names),
    ]
    steps = names.listed(filter(None, (one.step for one in part.lines)))
    started = f"{steps} started" if steps else plural(part.count, "entry", "entries")
    return "; ".join(filter(None, parts)) or started


def _counted(part: _Part, kind: type[Any], verb: str, names: StepNames) -> str:
    """The steps that events of a kind are about; empty if there were none."""
    steps = [one.step for one in part.lines if one.kind is kind]
    if len(steps) <= 1:
        return "".join(f"{names.quoted(step)} {verb}" for step in steps)
    return f"{len(steps):,} steps {verb}: {names.listed(steps)}"


def _given(part: _Part, names: StepNames) -> str:
    given = {one.event.step: one.event.agent for one in part.lines if isinstance(one.event, StepHandedOut)}
    agents = named(dict.fromkeys(filter(None, given.values())))
    return f"{names.listed(given)} given to {agents or 'an agent'}" if given else ""


def _retried(part: _Part, names: StepNames) -> tuple[str, ...]:
    """A sentence for each step that failed and was tried again."""
    failures: dict[str, list[AttemptFailed]] = {}
    for one in part.lines:
        if isinstance(one.event, AttemptFailed):
            failures.setdefault(one.step, []).append(one.event)
    done = {one.step for one in part.lines if one.kind is StepCompleted}
    return tuple(_failed_often(tries, names, works=step in done) for step, tries in failures.items())


def _failed_often(tries: Sequence[AttemptFailed], names: StepNames, *, works: bool) -> str:
    times = {1: "once", 2: "twice"}.get(len(tries), f"{len(tries)} times")
    said, code = names.code(tries[-1])
    return f"{names.quoted(tries[-1].step)} failed {times}: {said} ({code}){'. Then it worked.' if works else '.'}"


def _undo_sentence(part: _Part, names: StepNames) -> str:
    ways: dict[str, list[str]] = {}
    for one in part.lines:
        if isinstance(one.event, StepCompensated):
            ways.setdefault(one.event.how, []).append(one.step)
    if not ways:
        return f"Undoing {names.listed(one.step for one in part.lines)}"
    return "; ".join(
        f"{plural(len(steps), 'step')} undone ({HOW[how]}): {names.listed(steps)}" for how, steps in ways.items()
    )
