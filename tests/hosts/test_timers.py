"""A run that rests until a timer: its host brings it back in time, whatever the clocks of the two say."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from handrail.engine.running.host import WAIT_MS_MIN, Reason, Rest, Wake, wait_ms
from handrail.hosts.absurd import AbsurdHost
from handrail.storage.postgres.store import PostgresStore
from hosts.fleet import install_absurd
from hosts.servers import missing
from storage.postgres.databases import new_database

HOUR_S = 3_600
RESTS_MS = 1_500


def test_a_host_waits_for_a_timer_and_at_least_a_second() -> None:
    assert wait_ms(10_000, 4_000) == 6_000
    assert wait_ms(10_000, 9_900) == wait_ms(10_000, 10_000 + HOUR_S * 1_000) == WAIT_MS_MIN


@pytest.mark.skipif(bool(missing("absurd")), reason=missing("absurd"))
@pytest.mark.parametrize("ahead_s", [HOUR_S, -HOUR_S])
async def test_absurd_waits_as_long_as_the_node_says_whatever_the_clock_of_the_database_is(
    ahead_s: int, tmp_path: Path
) -> None:
    url = await new_database(tmp_path, f"timers_{ahead_s + HOUR_S}")
    await install_absurd(url)

    def clock() -> int:
        return int((time.time() + ahead_s) * 1_000)

    begun: list[float] = []
    has_ended = asyncio.Event()

    async def conduct(run: str) -> Rest:
        begun.append(time.monotonic())
        if len(begun) == 1:
            return Rest(run=run, why=Reason.TIMER, until=clock() + RESTS_MS)
        has_ended.set()
        return Rest(run=run, why=Reason.ENDED)

    async with await PostgresStore.open(url) as store:
        host = AbsurdHost(store, clock, project="p", node="n", heartbeat_s=3)
        serving = asyncio.create_task(host.serve(conduct, lambda: None))
        await host.wake(Wake(run="run_a", n=1))
        async with asyncio.timeout(60):
            await has_ended.wait()
        await host.close()
        await serving
    assert begun[1] - begun[0] >= (RESTS_MS - 100) / 1_000  # two clocks of this machine, which may differ a little
