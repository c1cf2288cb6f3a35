"""The why line: why a run failed, waits or was undone, line by line, each with the entry that it comes from.

Pure. What failed, in the tool's own words; whether it was tried again; who decided then; what is left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import Definition, Prompt, Tool
from handrail.domain.history.step_title import title_at
from handrail.domain.history.story_words import StepNames, actor_name, is_somebody, named
from handrail.domain.journal.event import (
    ApprovalOverridden,
    ApprovalRequested,
    AttemptFailed,
    CompensationStarted,
    Entry,
    Event,
    OutputRefused,
    RunCancelled,
    RunCompensationFailed,
    RunFailed,
    RunPaused,
    StepAccepted,
    StepBecameUncertain,
    StepCompensated,
    StepFailed,
    StepHandedOut,
    StepRetried,
    StepSkipped,
    UndoBecameUncertain,
    UndoFailed,
    step_of,
)
from handrail.domain.plural import plural
from handrail.domain.policy.agent_names import is_same_agent
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_RETRIABLE, RunStatus, StepStatus
from handrail.domain.run.step_path import locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.compensation import remaining

SKIPS_SHOWN: Final = 3


class WhyKind(StrEnum):
    """What a line of why is about."""

    FAILED = "failed"
    UNKNOWN = "unknown"
    """Whether something happened."""
    UNDO = "undo"
    UNDO_FAILED = "undo_failed"
    CANCELLED = "cancelled"
    PAUSED = "paused"
    APPROVAL = "approval"
    """It waits for a person's answer."""
    AGENT = "agent"
    """It waits for an agent."""
    DECISION = "decision"
    """It waits for a decision."""
    SKIPPED = "skipped"


class WhySentence(Struct, frozen=True, kw_only=True):
    """One line: what it is, the words of a tool or a person, and what else is to be known."""

    kind: WhyKind
    lead: str
    words: str = ""
    note: str = ""
    n: int = 0
    """The entry that it comes from; 0 if it is about something that did not happen."""
    step: str = ""
    until: int | None = None
    """Until when it waits."""


def step_names(run: Run, definition: Definition) -> StepNames:
    """What the steps of a run are called, and by which tool each is done or undone."""

    def tool(path: str) -> str:
        work = locate(definition, path).step.work
        return work.tool if isinstance(work, Tool) else ""

    def undo_tool(path: str) -> str:
        undo = locate(definition, path).step.undo
        return undo.tool if isinstance(undo, Tool) else tool(path)

    return StepNames(title=lambda path: title_at(run, definition, path), tool=tool, undo_tool=undo_tool)


def why_of(run: Run, definition: Definition, entries: Sequence[Entry]) -> list[WhySentence]:
    """Why a run is where it is; nothing for one that simply runs or is completed."""
    why = _Why(run, definition, entries)
    if run.status is RunStatus.COMPLETED:
        return [*why.skipped()]
    return [*why.failed(), *why.decided(), *why.waits(), *why.skipped()]


