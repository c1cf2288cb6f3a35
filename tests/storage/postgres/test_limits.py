"""Limits of calls over all nodes: as many as one machine would make, and what a lost node held is free again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from handrail.domain.errors import Unavailable
from handrail.engine.fleet import limits as fleet_limits
from handrail.engine.fleet.limits import FleetLimit, FleetLimits
from handrail.engine.tool import CallLimits
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


class AnswersLost(PostgresLimits):
    """Limits of a store that does what it is asked for, and whose answer is sometimes lost."""

    is_lost = False

    async def enter(self, owner: str, limits: Sequence[FleetLimit]) -> int:
        answer = await super().enter(owner, limits)
        self._require_answer()
        return answer

    async def leave(self, owner: str, limits: Sequence[FleetLimit]) -> None:
        if not self.is_lost:
            await super().leave(owner, limits)
        self._require_answer()

    def _require_answer(self) -> None:
        is_lost, self.is_lost = self.is_lost, False
        if is_lost:
            raise Unavailable("the connection is gone")


async def entered(limits: FleetLimits, asked: Sequence[CallLimits]) -> bool:
    """Whether a call may start before long."""
    for _ in range(100):
        if not await limits.enter(asked):
            return True
        await asyncio.sleep(0.05)
    return False


async def test_a_call_of_which_no_answer_came_does_not_keep_a_tool_from_all_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_limits, "AGAIN_S", 0.05)
    async with await PostgresStore.open(await fresh_database(tmp_path)) as store:
        for owner in ("w-a", "w-b"):
            await store.beat(owner)
        table = AnswersLost(store._connections)
        own, other = FleetLimits(table, "w-a", "prj_a"), FleetLimits(store.limits(), "w-b", "prj_a")
        one, two = ([CallLimits(name=name, concurrency=most)] for name, most in (("one", 1), ("two", 2)))
        table.is_lost = True
        with pytest.raises(Unavailable):
            await own.enter(one)  # it was counted, and nobody makes it
        assert await entered(other, one)
        other.leave(one)
        assert await entered(own, one)
        table.is_lost = True
        own.leave(one)  # not counted as ended
        assert await entered(other, one)
        # While a call of this node is under way, nothing under its limit is counted from nothing.
        assert await entered(own, two)
        table.is_lost = True
        with pytest.raises(Unavailable):
            await own.enter(two)
        await asyncio.sleep(0.3)
        assert await other.enter(two) > 0
        own.leave(two)
        assert await entered(other, two)
        assert await entered(other, two)
        assert await other.enter(two) > 0
        own.close()
