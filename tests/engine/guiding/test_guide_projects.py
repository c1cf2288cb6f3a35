"""The guide gives no step of another project's run to an agent, takes none from it, and checks nothing for it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.guided_runs import CLAUDE, ONE, gate_of
from engine.stage import Stage
from handrail.domain.errors import OtherProject
from handrail.domain.run.state import Run
from handrail.domain.run.submission import Submission
from handrail.engine.guiding.guide import Guide, RunForAgent
from handrail.engine.running.change_notifier import ChangeNotifier
from handrail.storage.memory import MemoryStore
from virtual_time import in_virtual_time

SHOP, SITE = "prj_22222222", "prj_33333333"


class CountingGate:
    """A gate that counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    async def judge(self, *asked: Any, **more: Any) -> Any:
        self.asked += 1
        return await gate_of(is_plain=True).judge(*asked, **more)


def guide_of(stage: Stage, gate: CountingGate) -> Guide:
    worker = stage.worker
    return Guide(worker.dispatch, worker.agenda_cache, ChangeNotifier(worker.dispatch), worker.settings, gate)  # type: ignore[arg-type]


Ask = Callable[[Guide, RunForAgent], Awaitable[object]]
ASKS: dict[str, Ask] = {
    "look": lambda guide, seen: guide.look(seen.run.id),
    "claim": lambda guide, seen: guide.take(seen, "claude", actor=CLAUDE),
    "find": lambda guide, seen: guide.open_step(seen.run.id, 1),
    "submit": lambda guide, seen: guide.submit(seen.run.id, Submission(step="write", output=1), actor=CLAUDE),
    "check": lambda guide, seen: guide.judged(seen.run, seen.definition, "write", 1),
}


@pytest.mark.parametrize("ask", ASKS)
def test_an_agent_of_another_project_is_refused(ask: str) -> None:
    store, gate = MemoryStore(), CountingGate()
    shop, site = Stage(store=store, project=SHOP), Stage(store=store, project=SITE)

    async def scene() -> None:
        await shop.open("w-shop")
        await site.open("w-site")
        run = await shop.start(ONE)
        seen = await guide_of(shop, gate).look(run.id, within_s=10)
        with pytest.raises(OtherProject):
            await ASKS[ask](guide_of(site, gate), seen)
        assert gate.asked == 0
        assert len(await store.read(run.id)) == seen.run.n
        await ASKS[ask](guide_of(shop, gate), seen)  # the shop's own agent may

    in_virtual_time(scene)
    assert gate.asked == (ask in {"submit", "check"})


def test_what_was_accepted_from_one_project_is_not_accepted_again_from_another() -> None:
    store, gate = MemoryStore(), CountingGate()
    shop, site = Stage(store=store, project=SHOP), Stage(store=store, project=SITE)
    given = Submission(step="write", output=1)

    async def scene() -> None:
        await shop.open("w-shop")
        await site.open("w-site")
        run = await shop.start(ONE)
        guide = guide_of(shop, gate)
        assert (await guide.submit(run.id, given, actor=CLAUDE)).accepted
        assert (await guide.submit(run.id, given, actor=CLAUDE)).accepted  # a repetition, as before
        with pytest.raises(OtherProject):
            await guide_of(site, gate).submit(run.id, given, actor=CLAUDE)

    in_virtual_time(scene)


def test_an_output_can_be_checked_against_a_workflow_that_no_run_was_started_of() -> None:
    gate, site = CountingGate(), Stage(project=SITE)

    async def scene() -> None:
        await site.open()
        await guide_of(site, gate).judged(Run(id="run_"), ONE, "write", 1)

    in_virtual_time(scene)
    assert gate.asked == 1
