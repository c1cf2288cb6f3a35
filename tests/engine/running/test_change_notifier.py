"""The bell: whoever waits for a run is woken by its next change, and looks from time to time all the same."""

from __future__ import annotations

import asyncio

from domain.facts import CHAIN
from handrail.domain.run.command import RecordDecision
from handrail.engine.dispatch import Dispatch
from handrail.engine.running.change_notifier import LOOK_S, ChangeNotifier
from handrail.storage.memory import MemoryStore
from support import record_writer
from virtual_time import in_virtual_time

NOTE = RecordDecision(decision="go", reason="why not")


async def waited(bell: ChangeNotifier, run: str, within_s: float = 100) -> float:
    """How long somebody waited, in seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    with bell.listening(run) as ear:
        await ear.next_change(within_s=within_s)
    return loop.time() - began


def test_a_change_wakes_everybody_who_waits_for_that_run_and_nobody_else() -> None:
    async def scene() -> tuple[list[float], int]:
        dispatch = Dispatch(MemoryStore(), record_writer())
        bell = ChangeNotifier(dispatch)
        run, other = [(await dispatch.start(CHAIN, {}, actor="a")).id for _ in range(2)]
        waiting = [asyncio.ensure_future(waited(bell, name)) for name in (run, run, other)]
        await asyncio.sleep(LOOK_S / 2)
        await dispatch.grant(run, NOTE, actor="a")
        await dispatch.grant(run, NOTE, actor="a")
        return list(await asyncio.gather(*waiting)), len(bell._ears)

    times, left = in_virtual_time(scene)
    assert times[0] == times[1] < LOOK_S
    assert times[2] >= LOOK_S
    assert left == 0


def test_a_change_between_the_look_and_the_wait_is_heard_once() -> None:
    async def scene() -> list[float]:
        dispatch = Dispatch(MemoryStore(), record_writer())
        bell, loop = ChangeNotifier(dispatch), asyncio.get_running_loop()
        run = (await dispatch.start(CHAIN, {}, actor="a")).id
        times = []
        with bell.listening(run) as ear:
            await dispatch.grant(run, NOTE, actor="a")
            for _ in range(2):
                began = loop.time()
                await ear.next_change(within_s=100)
                times.append(loop.time() - began)
        return times

    first, second = in_virtual_time(scene)
    assert first == 0
    assert second >= LOOK_S


def test_nobody_waits_longer_than_a_look_or_than_asked() -> None:
    async def scene() -> list[float]:
        bell = ChangeNotifier(Dispatch(MemoryStore(), record_writer()))
        return [await waited(bell, "run_a", within_s) for within_s in (100, LOOK_S / 4, 0, -1)]

    long, short, *none = in_virtual_time(scene)
    assert LOOK_S <= long < LOOK_S * 1.1
    assert short < LOOK_S / 2
    assert max(none) < LOOK_S / 4


def test_whoever_gives_up_leaves_nothing_behind_and_disturbs_nobody() -> None:
    async def scene() -> tuple[int, float, int]:
        dispatch = Dispatch(MemoryStore(), record_writer())
        bell = ChangeNotifier(dispatch)
        run = (await dispatch.start(CHAIN, {}, actor="a")).id
        gone, stays = (asyncio.ensure_future(waited(bell, run)) for _ in range(2))
        await asyncio.sleep(LOOK_S / 4)
        gone.cancel()
        await asyncio.wait({gone})
        assert gone.cancelled()
        still = len(bell._ears[run])
        await dispatch.grant(run, NOTE, actor="a")
        return still, await stays, len(bell._ears)

    still, time, left = in_virtual_time(scene)
    assert (still, left) == (1, 0)
    assert time < LOOK_S
