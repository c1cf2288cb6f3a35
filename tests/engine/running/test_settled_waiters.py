"""Callers that wait for a run to settle: all are woken, and none is remembered after it has left."""

from __future__ import annotations

import asyncio

from handrail.domain.run.state import Run
from handrail.engine.running.settled_waiters import SettledWaiters

RUN = Run(id="run_aaaaaaaa")


async def test_all_who_wait_for_a_run_get_it() -> None:
    waiters = SettledWaiters()
    waiting = [asyncio.ensure_future(waiters.next(RUN.id, within_s=60)) for _ in range(2)]
    await asyncio.sleep(0)
    waiters.notify(Run(id="run_bbbbbbbb"))
    waiters.notify(RUN)
    assert await asyncio.gather(*waiting) == [RUN, RUN]
    assert waiters._waiting == {}


async def test_who_has_waited_long_enough_is_forgotten() -> None:
    waiters = SettledWaiters()
    stays = asyncio.ensure_future(waiters.next(RUN.id, within_s=60))
    await asyncio.sleep(0)
    assert await waiters.next(RUN.id, within_s=0) is None
    assert len(waiters._waiting[RUN.id]) == 1
    stays.cancel()
    await asyncio.wait({stays})
    assert waiters._waiting == {}
