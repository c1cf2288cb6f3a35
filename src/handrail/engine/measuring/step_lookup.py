"""Which tool and which kind a step has, by run and path: what events don't say, because the pinned definition does.

Async; reads runs and definitions from the store, each once, and remembers a bounded number of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, Protocol

from msgspec import Struct

from handrail.domain.definition.model import Step, Tool
from handrail.domain.journal.event import Mode, RunStarted
from handrail.domain.run.step_path import locate
from handrail.engine.journal import Journal, ProjectionReader
from handrail.engine.pinned_definitions import PinnedDefinitions
from handrail.foundation.bounded_cache import BoundedCache

RUNS_KEPT: Final = 10_000
STEPS_KEPT: Final = 10_000

_round = re.compile(r"\[\d+\]")


class LookupStore(Journal, ProjectionReader, Protocol):
    """What steps are looked up in."""


class PinnedRun(Struct, frozen=True):
    """What a run is pinned to, and who does its steps."""

    definition: str
    mode: str
    project: str


@dataclass
class StepLookup:
    """Finds the steps of runs."""

    store: LookupStore
    _runs: BoundedCache[str, PinnedRun] = field(default_factory=lambda: BoundedCache(RUNS_KEPT))
    _definitions: PinnedDefinitions = field(init=False)
    _steps: BoundedCache[tuple[str, str], Step] = field(default_factory=lambda: BoundedCache(STEPS_KEPT))

    def __post_init__(self) -> None:
        self._definitions = PinnedDefinitions(self.store)

    def note(self, run: str, started: RunStarted) -> None:
        """Remember a run whose first event was just read; it need not be asked for."""
        self._runs.put(run, PinnedRun(started.definition, started.mode, started.project))

    async def run(self, run: str) -> PinnedRun | None:
        """A run, as of now: it may have been adopted since it started."""
        known = self._runs.get(run)
        if known is None:
            row = await self.store.run(run)
            if row is None:
                return None
            known = self._runs.put(run, PinnedRun(row.definition, row.mode, row.project))
        return known

    async def step(self, pinned: PinnedRun, path: str) -> Step:
        """A step of a run's definition."""
        place = (pinned.definition, _round.sub("[0]", path))  # all rounds of a loop are the same step
        known = self._steps.get(place)
        if known is None:
            known = self._steps.put(place, locate(await self._definitions.get(pinned.definition), place[1]).step)
        return known


def tool_of(step: Step, pinned: PinnedRun) -> str:
    """The tool that does a step; empty if an agent or a person does it."""
    return step.work.tool if pinned.mode == Mode.RUN and isinstance(step.work, Tool) else ""


def undo_of(step: Step, pinned: PinnedRun) -> str:
    """The tool that undoes a step; by default the same tool."""
    if pinned.mode != Mode.RUN:
        return ""
    if step.undo is None:
        return step.work.tool if isinstance(step.work, Tool) else ""
    return step.undo.tool if isinstance(step.undo, Tool) else ""
