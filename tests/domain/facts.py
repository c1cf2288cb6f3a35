"""Given facts: plans to test with, and events put in their places."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition
from handrail.domain.journal.event import Entry, Event, Mode, RunStarted
from handrail.domain.run.command import Command, StartRun
from handrail.domain.run.decide import decide
from handrail.domain.run.state import Run, replay

RUN = "run_test2345"


def plan(*steps: Mapping[str, Any]) -> Definition:
    return definition_from({"id": "a-plan", "steps": list(steps)})


CHAIN = plan(
    {"id": "tag", "tool": "git.tag", "effect": "compensatable", "undo": {"tool": "git.untag"}},
    {"id": "build", "tool": "ci.build", "effect": "none"},
    {"id": "publish", "tool": "ci.publish", "effect": "compensatable", "undo": {"tool": "ci.unpublish"}},
    {"id": "tell", "tool": "mail.send", "effect": "irreversible"},
)


def started(mode: Mode = Mode.RUN) -> RunStarted:
    return RunStarted(definition="sha256:0", workflow="a-plan", mode=mode)


def entries(events: Iterable[Event], *, after: int = 0, actor: str = "handrail") -> list[Entry]:
    return [
        Entry(stream=RUN, n=n, at=1_000 * n, actor=actor, event=event, hash=bytes([n % 256]) * 32)
        for n, event in enumerate(events, after + 1)
    ]


def given(*events: Event, mode: Mode = Mode.RUN) -> Run:
    """A run to which this has happened since it started."""
    return replay(entries([started(mode), *events]), Run(id=RUN))


def after(run: Run, commands: Sequence[Command], definition: Definition = CHAIN) -> Run:
    """The run after these commands were granted."""
    for command in commands:
        run = replay(entries(decide(run, command, definition), after=run.n), run)
    return run


def fresh(definition: Definition = CHAIN, mode: Mode = Mode.RUN) -> Run:
    start = StartRun(definition="sha256:0", workflow=definition.id, mode=mode)
    return after(Run(id=RUN), [start], definition)
