"""Starts ahead: what a run would do next by itself, up to the first results that are not known yet.

Pure: the same agenda, turns and decisions as a real run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import Definition
from handrail.domain.journal.event import ApprovalRequested, Entry, Event, Mode, step_of
from handrail.domain.policy.actor import SYSTEM
from handrail.domain.preview.calls_ahead import Now, call_of
from handrail.domain.preview.values import CallAhead
from handrail.domain.run.command import Command
from handrail.domain.run.decide import decide
from handrail.domain.run.state import Run, replay
from handrail.domain.run.status import RunStatus
from handrail.domain.scheduling.agenda import Agenda
from handrail.domain.scheduling.turn import next_turn, ready_for_agent

TURNS_MAX: Final = 200


class StartForecast(Struct, frozen=True):
    """What a run does next."""

    calls: tuple[CallAhead, ...]
    after: Run
    """The run once it can only wait for these calls, for a person or for an agent."""


def granted(
    run: Run, definition: Definition, command: Command, *, at: int, actor: str = SYSTEM
) -> tuple[Run, list[Event]]:
    """The run after a command, and its events; Conflict if it is not legal. Nothing is written."""
    events = decide(run, command, definition)
    entries = [
        Entry(stream=run.id, n=n, at=at, actor=actor, event=event, hash=run.head)
        for n, event in enumerate(events, run.n + 1)
    ]
    return replay(entries, run), events


def start_forecast(run: Run, definition: Definition, now: Now) -> StartForecast:
    """What this run would do next by itself."""
    if run.status is not RunStatus.RUNNING or run.mode is Mode.RECORD:
        return StartForecast((), run)
    # One of its own: it is moved on below, and the shared one belongs to what really happened.
    agenda = Agenda(definition, run)
    agenda.keep_up(now.at)
    asked = _moved(agenda, now)
    if agenda.run.status is not RunStatus.RUNNING:
        return StartForecast((), agenda.run)
    calls = next_turn(agenda, check=now.check, under_way=frozenset(agenda.tracked.busy)).calls
    prompts = ready_for_agent(agenda, check=now.check) if agenda.tracked.halt is None else []
    ahead = tuple(call_of(agenda.run, definition, path, now) for path in (*calls, *prompts, *asked))
    return StartForecast(ahead, agenda.run)


def _moved(agenda: Agenda, now: Now) -> list[str]:
    """Grant what handrail does by itself without a call; the approvals that a person is then asked for."""
    asked: list[str] = []
    # A loop whose rounds need no call might never end; a forecast of that many turns is enough.
    for _ in range(TURNS_MAX):
        commands = next_turn(agenda, check=now.check, under_way=frozenset(agenda.tracked.busy)).commands
        for command in commands:
            after, events = granted(agenda.run, agenda.definition, command, at=now.at)
            agenda.update(after, steps_touched(events))
            asked += [event.step for event in events if isinstance(event, ApprovalRequested)]
        if not commands:
            break
    return asked


def steps_touched(events: Iterable[Event]) -> set[str]:
    """The steps that these events concern."""
    return {path for path in map(step_of, events) if path is not None}
