"""Placing by a host: only on nodes that have room and what a run needs, and handed back only once it is released."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest
from msgspec.structs import replace

from engine.running.test_stretches import Lossy, owner_of
from engine.stage import ADA, Stage, plan, puppet, taking
from handrail.domain.errors import Unavailable
from handrail.domain.fleet.node import NodeCard
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus
from handrail.engine.fleet.node import LocalNode
from handrail.engine.running.host import Reason, Rest, Wake
from handrail.engine.running.lease import LeaseHolder
from handrail.engine.running.placing import AT_ONCE
from handrail.engine.running.sweep import NEEDS_WAIT_S_MAX, Sweep
from virtual_time import in_virtual_time

SLOW = {"id": "a", "tool": "x.slow"}
GPU = frozenset({"gpu"})


class Slow(Lossy):
    """A host that answers nothing in time."""

    most = now = 0

    async def wake(self, wake: Wake) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(5)
        self.now -= 1
        raise Unavailable("it did not answer in time")


def node_with(stage: Stage, name: str, slots: int = 0) -> LocalNode:
    return LocalNode(stage.store.nodes(), NodeCard(id=name, name=name, kind="worker", version="1", slots=slots))


def test_a_run_that_needs_a_label_ends_its_stretch_and_a_node_that_has_it_asks_for_it() -> None:
    stage, host = Stage(puppet("x.slow", taking(1))), Lossy(times=1)
    labelled = plan({"id": "a", "tool": "x.do"}, {"id": "b", "tool": "x.slow", "runs_on": ["gpu"]})

    async def scene() -> tuple[Rest, Rest, LeaseHolder | None, int, Run]:
        await stage.open("w-one", host=host)
        await asyncio.sleep(1)
        run = await stage.start(labelled)
        await asyncio.sleep(30)
        first, held, asked = host.rests[-1], await stage.store.lease_holder(run.id), len(host.wakes)
        second = await host._conduct[0](run.id)  # placed once more where it can't go on
        host._conduct.clear()
        await stage.open("w-two", host=host, labels=GPU)
        await asyncio.sleep(30)
        return first, second, held, asked, await stage.worker.dispatch.current(run.id)

    first, second, held, asked, run = in_virtual_time(scene)
    assert (first.why, second.why, second.n) == (Reason.LABELS, Reason.LABELS, first.n)
    assert held is not None
    assert (held.owner, held.needs) == ("", "gpu")
    assert {wake.needs for wake in host.wakes[:asked]} == {""}
    assert {wake.needs for wake in host.wakes[asked:]} == {"gpu"}
    assert host.offered == GPU
    assert run.status is RunStatus.COMPLETED


def test_a_node_hands_back_what_it_has_no_room_for() -> None:
    stage, host = Stage(puppet("x.slow", taking(60))), Lossy(lambda wake: wake.again > 0, times=1)

    async def scene() -> tuple[int | None, list[Reason], int]:
        node = node_with(stage, "n-a", slots=2)
        await stage.open("w-one", host=host, node=node)
        await asyncio.sleep(1)
        for _ in range(5):
            await stage.start(plan(SLOW))
        await asyncio.sleep(5)
        return stage.worker.room(), [rest.why for rest in host.rests], len(stage.worker.conductors)

    assert in_virtual_time(scene) == (0, [Reason.HANDED_OVER] * 3, 2)


@pytest.mark.parametrize(("bound", "needs"), [({"server": "good"}, "server:good"), ({"is_command": True}, "commands:")])
def test_a_call_that_only_some_machines_may_make_waits_for_one_of_them(bound: dict[str, Any], needs: str) -> None:
    stage = Stage(puppet("good.say", **bound))

    async def scene() -> tuple[LeaseHolder | None, str, Run]:
        await stage.open("w-one", is_shared=True)
        run = await stage.start(plan({"id": "a", "tool": "good.say"}))
        await asyncio.sleep(5)
        held = await stage.store.lease_holder(run.id)
        await stage.open("w-two", is_shared=True, labels=frozenset({needs}))
        await asyncio.sleep(5)
        after = await stage.worker.dispatch.current(run.id)
        return held, after.step("a").status, after

    held, step, run = in_virtual_time(scene)
    assert held is not None
    assert (held.owner, held.needs) == ("", needs)
    assert (step, run.status) == ("completed", RunStatus.COMPLETED)


def test_a_store_of_one_machine_asks_for_no_other_one() -> None:
    stage = Stage(puppet("good.say", server="good"), puppet("x.command", is_command=True))
    run = in_virtual_time(lambda: stage.play(plan({"id": "a", "tool": "good.say"}, {"id": "b", "tool": "x.command"})))
    assert run.status is RunStatus.COMPLETED


def test_a_paused_node_takes_nothing_that_a_host_places_there() -> None:
    stage, host = Stage(puppet("x.slow", taking(5))), Lossy(times=1)

    async def scene() -> tuple[str, Reason, Run]:
        node = node_with(stage, "n-a")
        await stage.open("w-one", host=host, node=node)
        await stage.store.nodes().pause("n-a", "person:ada")
        await node.beat()
        run = await stage.start(plan(SLOW))
        await asyncio.sleep(5)
        held, why = await owner_of(stage, run.id), host.rests[0].why
        await stage.store.nodes().pause("n-a", "")
        await asyncio.sleep(120)
        return held, why, await stage.worker.dispatch.current(run.id)

    held, why, run = in_virtual_time(scene)
    assert (held, why, run.status) == ("", Reason.HANDED_OVER, RunStatus.COMPLETED)


def test_a_project_that_asks_for_labels_is_not_served_by_a_node_without_them() -> None:
    stage, host = Stage(), Lossy(times=1)

    async def scene() -> tuple[int, Run]:
        await stage.open("w-one", host=host, runs_on=GPU)
        await asyncio.sleep(1)
        served = len(host._conduct)
        run = await stage.start(plan({"id": "a", "tool": "x.do"}))
        await stage.open("w-two", host=host, runs_on=GPU, labels=GPU)
        await asyncio.sleep(30)
        return served, await stage.worker.dispatch.current(run.id)

    served, run = in_virtual_time(scene)
    assert (served, run.status) == (0, RunStatus.COMPLETED)


def test_a_node_that_drains_says_so_when_the_next_one_can_take_the_run() -> None:
    stage, host = Stage(puppet("x.slow", taking(20), idempotent=True)), Lossy(lambda wake: wake.again > 0, times=1)

    async def scene() -> tuple[list[Rest], str, list[Rest]]:
        worker = await stage.open("w-one", host=host)
        await asyncio.sleep(1)
        run = await stage.start(plan(SLOW, {"id": "b", "tool": "x.do"}))
        await asyncio.sleep(5)
        draining = asyncio.ensure_future(worker.drain(grace_s=60))
        await asyncio.sleep(5)
        before = list(host.rests)
        await draining
        await asyncio.sleep(0)
        return before, await owner_of(stage, run.id), host.rests

    before, held, after = in_virtual_time(scene)
    assert (before, held) == ([], "")
    assert [rest.why for rest in after] == [Reason.HANDED_OVER]


def test_the_sweep_asks_at_once_for_what_only_some_nodes_can_do_and_never_waits_long() -> None:
    sweep, free = Sweep(first_s=1.0), [LeaseHolder("run_a", 3, needs="gpu")]
    asked = [now for now in range(100) if sweep.overdue(free, now_s=float(now))]
    assert asked[:3] == [0, 4, 19]
    assert {later - sooner for sooner, later in pairwise(asked[1:])} == {int(NEEDS_WAIT_S_MAX)}


def test_a_run_that_was_paused_goes_on_wherever_a_host_places_it() -> None:
    stage, host = Stage(puppet("x.slow", taking(5), idempotent=True)), Lossy(lambda wake: wake.again > 0, times=1)

    async def scene() -> tuple[str, Run]:
        await stage.open("w-one", host=host)
        await asyncio.sleep(1)
        run = await stage.start(plan(SLOW, {"id": "b", "tool": "x.do"}))
        await asyncio.sleep(1)
        await stage.control.act(run.id, Action.PAUSE, actor=ADA, reason="wait")
        await asyncio.sleep(10)
        host._conduct.clear()
        await stage.open("w-two", host=host)
        await asyncio.sleep(1)
        await stage.control.act(run.id, Action.RESUME, actor=ADA, reason="go on")
        held = await owner_of(stage, run.id)
        await asyncio.sleep(10)
        return held, await stage.worker.dispatch.current(run.id)

    held, run = in_virtual_time(scene)
    assert (held, run.status) == ("", RunStatus.COMPLETED)


def test_a_deadline_that_has_passed_does_not_count_while_its_run_is_undone() -> None:
    run = Run(id="run_a", status=RunStatus.RUNNING, deadline=5)
    assert run.expires == 5
    assert replace(run, status=RunStatus.COMPENSATING).expires is None


def test_the_distances_of_the_sweep_do_not_grow_while_the_host_can_not_be_asked() -> None:
    sweep, free, asked = Sweep(first_s=1.0), [LeaseHolder("run_a", 3)], list[int]()
    for now in range(100):
        if sweep.overdue(free, now_s=float(now)):
            asked.append(now)
            sweep.failed("run_a", now_s=float(now))
    assert asked == [1, 5, 20, 35, 50, 65, 80, 95]


def test_a_run_is_placed_soon_after_a_long_outage_of_the_host() -> None:
    stage, host = Stage(), Lossy(times=1)

    async def scene() -> Run:
        back_s = asyncio.get_running_loop().time() + 300
        host.loses = lambda _: asyncio.get_running_loop().time() < back_s
        await stage.open(host=host)
        run = await stage.start(plan({"id": "a", "tool": "x.do"}))
        await asyncio.sleep(320)
        return await stage.worker.dispatch.current(run.id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED


def test_a_slow_host_is_asked_for_a_few_runs_at_once_and_a_node_that_closes_does_not_wait_for_a_dead_one() -> None:
    stage, host = Stage(), Slow()

    async def scene() -> float:
        worker = await stage.open(host=host)
        for _ in range(100):
            await stage.start(plan({"id": "a", "tool": "x.do"}))
        await asyncio.sleep(7)
        started_s = asyncio.get_running_loop().time()
        await worker.close(grace_s=1)
        return asyncio.get_running_loop().time() - started_s

    assert in_virtual_time(scene) <= 6
    assert host.most == AT_ONCE