class _Why:
    """What the lines are made of."""

    def __init__(self, run: Run, definition: Definition, entries: Sequence[Entry]) -> None:
        self.run, self.definition, self.entries = run, definition, entries
        self.names = step_names(run, definition)
        self.failure = self._failure()

    def _failure(self) -> Entry | None:
        """The failure that the run is about: the first that is not resolved, or the undo that failed after it."""
        found: Entry | None = None
        for entry in self.entries:
            # The first one: later failures are mostly its consequences. A failed undo counts more, since it needs
            # somebody now.
            if _is_failure(entry.event) and (found is None or isinstance(entry.event, OF_UNDO)):
                found = entry
            elif found is not None and _resolves(entry.event, found.event):
                found = None
        return found

    def failed(self) -> Iterator[WhySentence]:
        """What failed, in the tool's words, and whether it was tried again."""
        found = self.failure or self._last(RunFailed)
        if found is None:
            return
        match found.event:
            case RunFailed(message=message):
                yield WhySentence(kind=WhyKind.FAILED, lead="The run failed:", words=message, n=found.n)
            case StepBecameUncertain(step=step) | UndoBecameUncertain(step=step):
                what = "the undo of " if isinstance(found.event, UndoBecameUncertain) else ""
                yield WhySentence(
                    kind=WhyKind.UNKNOWN,
                    lead=f"It is unknown whether {what}{self.names.quoted(step)} happened.",
                    words="It was cut short: look there first, then decide.",
                    n=found.n,
                    step=step,
                )
            case StepFailed() | UndoFailed() as event:
                yield self._failed(event, found.n)

    def _failed(self, event: StepFailed | UndoFailed, n: int) -> WhySentence:
        said, code = self.names.code(event)
        is_undo = isinstance(event, UndoFailed)
        what = f"The undo of {self.names.quoted(event.step)}" if is_undo else self.names.quoted(event.step)
        return WhySentence(
            kind=WhyKind.UNDO_FAILED if is_undo else WhyKind.FAILED,
            lead=f"{what} failed permanently:",
            words=said,
            note=", ".join(filter(None, (code, self._tried(event), self._more(event.step)))),
            n=n,
            step=event.step,
        )

    def _tried(self, event: StepFailed | UndoFailed) -> str:
        kind = UndoFailed if isinstance(event, UndoFailed) else AttemptFailed
        tries = sum(isinstance(one.event, kind) and step_of(one.event) == event.step for one in self.entries)
        if not tries:
            return ""
        return f"tried {tries} times" if tries > 1 else "not retried"

    def _more(self, step: str) -> str:
        """How many other steps failed, too."""
        others = [path for path, state in self.run.steps.items() if state.status in STEP_RETRIABLE and path != step]
        more = sum(not locate(self.definition, path).step.body for path in others)
        return f"{plural(more, 'more step')} failed" if more else ""

    def decided(self) -> Iterator[WhySentence]:
        """Who decided then, and why; and what is left behind."""
        undo = self._last(CompensationStarted)
        if undo is not None:
            yield self._undone(undo)
        if self.run.status is RunStatus.COMPENSATION_FAILED:
            yield from self._not_undone()
        yield from self._controlled(RunCancelled, WhyKind.CANCELLED, "cancelled it")
        if self.run.status is RunStatus.PAUSED:
            yield from self._controlled(RunPaused, WhyKind.PAUSED, "paused it")

    def _not_undone(self) -> Iterator[WhySentence]:
        last = self._last(RunCompensationFailed)
        if last is not None and isinstance(last.event, RunCompensationFailed):
            steps = last.event.remaining
            lead = f"{plural(len(steps), 'effect')} could not be undone:"
            yield WhySentence(kind=WhyKind.UNDO_FAILED, lead=lead, words=self.names.listed(steps), n=last.n)

    def _controlled(self, event: type, kind: WhyKind, verb: str) -> Iterator[WhySentence]:
        last = self._last(event)
        if last is not None:
            reason = getattr(last.event, "reason", "")
            yield WhySentence(kind=kind, lead=f"{actor_name(last.actor)} {verb}:", words=reason, n=last.n)

    def _undone(self, entry: Entry) -> WhySentence:
        is_going_on = self.run.status is RunStatus.COMPENSATING
        left = self.names.listed(remaining(self.run, self.definition))
        note = _undo_note(self.run, left, is_over=not is_going_on)
        verb = "is undoing what was done" if is_going_on else "chose to undo"
        lead, words = f"{actor_name(entry.actor)} {verb}:", getattr(entry.event, "reason", "")
        if not is_somebody(entry.actor):
            lead, words = "handrail undoes what was done, as the plan says.", ""
        return WhySentence(kind=WhyKind.UNDO, lead=lead, words=words, note=note, n=entry.n)

    def waits(self) -> Iterator[WhySentence]:
        """Who it waits for."""
        if self.run.ended is not None:
            return
        for path, state in self.run.steps.items():
            if state.status is StepStatus.WAITING:
                yield from self._waits_at(path, state)
        if self.failure is not None and self.run.status is RunStatus.RUNNING:
            lead = "Somebody has to decide how to go on with it."
            yield WhySentence(kind=WhyKind.DECISION, lead=lead, n=self.failure.n)

    def _waits_at(self, path: str, state: StepState) -> Iterator[WhySentence]:
        if state.digest:
            asked = self._last_at(path, ApprovalRequested)
            text = getattr(asked.event, "text", "") if asked is not None else ""
            yield self._waiting(WhyKind.APPROVAL, path, state, asked, "Asked for approval:", text)
        elif isinstance(locate(self.definition, path).step.work, Prompt):
            refused = self._last_at(path, OutputRefused)
            again = " again" if refused is not None else ""
            handed = self._last_at(path, StepHandedOut)
            lead = f"{_holder(state, handed)} is to submit {self.names.quoted(path)}{again}."
            yield self._waiting(WhyKind.AGENT, path, state, refused or handed, lead, "", _checks(refused))

    def _waiting(
        self, kind: WhyKind, path: str, state: StepState, entry: Entry | None, lead: str, words: str, note: str = ""
    ) -> WhySentence:
        n = entry.n if entry is not None else 0
        return WhySentence(kind=kind, lead=lead, words=words, note=note, n=n, step=path, until=state.due)

    def skipped(self) -> Iterator[WhySentence]:
        """What somebody left out, the latest first."""
        gates = {step_of(one.event) for one in self.entries if isinstance(one.event, ApprovalOverridden)}
        left_out = [one for one in self.entries if isinstance(one.event, StepSkipped) and is_somebody(one.actor)]
        for entry in left_out[-SKIPS_SHOWN:][::-1]:
            step = step_of(entry.event) or ""
            verb = "went past the approval" if step in gates else "skipped"
            lead = f"{actor_name(entry.actor)} {verb} {self.names.quoted(step)}:"
            words = getattr(entry.event, "reason", "")
            yield WhySentence(kind=WhyKind.SKIPPED, lead=lead, words=words, n=entry.n, step=step)

    def _last(self, kind: type) -> Entry | None:
        return next((entry for entry in reversed(self.entries) if isinstance(entry.event, kind)), None)

    def _last_at(self, path: str, kind: type) -> Entry | None:
        found = (one for one in reversed(self.entries) if isinstance(one.event, kind) and step_of(one.event) == path)
        return next(found, None)


