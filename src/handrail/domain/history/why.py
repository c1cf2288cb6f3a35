"""The why line: why a run failed, waits or was undone, sentence by sentence, each with the entry that it comes from.

Pure. What failed, in the tool's own words; whether it was tried again; who decided then; what is left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import Definition, Prompt, Step, Tool, title_of
from handrail.domain.history.failure_parts import failure_parts
from handrail.domain.history.story_words import actor_name, named
from handrail.domain.journal.event import (
    ApprovalRequested,
    AttemptFailed,
    CompensationStarted,
    Entry,
    Event,
    OutputRefused,
    RunCancelled,
    RunCompensated,
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
from handrail.domain.policy.actor import ActorKind, kind_of
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.step_path import locate
from handrail.domain.run.step_state import StepState
from handrail.domain.scheduling.retry import policy_of


class WhySentence(Struct, frozen=True):
    """One sentence, and the number of the entry that it comes from; 0 if it is about something that did not happen."""

    text: str
    n: int = 0


def why_of(run: Run, definition: Definition, entries: Sequence[Entry]) -> list[WhySentence]:
    """Why a run is where it is; nothing for one that simply runs or is completed."""
    if run.status is RunStatus.COMPLETED:
        return []
    why = _Why(run, definition, entries)
    return [*why.failed(), *why.decided(), *why.waits(), *why.left()]


class _Why:
    """What the sentences are made of."""

    def __init__(self, run: Run, definition: Definition, entries: Sequence[Entry]) -> None:
        self.run, self.definition, self.entries = run, definition, entries
        self.failure = self._failure()

    def _failure(self) -> Entry | None:
        """The failure that the run is about: the first that is not resolved, or the undo that failed after it."""
        found: Entry | None = None
        for entry in self.entries:
            if _is_failure(entry.event) and (found is None or isinstance(entry.event, OF_UNDO)):
                found = entry
            elif found is not None and _resolves(entry.event, found.event):
                found = None
        return found

    def failed(self) -> Iterator[WhySentence]:
        """What failed, in the tool's words, and whether it was tried again."""
        found = self.failure or self._last(RunFailed)
        match found.event if found is not None else None:
            case RunFailed(message=message):
                yield WhySentence(f"The run failed: {message}.", found.n if found else 0)
            case StepBecameUncertain(step=step) | UndoBecameUncertain(step=step):
                text = f"Whether {self._title(step)} happened is unknown: it was cut short."
                yield WhySentence(text, found.n if found else 0)
            case StepFailed() | UndoFailed() as event:
                yield WhySentence(self._failure_words(event), found.n if found else 0)
                yield from self._tried(event, locate(self.definition, event.step).step)

    def _failure_words(self, event: StepFailed | UndoFailed) -> str:
        is_undo = isinstance(event, UndoFailed)
        parts = failure_parts(event.message, _tool(locate(self.definition, event.step).step, is_undo=is_undo))
        host, code = (f" at {parts.host}", f"{parts.status}, ") if parts.status else ("", "")
        what = f"The undo of {self._title(event.step)}" if is_undo else self._title(event.step)
        return f"{what} failed{host}: {parts.said or event.message} ({code}{event.category.value})."

    def _tried(self, event: StepFailed | UndoFailed, step: Step) -> Iterator[WhySentence]:
        kind = UndoFailed if isinstance(event, UndoFailed) else AttemptFailed
        tries = [one for one in self.entries if isinstance(one.event, kind) and one.event.step == event.step]
        if not tries or not isinstance(step.work, Tool):
            return
        if len(tries) > 1:
            yield WhySentence(f"It was tried {len(tries)} times.", tries[-1].n)
        elif event.category not in policy_of(step.work.retry).on:
            yield WhySentence(f"It was not tried again: {event.category.value} is not retried by itself.", tries[-1].n)

    def decided(self) -> Iterator[WhySentence]:
        """Who decided then, and why."""
        for kind, verb in (
            (CompensationStarted, "decided to undo"),
            (RunCancelled, "cancelled it"),
            (RunPaused, "paused it"),
        ):
            last = self._last(kind)
            is_current = kind is not RunPaused or self.run.status is RunStatus.PAUSED
            if last is None or not is_current:
                continue
            reason = getattr(last.event, "reason", "")
            if kind_of(last.actor) in {ActorKind.PERSON, ActorKind.AGENT}:
                yield WhySentence(f"{actor_name(last.actor)} {verb}: {reason}.", last.n)
            elif kind is CompensationStarted:
                yield WhySentence("handrail then undid what was done, as its plan says.", last.n)

    def waits(self) -> Iterator[WhySentence]:
        """Who it waits for."""
        if self.run.ended is not None:
            return
        for path, state in self.run.steps.items():
            if state.status is StepStatus.WAITING:
                yield from self._waits_at(path, state)
        if self.failure is not None and self.run.status is RunStatus.RUNNING:
            yield WhySentence("Somebody has to decide what becomes of it.", self.failure.n)

    def _waits_at(self, path: str, state: StepState) -> Iterator[WhySentence]:
        if state.digest:
            yield from self._since(path, ApprovalRequested, f"{self._title(path)} waits for a person's answer.")
        elif isinstance(locate(self.definition, path).step.work, Prompt):
            refused = f"was refused {plural(state.tries, 'time')}, and " if state.tries else ""
            text = f"{self._title(path)} {refused}waits for {state.agent or 'an agent'}."
            yield from self._since(path, OutputRefused if state.tries else StepHandedOut, text)

    def _since(self, path: str, kind: type, text: str) -> Iterator[WhySentence]:
        found = [one for one in self.entries if isinstance(one.event, kind) and getattr(one.event, "step", "") == path]
        yield WhySentence(text, found[-1].n if found else 0)

    def left(self) -> Iterator[WhySentence]:
        """What is left behind."""
        last = self._last((RunCompensated, RunCompensationFailed))
        if last is None:
            return
        event = last.event
        if isinstance(event, RunCompensated):
            left = event.not_compensated
            text = f"Not undone: {named(left)}." if left else "Everything that it had done is undone."
            yield WhySentence(text, last.n)
        elif isinstance(event, RunCompensationFailed):
            yield WhySentence(f"Not undone: {named((*event.steps, *event.not_compensated))}.", last.n)

    def _last(self, kind: type | tuple[type, ...]) -> Entry | None:
        return next((entry for entry in reversed(self.entries) if isinstance(entry.event, kind)), None)

    def _title(self, path: str) -> str:
        return f"{title_of(locate(self.definition, path).step)} ({path})"


def _is_failure(event: Event) -> bool:
    is_final = isinstance(event, UndoFailed) and event.final
    return is_final or isinstance(event, StepFailed | StepBecameUncertain | UndoBecameUncertain)


def _resolves(event: Event, failure: Event) -> bool:
    """Whether somebody decided on a failure: on its step, or on one that contains it."""
    failed, decided = step_of(failure) or "", step_of(event) or ""
    is_decision = isinstance(event, StepRetried | StepSkipped | StepAccepted | StepCompensated)
    return is_decision and (failed == decided or failed.startswith((f"{decided}.", f"{decided}[")))


OF_UNDO: Final = (UndoFailed, UndoBecameUncertain)


def _tool(step: Step, *, is_undo: bool) -> str:
    work = step.undo if is_undo and step.undo is not None else step.work
    return work.tool if isinstance(work, Tool) else ""
