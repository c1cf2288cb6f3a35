"""The story of one run as the simulation sees it: its events so far, and what of the past the invariants ask for.

A fold of its own, apart from the engine's: failures since the last decision, attempts without outcome, waits."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from handrail.domain.definition.model import Category, Definition, Effect, Tool
from handrail.domain.journal.event import (
    ApprovalRequested,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    CompensationStarted,
    Entry,
    Event,
    RetryScheduled,
    RunStarted,
    StepCancelled,
    StepCompensated,
    StepCompleted,
    StepDeferred,
    StepFailed,
    StepRetried,
    UndoBecameUncertain,
    UndoFailed,
    UndoLost,
    UndoStarted,
)
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.retry import backoff_ms, policy_of
from handrail.engine.running.lease import Lease
from simulation.loop import Process
from simulation.outside import Outside, spec_of
from simulation.plan_order import step_at


@dataclass(frozen=True)
class Moment:
    """One event as it was written: the run before and after it, by whom, under which lease, when by true time."""

    before: Run
    entry: Entry
    after: Run
    process: Process
    lease: Lease | None
    now_s: float
    clock_ms: int
    """The writer's own clock at that moment."""
    uncalled: frozenset[str] = frozenset()
    """Steps whose arguments were wrong: their attempts fail in the same append, and no tool is called."""

    @property
    def event(self) -> Event:
        """What happened."""
        return self.entry.event


class Story:
    """What a run has been through."""

    def __init__(self, run_id: str, definition: Definition, outside: Outside) -> None:
        self.id = run_id
        self.definition = definition
        self.outside = outside
        self.run = Run(id=run_id)
        self.entries: list[Entry] = []
        self.agenda: Agenda | None = None
        self.lease: Lease | None = None
        self.failures: Counter[tuple[str, bool]] = Counter()
        """By step, and whether of its undo: tries that failed since somebody decided."""
        self.category: dict[tuple[str, bool], Category] = {}
        self.open_attempts: set[str] = set()
        """Steps with a try that has no outcome yet."""
        self.open_undos: set[str] = set()
        """Steps with a try of their undo that has no outcome yet."""
        self.undo_losses: Counter[str] = Counter()
        """By step: tries of its undo that were lost since somebody decided."""
        self.orphans: set[str] = set()
        """Steps of which something was written that its writer does not know of."""
        self.waits: dict[str, tuple[Process, float]] = {}
        """By step (undo: with `!undo`): who drew the wait, and when it is over by true time."""
        self.begun: dict[tuple[str, int, bool], int] = {}
        """By step, attempt and whether of its undo: how often the tool was called in it."""

    def is_repeatable(self, path: str) -> bool:
        """Whether a try of the step may be made again when nobody knows what came of the last."""
        work = step_at(self.definition, path).work
        if not isinstance(work, Tool):
            return True
        spec = spec_of(work.tool)
        return spec.effect is Effect.NONE or spec.idempotent or work.idempotent is True

    def may_repeat_undo(self, path: str) -> bool:
        """Whether a lost undo is to be called again: always, unless its author said that it must not."""
        undo = step_at(self.definition, path).undo
        return not (isinstance(undo, Tool) and undo.idempotent is False)

    def go_on(self, moment: Moment) -> None:
        """Take in an event, after the invariants have looked at it."""
        event = moment.event
        match event:
            case RunStarted(deadline=int(due)):
                # Counted from the writer's own clock, the one that will be held against it.
                seconds = (due - moment.entry.at) / 1_000
                self.waits[""] = (moment.process, moment.now_s + seconds)
            case AttemptStarted(step=step):
                self.open_attempts.add(step)
                self.orphans.discard(step)
                self.begun[step, event.attempt, False] = 0
            case AttemptFailed(step=step):
                self._failed(step, event.category, is_undo=False)
            case RetryScheduled(step=step) | StepDeferred(step=step):
                self.open_attempts.discard(step)
                self._wait(moment, step, event.due)
            case ApprovalRequested(step=step):
                self._wait(moment, step, event.expires)
            case StepRetried(step=step) if moment.before.step(step).undo_uncertain:
                self._forget_failures(step)
                self.waits.pop(f"{step}!undo", None)
            case StepRetried(step=step):
                self.failures[step, False] = 0
                self.category.pop((step, False), None)
                self.waits.pop(step, None)
                self.open_attempts.discard(step)
            case StepFailed(step=step) | StepCompleted(step=step) | StepCancelled(step=step) | AttemptLost(step=step):
                self.open_attempts.discard(step)
            case _:
                self._go_on_undoing(moment)

    def _go_on_undoing(self, moment: Moment) -> None:
        event = moment.event
        match event:
            case UndoStarted(step=step):
                if moment.before.step(step).status is not StepStatus.COMPENSATING:
                    self._forget_failures(step)
                self.begun[step, event.attempt, True] = 0
                self.open_undos.add(step)
            case UndoLost(step=step):
                self.undo_losses[step] += 1
                self.open_undos.discard(step)
            case UndoBecameUncertain(step=step) | StepCompensated(step=step):
                self.open_undos.discard(step)
            case UndoFailed(step=step):
                self.open_undos.discard(step)
                self._failed(step, event.category, is_undo=True)
                self._wait(moment, f"{step}!undo", event.due)
            case CompensationStarted():
                for path, state in moment.before.steps.items():
                    if state.status is StepStatus.COMPENSATION_FAILED:
                        self._forget_failures(path)
                        self.waits.pop(f"{path}!undo", None)
            case _:
                pass

    def _forget_failures(self, path: str) -> None:
        self.failures[path, True] = 0
        self.undo_losses[path] = 0
        self.category.pop((path, True), None)

    def _failed(self, step: str, category: Category, *, is_undo: bool) -> None:
        self.failures[step, is_undo] += 1
        self.category[step, is_undo] = category

    def _wait(self, moment: Moment, name: str, due: int | None) -> None:
        if due is None:
            self.waits.pop(name, None)
            return
        until_s = moment.now_s + (due - moment.clock_ms) / 1_000
        self.waits[name] = (moment.process, max(until_s, self._least(moment.process, name)))

    def _least(self, process: Process, name: str) -> float:
        """Until when policy and the tool's own word ask to wait at least, by true time and whatever was journaled."""
        is_undo = name.endswith("!undo")
        path = name.removesuffix("!undo")
        key = f"{self.id}:{path}:undo" if is_undo else f"{self.id}:{path}"
        failed_s, after_ms = self.outside.failed.get((process.name, key), (0.0, 0))
        step = step_at(self.definition, path)
        work = step.undo if is_undo and step.undo is not None else step.work
        failures = self.failures[path, is_undo]
        if not isinstance(work, Tool) or not failures or self.category.get((path, is_undo)) is None:
            return 0.0
        policy = policy_of(work.retry, spec_of(work.tool).retry)
        least_ms = 0 if policy.jitter else backoff_ms(policy, failures)
        return failed_s + max(least_ms, after_ms) / 1_000
