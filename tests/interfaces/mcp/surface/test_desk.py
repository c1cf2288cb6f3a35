"""The desk: opened once for everybody, and closed whenever it has to be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handrail.domain.command import RecordDecision
from handrail.domain.errors import Unavailable
from handrail.interfaces.mcp.surface.desk import Desk
from interfaces.mcp.surface.agent import PATIENCE_S, Place

TICKS = 12
REST_S = 0.1
"""In which a worker comes to rest: a test that is quicker than that proves less, and is still right."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_many_who_ask_at_once_open_it_once(place: Place) -> None:
    desk = Desk(place.settings())
    opened = await asyncio.gather(*(desk.open() for _ in range(20)))
    assert len({id(one) for one in opened}) == 1
    await desk.close()


async def test_what_is_closed_says_so(place: Place) -> None:
    desk = Desk(place.settings())
    await desk.open()
    await desk.close()
    with pytest.raises(Unavailable, match="shutting down"):
        await desk.open()
    await desk.close()


@pytest.mark.parametrize("ticks", range(TICKS))
async def test_it_closes_however_soon_after_a_write(place: Place, ticks: int) -> None:
    """Whatever the worker is about to do about the write, it must notice that it is to end."""
    desk = Desk(place.settings())
    at_work = await desk.open()
    definition = at_work.library.load_plan({"name": "P", "steps": [{"id": "a", "prompt": "A."}]}).definition
    assert definition is not None
    run = await at_work.worker.start(definition, {}, actor="agent:a")
    await asyncio.sleep(REST_S)
    await at_work.handrail.dispatch.grant(run.id, RecordDecision(decision="d", reason="r"), actor="agent:a")
    for _ in range(ticks):
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        await desk.close()
