"""Stretches of work: nobody holds a run that waits, and a host that calls twice, late or not at all loses nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from engine.stage import ADA, Stage, plan, puppet, taking
from handrail.domain.errors import Unavailable
from handrail.domain.fleet.node import NodeCard
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus
from handrail.engine.fleet.node import LocalNode
from handrail.engine.running.host import Conduct, Reason, Rest, Room, Wake
from handrail.engine.running.lease import Lease, LeaseHolder
from handrail.engine.running.owners import CHECK_S
from handrail.engine.running.sweep import WAKES_MAX, Sweep
from handrail.storage.memory import MemoryStore
from virtual_time import in_virtual_time

WAITS = ({"id": "a", "tool": "wait.for"}, {"id": "b", "tool": "x.do"})
ASKS = ({"id": "a", "approve": "Go on?", "expires": "1h"}, {"id": "b", "tool": "x.do"})


async def owner_of(stage: Stage, run: str) -> str:
    holder = await stage.store.lease_holder(run)
    return holder.owner if holder is not None else "ended"


# --- timers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("picks_up", [True, False])
def test_nobody_holds_a_run_that_waits_for_a_timer_and_it_goes_on_in_time(picks_up: bool) -> None:
    stage = Stage()

    async def scene() -> tuple[str, float, Run]:
        await stage.open(picks_up=picks_up)
        started_s = asyncio.get_running_loop().time()
        run = await stage.start(plan(*WAITS))
        await asyncio.sleep(30)
        held = await owner_of(stage, run.id)
        after = await stage.worker.settled(run.id)
        return held, asyncio.get_running_loop().time() - started_s, after

    held, took_s, run = in_virtual_time(scene)
    assert (held, run.status) == ("", RunStatus.COMPLETED)
    assert 60 <= took_s < 61


def test_another_worker_goes_on_when_the_one_that_set_the_timer_is_gone() -> None:
    stage = Stage()

    async def scene() -> tuple[float, Run]:
        await stage.open("w-one")
        run = await stage.start(plan(*WAITS))
        await asyncio.sleep(10)
        await stage.die()
        await stage.open("w-two")
        return asyncio.get_running_loop().time(), await stage.worker.settled(run.id)

    assert in_virtual_time(scene)[1].status is RunStatus.COMPLETED


def test_a_question_that_expires_is_held_by_nobody_and_can_be_answered() -> None:
    stage = Stage()

    async def scene() -> tuple[str, Run, Run]:
        await stage.open()
        run = await stage.start(plan(*ASKS))
        asked = await stage.worker.settled(run.id)
        await asyncio.sleep(1)
        held = await owner_of(stage, run.id)
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        return held, asked, await stage.worker.settled(run.id)

    held, asked, run = in_virtual_time(scene)
    assert (held, asked.status, run.status) == ("", RunStatus.RUNNING, RunStatus.COMPLETED)


# --- a host -----------------------------------------------------------------------------------------


class Lossy:
    """A host in memory; `loses` says which wakes it forgets, and it calls for every other one twice."""

    def __init__(self, loses: Callable[[Wake], bool] = lambda _: False, *, times: int = 2) -> None:
        self.loses = loses
        self.times = times
        self.wakes: list[Wake] = []
        self.rests: list[Rest] = []
        self.errors: list[Exception] = []
        self.offered: set[str] = set()
        self._conduct: list[Conduct] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def wake(self, wake: Wake) -> None:
        self.wakes.append(wake)
        if self.loses(wake):
            raise Unavailable("the host is down")
        for conduct in (self._conduct * 2)[: self.times]:
            self._go(conduct, wake.run)

    def _go(self, conduct: Conduct, run: str, delay_s: float = 0.0) -> None:
        task = asyncio.get_running_loop().create_task(self._stretch(conduct, run, delay_s))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stretch(self, conduct: Conduct, run: str, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        try:
            rest = await conduct(run)
        except Unavailable as error:
            self.errors.append(error)
            return
        self.rests.append(rest)
        if rest.until is not None:
            self._go(conduct, run, (rest.until - Stage().clock()) / 1_000)

    async def serve(self, conduct: Conduct, room: Room) -> None:
        self._conduct.append(conduct)
        await asyncio.Event().wait()

    def offer(self, needs: str) -> None:
        self.offered.add(needs)

    async def close(self) -> None:
        await asyncio.gather(*self._tasks)


@pytest.mark.parametrize("steps", [WAITS, ASKS, ({"id": "a", "tool": "x.slow"}, {"id": "b", "tool": "x.do"})])
@pytest.mark.parametrize("lost", [0, 2])
def test_a_host_that_calls_twice_or_forgets_ends_every_run_once(steps: Any, lost: int) -> None:
    stage = Stage(puppet("x.slow", taking(10)))
    host = Lossy(lambda wake: wake.again < lost)

    async def scene() -> tuple[Run, list[str]]:
        await stage.open("w-one", host=host)
        await stage.open("w-two", host=host)
        run = await stage.start(plan(*steps))
        await asyncio.sleep(20)
        if steps is ASKS:
            await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        await asyncio.sleep(100)
        return await stage.worker.dispatch.current(run.id), await stage.kinds(run.id)

    run, kinds = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    assert kinds.count("step_completed b") == 1
    assert kinds.count("step_completed a") == (steps is not ASKS)
    assert len(stage.box.tools["x.do"].calls) == 1
    assert not host.errors


def test_a_node_that_closes_hands_over_what_was_placed_on_it() -> None:
    stage = Stage(puppet("x.slow", taking(60), idempotent=True))
    host = Lossy()

    async def scene() -> tuple[str, Run]:
        worker = await stage.open("w-one", host=host)
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}))
        await asyncio.sleep(5)
        await worker.close(grace_s=1)
        held = await owner_of(stage, run.id)
        await stage.open("w-two", host=host)
        await asyncio.sleep(100)
        return held, await stage.worker.dispatch.current(run.id)

    held, run = in_virtual_time(scene)
    assert (held, run.status) == ("", RunStatus.COMPLETED)
    assert host.rests[0].why is Reason.HANDED_OVER


class LateClaims(MemoryStore):
    """A store whose answers to claims take a second."""

    claims = 0

    async def claim(self, owner: str, lease_holders: Sequence[LeaseHolder]) -> list[Lease]:
        self.claims += len(lease_holders)
        leases = await super().claim(owner, lease_holders)
        await asyncio.sleep(1)
        return leases


def test_a_stretch_that_the_host_calls_off_while_it_claims_its_run_leaves_no_lease_without_work() -> None:
    store, host = LateClaims(), Lossy(lambda _: True)
    stage = Stage(store=store)

    async def scene() -> Run:
        await stage.open(host=host)
        await asyncio.sleep(1)
        run = await stage.start(plan({"id": "a", "tool": "x.do"}))
        stretch = asyncio.ensure_future(host._conduct[0](run.id))
        await asyncio.sleep(0.5)
        stretch.cancel()
        await asyncio.sleep(10)
        return await stage.worker.dispatch.current(run.id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED
    assert store.claims == 1


class DeadWhileReleasing(MemoryStore):
    """A store that does not answer when leases are released, until it is told to."""

    is_dead = False
    waits: asyncio.Event

    async def release(self, leases: Sequence[Lease], **how: Any) -> None:
        if self.is_dead:
            await self.waits.wait()
            self.is_dead = False
            raise Unavailable("the store was restarted")
        await super().release(leases, **how)


def test_runs_that_rest_are_released_even_if_the_host_called_off_the_stretch_that_released_them() -> None:
    store, host = DeadWhileReleasing(), Lossy(lambda _: True)
    stage = Stage(store=store)

    async def scene() -> list[str]:
        store.waits = asyncio.Event()
        await stage.open(host=host)
        await asyncio.sleep(1)
        runs = [await stage.start(plan(*ASKS)) for _ in range(2)]
        store.is_dead = True
        stretches = [asyncio.ensure_future(host._conduct[0](run.id)) for run in runs]
        await asyncio.sleep(0.5)
        for stretch in stretches:
            stretch.cancel()
        store.waits.set()
        await asyncio.sleep(5)
        return [await owner_of(stage, run.id) for run in runs]

    assert in_virtual_time(scene) == ["", ""]


async def held_without_a_conductor(stage: Stage, definition: Any) -> str:
    """A run that this node holds as if an answer of the store was lost."""
    run = await stage.start(definition)
    holder = await stage.store.lease_holder(run.id)
    assert holder is not None
    await stage.store.claim("w-one", [holder])
    return run.id


@pytest.mark.parametrize("is_full", [False, True])
def test_a_node_goes_on_with_what_it_holds_at_once_and_asks_no_host_for_it(is_full: bool) -> None:
    stage, host = Stage(puppet("x.slow", taking(100))), Lossy(times=1)

    async def scene() -> tuple[RunStatus, list[Wake]]:
        node = LocalNode(stage.store.nodes(), NodeCard(id="n-a", name="n-a", kind="worker", version="1", slots=1))
        worker = await stage.open(host=host, node=node if is_full else None)
        await asyncio.sleep(1)
        if is_full:
            await stage.start(plan({"id": "a", "tool": "x.slow"}))
            await asyncio.sleep(1)
            assert worker.room() == 0
        host.loses = lambda _: True
        run = await held_without_a_conductor(stage, plan({"id": "a", "tool": "x.do"}))
        await asyncio.sleep(0.001)
        host.wakes.clear()  # that it was started was said before
        await asyncio.sleep(1.5 * CHECK_S)
        return (await worker.dispatch.current(run)).status, [wake for wake in host.wakes if wake.run == run]

    assert in_virtual_time(scene) == (RunStatus.COMPLETED, [])


def test_a_paused_node_gives_back_what_it_holds_and_does_not_work_on() -> None:
    stage, host = Stage(), Lossy(lambda _: True)

    async def scene() -> str:
        node = LocalNode(stage.store.nodes(), NodeCard(id="n-a", name="n-a", kind="worker", version="1"))
        await stage.open(host=host, node=node)
        await stage.store.nodes().pause("n-a", ADA)
        await node.beat()
        run = await held_without_a_conductor(stage, plan({"id": "a", "tool": "x.do"}))
        await asyncio.sleep(1)
        return await owner_of(stage, run)

    assert in_virtual_time(scene) == ""


def test_a_stretch_on_a_run_that_another_node_holds_says_so_and_takes_nothing() -> None:
    stage = Stage(puppet("x.slow", taking(60)))
    host = Lossy()

    async def scene() -> tuple[Rest, str, Run]:
        await stage.open("w-one", host=host)
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}))
        await asyncio.sleep(5)
        await stage.open("w-two", host=host)
        await asyncio.sleep(1)
        rest = await host._conduct[-1](run.id)
        held = await owner_of(stage, run.id)
        await asyncio.sleep(100)
        return rest, held, await stage.worker.dispatch.current(run.id)

    rest, held, run = in_virtual_time(scene)
    assert (rest.why, held, run.status) == (Reason.HELD, "w-one", RunStatus.COMPLETED)


def test_a_process_sees_that_a_run_on_another_node_waits_for_a_person() -> None:
    stage, host = Stage(), Lossy(lambda wake: wake.again > 0)

    async def scene() -> Run:
        await stage.open("w-one", host=host)
        await asyncio.sleep(1)
        run = await stage.start(plan({"id": "a", "approve": "Go on?"}))
        await asyncio.sleep(5)
        await stage.open("w-two", host=host)
        return await asyncio.wait_for(stage.worker.settled(run.id), 60)

    assert in_virtual_time(scene).step("a").digest


class Hooked(MemoryStore):
    """A store in memory that does something else first when leases are released."""

    hook: Callable[[], Awaitable[object]] | None = None

    async def release(self, leases: Sequence[Lease], **how: Any) -> None:
        hook, self.hook = self.hook, None
        if hook is not None:
            await hook()
        await super().release(leases, **how)


def test_an_answer_between_the_last_look_and_the_release_is_not_left_to_the_sweep() -> None:
    store = Hooked()
    stage, host = Stage(store=store), Lossy(lambda wake: wake.n > 1 or wake.again > 0, times=1)

    async def scene() -> Run:
        await stage.open("w-one", host=host)
        await asyncio.sleep(1)
        elsewhere = Stage(store=store)
        await elsewhere.open("w-two", picks_up=False)
        elsewhere.worker._notice = lambda *_: None  # type: ignore[method-assign] # it only answers
        elsewhere.worker.dispatch.watchers.clear()
        run = await stage.start(plan(*ASKS))
        store.hook = lambda: elsewhere.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        await asyncio.sleep(30)
        return await stage.worker.dispatch.current(run.id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED


def test_a_change_of_a_run_that_another_node_holds_asks_for_no_other_node() -> None:
    stage, host = Stage(puppet("x.slow", taking(60))), Lossy()

    async def scene() -> tuple[int, int]:
        await stage.open("w-one", host=host)
        await asyncio.sleep(1)
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}))
        await asyncio.sleep(1)
        await stage.open("w-two", host=host)
        before = len(host.wakes)
        await stage.worker.dispatch.current(run.id)
        await stage.control.act(run.id, Action.PAUSE, actor=ADA, reason="wait")
        await stage.control.act(run.id, Action.RESUME, actor=ADA, reason="go on")
        await asyncio.sleep(20)
        return before, len(host.wakes)

    before, after = in_virtual_time(scene)
    assert after == before


def test_the_sweep_asks_at_growing_distances_and_anew_when_something_has_happened() -> None:
    sweep, free = Sweep(first_s=1.0), [LeaseHolder("run_a", 3)]
    asked = [now for now in range(100) if sweep.overdue(free, now_s=float(now))]
    assert asked == [1, 5, 21, 85]
    assert sweep.overdue([LeaseHolder("run_a", 4)], now_s=100.0) == []
    assert sweep.overdue([LeaseHolder("run_a", 4)], now_s=101.0) == [(LeaseHolder("run_a", 4), 1)]


def test_one_sweep_asks_for_a_limited_number_of_runs_and_the_next_for_the_others() -> None:
    sweep, free = Sweep(first_s=1.0), [LeaseHolder(f"run_{number:04}", 1) for number in range(WAKES_MAX + 10)]
    sweep.overdue(free, now_s=0.0)
    first, second = (sweep.overdue(free, now_s=now) for now in (1.0, 1.5))
    assert (len(first), len(second)) == (WAKES_MAX, 10)
