"""The official Python client lives through the whole story, in every era and over both transports."""

from __future__ import annotations

from pathlib import Path

import pytest

from outside.agents import TRANSPORTS, WAYS, where
from outside.clients.python_agent import python_agent
from outside.story import live, stage


@pytest.mark.parametrize(("era", "agrees"), WAYS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_python_client_works_with_handrail(transport: str, era: str, agrees: bool, tmp_path: Path) -> None:
    place = stage(tmp_path)
    async with where(transport, place) as found, python_agent(found, era=era, agrees=agrees) as agent:
        await live(agent, place, era=era, agrees=agrees)
