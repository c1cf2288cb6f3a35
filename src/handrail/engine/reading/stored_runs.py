"""Stored runs: runs and their definitions as they are in a store, for readers that never write.

Async. Writers use dispatch.py instead, which also knows what is being written at this moment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from handrail.domain.definition.model import Definition
from handrail.domain.errors import NotFound
from handrail.domain.metrics.cache_catalog import RUNS_READ
from handrail.domain.run.state import Run, replay
from handrail.engine.journal import Journal
from handrail.engine.pinned_definitions import PinnedDefinitions
from handrail.engine.stream_pages import entries_of, steps_in
from handrail.engine.watching import Watcher
from handrail.foundation.bounded_cache import BoundedCache
from handrail.foundation.cache_use import use_of

RUNS_KEPT: Final = 100
"""How many runs are cached, so that only new events are read."""
USE: Final = use_of(RUNS_READ)


@dataclass
class StoredRuns:
    """Reads runs from a store, and reports what is new since the last read."""

    journal: Journal
    watchers: list[Watcher] = field(default_factory=list)
    _runs: BoundedCache[str, Run] = field(default_factory=lambda: USE.keeps(BoundedCache(RUNS_KEPT)))
    _definitions: PinnedDefinitions = field(init=False)

    def __post_init__(self) -> None:
        self._definitions = PinnedDefinitions(self.journal)

    async def current(self, run_id: str) -> Run:
        """The current state of a run in the store; NotFound if it has no events."""
        before = self._runs.get(run_id)
        with USE.reading() if before is not None else USE.making():
            before = before or Run(id=run_id)
            tail = await entries_of(self.journal, run_id, after=before.n)
            run = replay(tail, before)
        if not run.n:
            raise NotFound(f"there is no run {run_id!r}", hint="list the runs, then repeat the call")
        self._runs.put(run_id, run)
        if tail:
            for watcher in self.watchers:
                watcher(run, steps_in(tail), before.n)
        return run

    async def definition(self, content_hash: str) -> Definition:
        """The pinned definition with this content hash."""
        return await self._definitions.get(content_hash)