def _undo_note(run: Run, left: str, *, is_over: bool) -> str:
    undone = sum(state.status is StepStatus.COMPENSATED for state in run.steps.values())
    stays = f"still there: {left}" if left else "nothing left behind" * is_over
    return ", ".join(filter(None, (f"{plural(undone, 'step')} undone", stays)))


def _holder(state: StepState, handed: Entry | None) -> str:
    """Who has the step: by the one name that the journal has for an agent that calls itself something shorter."""
    known = actor_name(handed.actor) if handed is not None else ""
    return known if is_same_agent(state.agent, known) else state.agent or "An agent"


def _checks(refused: Entry | None) -> str:
    if refused is None or not isinstance(refused.event, OutputRefused):
        return ""
    rules = dict.fromkeys(str(one.get("rule", "")) for one in refused.event.findings)
    how = "could not run" if refused.event.unchecked else "failed"
    return f"{plural(len(rules), 'check')} {how}: {named(rules)}"


def _is_failure(event: Event) -> bool:
    is_final = isinstance(event, UndoFailed) and event.final
    return is_final or isinstance(event, StepFailed | StepBecameUncertain | UndoBecameUncertain)


def _resolves(event: Event, failure: Event) -> bool:
    """Whether somebody decided on a failure: on its step, or on one that contains it."""
    failed, decided = step_of(failure) or "", step_of(event) or ""
    is_decision = isinstance(event, StepRetried | StepSkipped | StepAccepted | StepCompensated)
    return is_decision and (failed == decided or failed.startswith((f"{decided}.", f"{decided}[")))


OF_UNDO: Final = (UndoFailed, UndoBecameUncertain)
