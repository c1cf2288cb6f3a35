"""The official TypeScript client lives through the whole story, in every era and over both transports."""

from __future__ import annotations

from pathlib import Path

import pytest

from outside.agents import TRANSPORTS, WAYS, where
from outside.clients.typescript_agent import typescript_agent
from outside.nodejs import installed
from outside.story import live, stage


@pytest.mark.parametrize(("era", "agrees"), WAYS)
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_the_typescript_client_works_with_handrail(
    transport: str, era: str, agrees: bool, tmp_path: Path
) -> None:
    node = installed("the TypeScript client")
    place = stage(tmp_path)
    async with where(transport, place) as found, typescript_agent(node, found, era=era, agrees=agrees) as agent:
        await live(agent, place, era=era, agrees=agrees)
