"""The lazy program: opened once for all callers, and closed at any moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from handrail.domain.errors import Unavailable
from handrail.domain.run.command import RecordDecision
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from interfaces.mcp.surface.agent import PATIENCE_S, Place

TICKS = 12
REST_S = 0.1
"""Gives the worker time to become idle; with less time the test proves less, but is still correct."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_many_concurrent_callers_open_it_once(place: Place) -> None:
    lazy = LazyProgram(place.settings())
    opened = await asyncio.gather(*(lazy.open() for _ in range(20)))
    assert len({id(one) for one in opened}) == 1
    await lazy.close()


async def test_a_closed_program_says_so(place: Place) -> None:
    lazy = LazyProgram(place.settings())
    await lazy.open()
    await lazy.close()
    with pytest.raises(Unavailable, match="shutting down"):
        await lazy.open()
    await lazy.close()


@pytest.mark.parametrize("ticks", range(TICKS))
async def test_it_closes_however_soon_after_a_write(place: Place, ticks: int) -> None:
    """Whatever the worker does after the write, it must notice that it has to stop."""
    lazy = LazyProgram(place.settings())
    program = await lazy.open()
    definition = program.library.load_plan({"name": "P", "steps": [{"id": "a", "prompt": "A."}]}).definition
    assert definition is not None
    run = await program.worker.start(definition, {}, actor="agent:a")
    await asyncio.sleep(REST_S)
    await program.writer.dispatch.grant(run.id, RecordDecision(decision="d", reason="r"), actor="agent:a")
    for _ in range(ticks):
        await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        await lazy.close()
