"""Stored runs: a reader without a worker reads only what is new, and remembers only so much."""

from __future__ import annotations

from typing import Any

import pytest

from engine.stage import ADA, Stage, plan
from handrail.domain.errors import NotFound
from handrail.domain.run.command import SkipStep
from handrail.engine import pinned_definitions
from handrail.engine.reading import stored_runs
from handrail.engine.reading.agenda_cache import AgendaCache
from handrail.engine.reading.stored_runs import StoredRuns
from handrail.storage.memory import MemoryStore
from virtual_time import in_virtual_time


class Counted(MemoryStore):
    """A store that knows from where it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []

    async def read(self, stream: str, *, after: int = 0, **more: Any) -> Any:
        self.reads.append(after)
        return await super().read(stream, after=after, **more)


def test_a_run_that_is_watched_is_read_from_where_the_last_look_ended() -> None:
    store = Counted()

    async def scene() -> tuple[list[int], list[tuple[str, ...]]]:
        stage = Stage(store=store)
        await stage.open(picks_up=False)
        run = await stage.worker.dispatch.start(
            plan({"id": "a", "prompt": "a"}, {"id": "b", "prompt": "b"}), {}, actor=ADA
        )
        agenda_cache = AgendaCache(StoredRuns(store))
        seen = [(await agenda_cache.look(run.id, now=stage.clock()))[2]]
        await stage.worker.dispatch.grant(run.id, SkipStep(step="a", reason="x"), actor=ADA)
        await stage.worker.close()  # it reads, too
        store.reads.clear()
        seen += [(await agenda_cache.look(run.id, now=stage.clock()))[2] for _ in range(2)]
        assert seen[1].agenda is seen[2].agenda is seen[0].agenda
        return store.reads, [one.for_agent for one in seen]

    reads, shown = in_virtual_time(scene)
    assert reads == [1, 2]
    assert shown[1:] == [("b",), ("b",)]


def test_only_so_many_runs_and_definitions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_runs, "RUNS_KEPT", 2)
    monkeypatch.setattr(pinned_definitions, "DEFINITIONS_KEPT", 2)

    async def scene() -> tuple[int, int]:
        stage = Stage()
        await stage.open(picks_up=False)
        runs = StoredRuns(stage.store)
        for number in range(4):
            run = await stage.worker.dispatch.start(plan({"id": f"a{number}", "prompt": "a"}), {}, actor=ADA)
            await runs.definition((await runs.current(run.id)).definition)
        with pytest.raises(NotFound):
            await runs.current("run_nothere1")
        return len(runs._runs), len(runs._definitions._kept)

    assert in_virtual_time(scene) == (2, 2)
