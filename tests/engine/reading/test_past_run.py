"""A run as it was: after each of its events, what a reader sees is what the run was then."""

from __future__ import annotations

from random import Random

import pytest

from engine.reading.test_control_previews import Planner, stage_of, to_the_end
from engine.stage import ADA, Stage, failing, plan, puppet
from handrail.domain.definition.model import Category
from handrail.domain.errors import NotFound
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import Detail
from virtual_time import in_virtual_time


@pytest.mark.parametrize("seed", range(5))
def test_a_run_as_of_an_event_is_what_it_was_then(seed: int) -> None:
    async def scene() -> None:
        stage = stage_of(Random(seed), [])
        await stage.open()
        then: dict[int, Run] = {}
        stage.worker.dispatch.watchers.append(lambda run, _steps, _after: then.update({run.n: run}))
        run = await stage.start(Planner(seed).plan(), {"who": "ann"})
        run = await stage.worker.settled(run.id)
        await stage.control.act(run.id, Action.COMPENSATE, actor=ADA, reason="enough")
        await to_the_end(stage, run)
        reader = RunReader(stage.store, stage.clock)
        assert len(then) > 3
        for n, was in then.items():
            seen = await reader.run(run.id, at=n)
            assert (seen.status, seen.n, seen.done, seen.steps) == (was.status, n, was.done, was.steps)
            assert (await reader.story(run.id, at=n)).n == n
            assert (await reader.past(run.id, n)).as_of.of == max(then)

    in_virtual_time(scene)


def test_in_the_past_nothing_of_what_came_later_is_seen() -> None:
    async def scene() -> None:
        stage = Stage(puppet("x.once", failing(Category.PERMISSION)))
        run = await stage.play(plan({"id": "a", "tool": "x.once"}, {"id": "b", "tool": "x.do"}))
        failed = run.n
        await stage.control.act(run.id, Action.RETRY, actor=ADA, reason="the token is new")
        await stage.worker.settled(run.id)
        reader = RunReader(stage.store, stage.clock)
        now = await reader.status(run.id, detail=Detail.FULL)
        was = await reader.status(run.id, detail=Detail.FULL, at=failed)
        assert [one.status.value for one in now.steps] == ["completed", "completed"]
        assert [one.status.value for one in was.steps] == ["failed", "pending"]
        assert (was.status.value, len(await reader.tries(run.id, "a", at=failed))) == ("waiting", 1)
        assert [one.kind.value for one in await reader.why(run.id, at=failed)] == ["failed", "decision"]
        assert len((await reader.timeline(run.id, at=failed)).spans) < len((await reader.timeline(run.id)).spans)
        for n in (0 - 1, now.progress.total + 1_000):
            with pytest.raises(NotFound):
                await reader.past(run.id, n)

    in_virtual_time(scene)
