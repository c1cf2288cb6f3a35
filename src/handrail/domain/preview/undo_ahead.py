"""Undo ahead: how the undoing of a run would go if every call worked: what is called, in which order, and what is left.

Pure. It uses the same agenda, turns and decisions as a real run, one call at a time. With
`max_parallel` above 1 a real run also undoes independent steps at once, and never before what has to come first."""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.definition.effect import effect_of
from handrail.domain.definition.model import Call, Definition, Prompt, Tool, title_of
from handrail.domain.journal.event import (
    ApprovalRequested,
    AttemptStarted,
    Event,
    How,
    StepHandedOut,
    UndoStarted,
)
from handrail.domain.preview.calls_ahead import (
    Now,
    call_of,
    is_self_contained,
    steps_of_undo,
    undo_call_of,
)
from handrail.domain.preview.starts_ahead import granted, steps_touched
from handrail.domain.preview.values import CallAhead, EffectLeft, Lasting
from handrail.domain.run.command import (
    Command,
    CompensateStep,
    CompleteStep,
    GiveApproval,
    HandOutStep,
    StartAttempt,
    StartUndo,
)
from handrail.domain.run.state import Run
from handrail.domain.run.status import STEP_HALF_DONE, RunStatus, StepStatus
from handrail.domain.run.step_path import UNDO, is_in_undo, locate
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.compensation import has_undo, holding_back, not_compensated, undo_order
from handrail.domain.scheduling.step_start import Grant, start_of, undo_start_of
from handrail.domain.scheduling.turn import Turn, next_turn, ready_for_agent

TURNS_MAX: Final = 20_000


class UndoForecast(Struct, frozen=True):
    """How undoing would go."""

    calls: tuple[CallAhead, ...]
    """All that would be done, in the order in which it would start."""
    after: Run
    """The run as it would be then; still `compensating` if somebody has to decide first."""


def undo_forecast(run: Run, definition: Definition, now: Now) -> UndoForecast:
    """How undoing a run that is `compensating` would go on."""
    undoing = _Undoing(run, definition, now)
    undoing.go()
    calls = (one for event in undoing.events for one in _calls(run, undoing.run, definition, event, now))
    numbered = (replace(one, order=order) for order, one in enumerate(calls, 1))
    return UndoForecast(tuple(numbered), undoing.run)


class _Undoing:
    """Undoes a run as a conductor does (engine/running/conductor.py) that has one slot for calls; all of them work."""

    def __init__(self, run: Run, definition: Definition, now: Now) -> None:
        self.definition, self.now, self.at = definition, now, now.at
        self.agenda = Agenda(definition, run)
        self.events: list[Event] = []

    @property
    def run(self) -> Run:
        """The run so far."""
        return self.agenda.run

    def go(self) -> None:
        for _ in range(TURNS_MAX):
            self.agenda.keep_up(self.at)
            if self.run.status is not RunStatus.COMPENSATING:
                return
            turn = next_turn(self.agenda, check=self.now.check)
            commands = self._turned(turn) if turn else self._acted()
            if not commands:
                return
            for command in commands:
                self._grant(command)

    def _turned(self, turn: Turn) -> list[Command]:
        """What handrail does by itself in a turn, with the one call that it starts, and its end."""
        commands = list(turn.commands)
        for path in turn.undos:
            match undo_start_of(self.run, self.definition, path, check=self.now.check):
                case Grant(commands=more):
                    commands += more
                case _:
                    return [*commands, StartUndo(step=path), CompensateStep(step=path, how=How.EXECUTED)]
        for path in turn.calls:
            if whole := self._undone_as_a_whole(path):
                return [*commands, whole]
            match start_of(self.run, self.definition, path, now=self.at, check=self.now.check):
                case Grant(commands=more):
                    commands += more
                case _:
                    return [*commands, StartAttempt(step=path), CompleteStep(step=path)]
        return commands

    def _undone_as_a_whole(self, path: str) -> Command | None:
        """The end of a workflow that uses results which are not known yet: it counts as one call."""
        container = path.partition(UNDO)[0]
        is_known = not is_in_undo(path) or is_self_contained(self.definition, container)
        return None if is_known else CompensateStep(step=container, how=How.EXECUTED)

    def _acted(self) -> list[Command]:
        """What agents and people do once nothing else moves; or time passes."""
        agenda = self.agenda
        for path in agenda.undos.by_agent():
            return [CompensateStep(step=path, how=How.BY_AGENT)]
        for path in sorted((*agenda.tracked.waiting, *ready_for_agent(agenda, check=self.now.check))):
            if whole := self._undone_as_a_whole(path):
                return [whole]
            state = self.run.step(path)
            if state.digest:
                return [GiveApproval(step=path, digest=state.digest, reason="", at=self.at)]
            if isinstance(locate(self.definition, path).step.work, Prompt):
                is_assigned = state.status is StepStatus.WAITING
                return [*([] if is_assigned else [HandOutStep(step=path)]), CompleteStep(step=path)]
        return []

    def _grant(self, command: Command) -> None:
        after, events = granted(self.run, self.definition, command, at=self.at)
        self.events += events
        self.agenda.update(after, steps_touched(events))


def _calls(run: Run, after: Run, definition: Definition, event: Event, now: Now) -> list[CallAhead]:
    """What an event starts: the undo of a step, or a step of a workflow that undoes one."""
    if isinstance(event, UndoStarted):
        path = event.step
        call = replace(undo_call_of(run, definition, path, now), after=holding_back(run, definition, path) or "")
        is_whole = isinstance(locate(definition, path).step.undo, Call) and not is_self_contained(definition, path)
        return [call, *(steps_of_undo(after, definition, path, now) if is_whole else ())]
    if isinstance(event, AttemptStarted | StepHandedOut | ApprovalRequested) and is_in_undo(event.step):
        is_shown = is_self_contained(definition, event.step.partition(UNDO)[0])
        return [replace(call_of(after, definition, event.step, now), is_undo=True)] if is_shown else []
    return []


def effects_left(run: Run, definition: Definition) -> list[EffectLeft]:
    """The effects of a run that are not undone: those that could be first, newest first."""
    can_be = undo_order(run, definition)
    others = [path for path in not_compensated(run, definition) if path not in can_be]
    failed = frozenset(path for path in can_be if run.step(path).status is StepStatus.COMPENSATION_FAILED)
    return [
        *(effect_left(run, definition, path, _why_undone(run, definition, path, failed)) for path in can_be),
        *(effect_left(run, definition, path, _why_lasting(run, path)) for path in others),
    ]


def effect_left(run: Run, definition: Definition, path: str, why: Lasting) -> EffectLeft:
    """One effect that stays."""
    found, state = locate(definition, path), run.step(path)
    step = found.step
    return EffectLeft(
        step=path,
        why=why,
        title=title_of(step),
        tool=step.work.tool if isinstance(step.work, Tool) else "",
        effect=state.effect if state.effect is not None else effect_of(step),
        can_be_undone=has_undo(found, state),
    )


def _why_undone(run: Run, definition: Definition, path: str, failed: frozenset[str]) -> Lasting:
    if path in failed or (failed and holding_back(run, definition, path)):
        return Lasting.UNDO_FAILS
    return Lasting.NOT_UNDONE


def _why_lasting(run: Run, path: str) -> Lasting:
    state = run.step(path)
    if state.status in STEP_HALF_DONE:
        return Lasting.UNKNOWN
    return Lasting.GIVEN_UP if state.status is StepStatus.SKIPPED else Lasting.NO_UNDO
