"""Workers of two projects on one store: each executes the runs of its own project, with its own tools, and no other."""

from __future__ import annotations

import asyncio

from engine.stage import ADA, Stage, always, plan, puppet, taking
from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal.event import AttemptStarted
from handrail.domain.run.command import CancelRun
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.scheduling.breaker import BreakerStatus
from handrail.engine.running.lease import LeaseHolder
from handrail.storage.memory import MemoryStore
from virtual_time import in_virtual_time

SHOP, SITE = "prj_22222222", "prj_33333333"
STEP = {"id": "a", "tool": "x.slow"}


def two_stages(seconds: float = 10) -> tuple[Stage, Stage]:
    store = MemoryStore()
    shop, site = (
        Stage(puppet("x.slow", taking(seconds), idempotent=True), store=store, project=one) for one in (SHOP, SITE)
    )
    site.alive = shop.alive
    return shop, site


def test_a_worker_leaves_the_runs_of_another_project_alone_even_when_nobody_executes_them() -> None:
    shop, site = two_stages()

    async def scene() -> tuple[bool, RunStatus, Run]:
        await shop.open("w-shop")
        run = await shop.start(plan(STEP))
        await asyncio.sleep(5)
        await shop.die()
        await site.open("w-site")
        has_taken = await site.worker.take(run.id)
        await asyncio.sleep(60)
        before = (await site.worker.dispatch.current(run.id)).status
        holder = await site.store.lease_holder(run.id)
        assert holder is not None
        assert (holder.owner, holder.epoch) == ("w-shop", 1)  # never claimed
        await shop.open("w-shop-two")
        return has_taken, before, await shop.worker.settled(run.id)

    has_taken, before, after = in_virtual_time(scene)
    assert (has_taken, before, after.status) == (False, RunStatus.RUNNING, RunStatus.COMPLETED)
    assert len(shop.box.tools["x.slow"].calls) == 2
    assert site.box.tools["x.slow"].calls == []


def test_a_change_of_another_projects_run_wakes_no_worker_and_removes_nothing_that_is_kept() -> None:
    shop, site = two_stages(1)

    async def scene() -> str:
        await shop.open("w-shop")
        await site.open("w-site")
        run = await shop.start(plan(STEP))
        await site.worker.dispatch.current(run.id)  # read, and so cached and watched
        await shop.worker.settled(run.id)
        assert (await site.worker.dispatch.current(run.id)).status is RunStatus.COMPLETED
        await asyncio.sleep(5)
        return run.id

    run = in_virtual_time(scene)
    assert (shop.box.forgotten, site.box.forgotten) == ([run], [])
    assert site.worker.conductors == {}
    assert not site.worker._wanted


def test_a_run_that_was_listed_before_another_project_adopted_it_is_given_back() -> None:
    shop, site = two_stages()

    async def scene() -> tuple[set[str], LeaseHolder | None]:
        await shop.open("w-shop")
        run = await shop.start(plan(STEP))
        await asyncio.sleep(1)
        await shop.die()
        await site.open("w-site")
        seen = await site.store.lease_holder(run.id)  # as if it was the site's own
        assert seen is not None
        await site.worker._claims.take([seen])
        return set(site.worker.conductors), await site.store.lease_holder(run.id)

    conducted, holder = in_virtual_time(scene)
    assert conducted == set()
    assert holder is not None
    assert (holder.owner, holder.epoch) == ("", 2)
    assert site.box.tools["x.slow"].calls == []


def test_a_worker_gives_up_a_run_that_another_project_has_adopted() -> None:
    shop, site = two_stages()

    async def scene() -> tuple[Run, list[str]]:
        await shop.open("w-shop")
        run = await shop.start(plan(STEP, {"id": "b", "tool": "x.do"}))
        await asyncio.sleep(1)
        await site.open("w-site")
        await site.worker.dispatch.adopt(run.id, reason="the shop was forgotten", actor=ADA)
        after = await site.worker.settled(run.id)
        events = await shop.events(run.id)
        return after, [event.step for event in events if isinstance(event, AttemptStarted)]

    after, attempts = in_virtual_time(scene)
    assert (after.project, after.status) == (SITE, RunStatus.COMPLETED)
    assert attempts == ["a", "a", "b"]
    assert shop.worker.conductors == {}
    assert [len(stage.box.tools["x.do"].calls) for stage in (shop, site)] == [0, 1]


def test_a_worker_whose_run_was_adopted_calls_nothing_more_for_it() -> None:
    shop, site = two_stages()
    for stage in (shop, site):
        stage.box.tools["x.peek"] = puppet("x.peek", effect=Effect.NONE)

    async def scene() -> Run:
        await shop.open("w-shop")
        beside = {"id": "b", "tool": "x.peek", "after": []}
        run = await shop.start(plan(STEP, beside, max_parallel=1))
        await asyncio.sleep(1)
        await site.open("w-site", picks_up=False)
        await site.worker.dispatch.adopt(run.id, reason="the shop was forgotten", actor=ADA)
        await asyncio.sleep(60)  # what the shop had begun has ended
        assert await site.worker.take(run.id)
        return await site.worker.settled(run.id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED
    assert [len(stage.box.tools["x.peek"].calls) for stage in (shop, site)] == [0, 1]


def test_a_failing_server_of_one_project_does_not_stop_calls_to_one_of_the_same_name_in_another() -> None:
    store = MemoryStore()
    shop = Stage(puppet("ci.run", always(Category.TRANSIENT), reach="ci"), store=store, project=SHOP)
    site = Stage(puppet("ci.run", reach="ci"), store=store, project=SITE)

    async def scene() -> tuple[BreakerStatus, Run]:
        await shop.open("w-shop")
        await site.open("w-site")
        quick = {"attempts": 8, "first": "1ms", "max": "2ms"}
        run = await shop.start(plan({"id": "a", "tool": "ci.run", "retry": quick}))
        await asyncio.sleep(2)
        broken = await shop.worker._parts.breakers.breaker("ci")
        ended = await site.play(plan({"id": "a", "tool": "ci.run"}))
        await shop.worker.dispatch.grant(run.id, CancelRun(reason="enough"), actor=ADA)
        return broken.status, ended

    status, ended = in_virtual_time(scene)
    assert status is BreakerStatus.OPEN
    assert (ended.status, ended.step("a").status) == (RunStatus.COMPLETED, StepStatus.COMPLETED)
    assert f"server/{SHOP}/ci" in store._streams
    assert f"server/{SITE}/ci" not in store._streams
