"""Crash and company: a restart picks up what was open, and two workers never both execute a run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.stage import ADA, Stage, plan, puppet, taking
from handrail.domain.errors import Unavailable
from handrail.domain.journal.event import AttemptLost, AttemptStarted, StepBecameUncertain
from handrail.domain.run.command import CompleteStep
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.dispatch import Dispatch
from handrail.engine.record_writer import RecordWriter
from handrail.engine.running.lease import Lease, LeaseHolder
from handrail.storage.memory import MemoryStore
from support import seeded_entropy
from virtual_time import in_virtual_time


def test_finished_steps_are_never_repeated_and_an_idempotent_one_goes_on_under_its_key() -> None:
    stage = Stage(puppet("x.slow", taking(10), idempotent=True))

    async def scene() -> tuple[Run, list[Any]]:
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.do"}, {"id": "b", "tool": "x.slow"}))
        await asyncio.sleep(5)
        await stage.die()
        await stage.open("w-two")
        after = await stage.worker.settled(run.id)
        return after, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    assert len(stage.box.tools["x.do"].calls) == 1
    assert [call.key for call in stage.box.tools["x.slow"].calls] == [f"{run.id}:b"] * 2
    assert AttemptLost(step="b", attempt=1) in events
    assert [event.attempt for event in events if isinstance(event, AttemptStarted) and event.step == "b"] == [1, 2]


def test_a_step_that_says_it_is_not_idempotent_is_believed_whatever_its_tool_says() -> None:
    stage = Stage(puppet("x.slow", taking(10), idempotent=True))

    async def scene() -> Run:
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.slow", "idempotent": False}))
        await asyncio.sleep(5)
        await stage.die()
        await stage.open("w-two")
        return await stage.worker.settled(run.id)

    assert in_virtual_time(scene).step("a").status is StepStatus.UNCERTAIN
    assert len(stage.box.tools["x.slow"].calls) == 1


def test_an_effect_whose_outcome_is_not_known_is_never_guessed() -> None:
    stage = Stage(puppet("x.slow", taking(10)))

    async def scene() -> tuple[Run, list[Any], Run]:
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}, {"id": "b", "tool": "x.do"}))
        await asyncio.sleep(5)
        await stage.die()
        await stage.open("w-two")
        waits = await stage.worker.settled(run.id)
        events = await stage.events(run.id)
        await stage.control.act(run.id, Action.ACCEPT, actor=ADA, reason="I saw it", output={"seen": True})
        return waits, events, await stage.worker.settled(run.id)

    waits, events, run = in_virtual_time(scene)
    assert waits.step("a").status is StepStatus.UNCERTAIN
    assert StepBecameUncertain(step="a", attempt=1) in events
    assert run.status is RunStatus.COMPLETED
    assert (run.step("a").output, run.step("a").proof) == ({"seen": True}, "claimed")
    assert len(stage.box.tools["x.slow"].calls) == 1


def test_a_restart_picks_up_all_open_runs_by_itself() -> None:
    stage = Stage(puppet("x.slow", taking(10), idempotent=True))

    async def scene() -> list[Run]:
        await stage.open()
        runs = [await stage.start(plan({"id": "a", "tool": "x.slow"})) for _ in range(50)]
        await asyncio.sleep(1)
        await stage.die()
        await stage.open("w-two")
        await asyncio.sleep(60)
        return [await stage.worker.dispatch.current(run.id) for run in runs]

    assert {run.status for run in in_virtual_time(scene)} == {RunStatus.COMPLETED}


def test_a_silent_worker_is_taken_over_after_its_lease_and_its_answer_comes_late() -> None:
    stage = Stage(puppet("x.slow", taking(40), idempotent=True))

    async def scene() -> tuple[float, Run, list[str]]:
        first = await stage.open("w-one", lease_s=10.0)
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}))
        await asyncio.sleep(1)
        for task in first._tasks:  # it is stopped: it neither beats nor looks, and its call goes on
            task.cancel()
        stopped_s = asyncio.get_running_loop().time()
        await stage.open("w-two", lease_s=10.0)
        while (await stage.store.lease_holder(run.id) or LeaseHolder(run.id, 0)).owner != "w-two":
            await asyncio.sleep(0.1)
        taken_s = asyncio.get_running_loop().time() - stopped_s
        after = await stage.worker.settled(run.id)
        await asyncio.sleep(60)
        return taken_s, after, await stage.kinds(run.id)

    taken_s, run, kinds = in_virtual_time(scene)
    assert 10 <= taken_s <= 12
    assert run.status is RunStatus.COMPLETED
    assert "answer_came_late a" in kinds
    assert kinds.count("step_completed a") == 1


def test_a_worker_that_beats_keeps_its_runs() -> None:
    stage = Stage(puppet("x.slow", taking(100), timeout="1h"))

    async def scene() -> Run:
        await stage.open("w-one", lease_s=10.0)
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}))
        first = stage.worker
        await stage.open("w-two", lease_s=10.0)
        return await first.settled(run.id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED
    assert len(stage.box.tools["x.slow"].calls) == 1


def test_a_worker_that_closes_gives_its_runs_back_at_once() -> None:
    stage = Stage(puppet("x.slow", taking(3), timeout="1h"))

    async def scene() -> tuple[Run, float]:
        first = await stage.open("w-one")
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}, {"id": "b", "tool": "x.do"}))
        await asyncio.sleep(1)
        await first.close()
        began_s = asyncio.get_running_loop().time()
        await stage.open("w-two")
        after = await stage.worker.settled(run.id)
        return after, asyncio.get_running_loop().time() - began_s

    run, took_s = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    assert len(stage.box.tools["x.slow"].calls) == 1
    assert took_s < 2


def test_a_control_from_another_process_reaches_the_worker_that_executes_the_run() -> None:
    stage = Stage(puppet("x.slow", taking(100), timeout="1h"))

    async def scene() -> Run:
        first = await stage.open("w-one")
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}))
        await asyncio.sleep(1)
        await stage.open("w-two", picks_up=False)
        await stage.control.act(run.id, Action.CANCEL, actor=ADA, reason="enough")
        await asyncio.sleep(2)
        assert not first.conductors
        return await first.dispatch.current(run.id)

    assert in_virtual_time(scene).status is RunStatus.CANCELLED


def test_a_run_that_waits_for_a_person_is_held_by_nobody_and_goes_on_anywhere() -> None:
    stage = Stage()
    definition = plan({"id": "go", "approve": "Sure?"}, {"id": "b", "tool": "x.do"})

    async def scene() -> tuple[Any, Run]:
        await stage.open("w-one")
        run = await stage.start(definition)
        await asyncio.sleep(3)
        lease_holder = await stage.store.lease_holder(run.id)
        await stage.open("w-two", picks_up=False)
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        return lease_holder, await stage.worker.settled(run.id)

    lease_holder, run = in_virtual_time(scene)
    assert lease_holder.owner == ""
    assert run.status is RunStatus.COMPLETED
    assert len(stage.box.tools["x.do"].calls) == 1


def test_a_broken_run_rests_and_never_stops_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()

    async def breaking() -> bool:
        raise RuntimeError("a mistake in the engine")

    async def scene() -> Run:
        await stage.open()
        broken = await stage.start(plan({"id": "a", "tool": "x.do"}))
        monkeypatch.setattr(stage.worker.conductors[broken.id], "_turn", breaking)
        return await stage.worker.settled((await stage.start(plan({"id": "a", "tool": "x.do"}))).id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED


class Full(MemoryStore):
    """A store that has no room for a while."""

    is_full = False

    async def append(self, records: Any, change: Any, *, lease: Lease | None = None) -> None:
        if self.is_full:
            raise Unavailable("the disk is full")
        await super().append(records, change, lease=lease)


def test_a_store_without_room_stops_the_run_and_lets_it_go_on_when_there_is_some() -> None:
    store = Full()
    stage = Stage(puppet("x.slow", taking(5)), store=store)

    async def scene() -> tuple[Run, int]:
        await stage.open()
        run = await stage.start(
            plan({"id": "a", "tool": "x.slow"}, {"id": "b", "tool": "x.do"}, {"id": "c", "tool": "x.do"})
        )
        await asyncio.sleep(1)
        store.is_full = True
        await asyncio.sleep(100)
        calls = len(stage.box.tools["x.do"].calls)
        store.is_full = False
        return await stage.worker.settled(run.id), calls

    run, calls = in_virtual_time(scene)
    assert calls == 0
    assert run.status is RunStatus.COMPLETED
    assert len(stage.box.tools["x.slow"].calls) == 1


def test_what_agents_submit_by_other_processes_is_no_reason_to_take_their_run() -> None:
    stage = Stage()
    guided = plan(*({"id": name, "prompt": "Do it."} for name in "abcd"))

    async def scene() -> tuple[int, int]:
        await stage.open()
        run = await stage.start(guided)
        await asyncio.sleep(60)
        before = await stage.store.lease_holder(run.id)
        other = Dispatch(stage.store, RecordWriter(stage.clock, seeded_entropy(99)))
        for step in "abc":
            await other.grant(run.id, CompleteStep(step=step, output=1), actor="agent:claude")
            await asyncio.sleep(60)
        after = await stage.store.lease_holder(run.id)
        assert before is not None
        assert after is not None
        await other.grant(run.id, CompleteStep(step="d", output=1), actor="agent:claude")
        await asyncio.sleep(60)
        assert (await stage.worker.dispatch.current(run.id)).status is RunStatus.COMPLETED
        return before.epoch, after.epoch

    before, after = in_virtual_time(scene)
    assert after == before
