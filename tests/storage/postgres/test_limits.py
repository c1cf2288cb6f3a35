"""Limits of calls over all nodes: as many as one machine would make, and what a lost node held is free again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from handrail.engine.fleet.limits import FleetLimit
from handrail.storage.postgres.call_limits import PostgresLimits
from handrail.storage.postgres.store import PostgresStore
from storage.postgres import server
from storage.postgres.databases import fresh_database

pytestmark = pytest.mark.skipif(bool(server.MISSING), reason=server.MISSING or "-")

SECONDS = 3.0
RATE = 40


async def calls_until(limits: PostgresLimits, limit: FleetLimit, owner: str, end: float) -> list[float]:
    """When calls could start, of a node that always wants one."""
    made = []
    while (now := time.monotonic()) < end:
        wait_ms = await limits.enter(owner, [limit])
        if not wait_ms:
            made.append(now)
        await asyncio.sleep(wait_ms / 1_000)
    return made


async def test_three_nodes_together_start_as_many_calls_as_the_rate_says(tmp_path: Path) -> None:
    url = await fresh_database(tmp_path)
    stores = [await PostgresStore.open(url) for _ in range(3)]
    limit = FleetLimit("prj_a/docs", calls=RATE, per_ms=1_000)
    started = time.monotonic()
    end = started + SECONDS
    try:
        made = await asyncio.gather(
            *(calls_until(store.limits(), limit, f"w-{number}", end) for number, store in enumerate(stores))
        )
        (tokens,) = await stores[0].ask("select tokens from handrail.rate where name = 'prj_a/docs'")
    finally:
        for store in stores:
            await store.close()
    calls = sum(map(len, made))
    # A bucket starts full. What was allowed by the last call, by the clock of the database: no call too many, and what
    # was not used is in the bucket. So a slow machine, which asks less often, does not count as a rate too low.
    allowed = RATE + RATE * (max(one for node in made for one in node) - started)
    assert calls <= 1.05 * allowed
    assert calls + tokens[0] >= 0.95 * allowed
    assert calls >= RATE
    assert all(made), "one of the nodes got nothing"


async def test_calls_at_once_are_counted_over_nodes_and_those_of_a_retired_one_are_free(tmp_path: Path) -> None:
    async with await PostgresStore.open(await fresh_database(tmp_path)) as store:
        limits, two = store.limits(), [FleetLimit("prj_a/docs", most=2)]
        for owner in ("w-a", "w-b"):
            await store.beat(owner)
        assert await limits.enter("w-a", two) == 0
        assert await limits.enter("w-b", two) == 0
        assert await limits.enter("w-b", two) > 0
        both = [FleetLimit("prj_a/docs.search", calls=1, per_ms=3_600_000), *two]
        assert await limits.enter("w-b", both) > 0  # and no token was taken for a call that did not start
        await limits.leave("w-b", two)
        assert await limits.enter("w-b", both) == 0
        assert await limits.enter("w-b", two) > 0
        await store.retire("w-a")
        assert await limits.enter("w-b", two) == 0
