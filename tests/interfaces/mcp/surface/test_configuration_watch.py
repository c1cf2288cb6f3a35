"""A configuration file that changes while a server runs: an agent is told once that a restart is needed."""

from __future__ import annotations

from pathlib import Path

import pytest

from interfaces.mcp.surface.agent import Place
from support import trust_project


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("name", ["config.toml", "tools.json"])
async def test_an_agent_is_told_once_for_each_change_of_a_file(place: Place, name: str) -> None:
    for folder in (place.home, place.project / ".handrail"):
        async with place.agent() as agent:
            assert "restart" not in await agent.call("status")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text('{"mcpServers": {}}' if name == "tools.json" else "checks = 'plain'\n")
            note = (await agent.call("status"))["restart"]
            assert str(folder / name) in note
            assert "restart" not in await agent.said("workflow_list")
            refused = await agent.refused("status", "not_found", run="run_nothere")
            assert "restart" not in refused["hint"], "the file has nothing to do with it"
            (folder / name).write_text("{}" if name == "tools.json" else "")
            assert note in await agent.said("workflow_list"), "it changed again"
        (folder / name).unlink()
        async with place.agent() as agent:
            assert "restart" not in await agent.call("status")


async def test_a_decision_about_trust_that_the_agent_waits_for_needs_a_restart_too(place: Place) -> None:
    (place.project / ".handrail").mkdir()
    (place.project / ".handrail" / "tools.json").write_text('{"mcpServers": {"far": {"command": "far"}}}')
    async with place.agent() as agent:
        assert "restart" not in await agent.call("status")
        trust_project(place.home, place.project)
        assert "trust.json" in (await agent.call("status"))["restart"]
    async with place.agent() as agent:
        assert "restart" not in await agent.call("status")


async def test_a_refusal_by_a_setting_says_that_the_setting_may_have_changed(place: Place) -> None:
    place.workflow({"id": "w", "steps": [{"id": "ask", "approve": "Sure?"}]})
    async with place.agent() as agent:
        run = (await agent.call("execute_plan", workflow="w", wait="5s"))["run"]
        place.home_config("agents_may_approve = true\n")
        await agent.call("status")
        for _ in range(2):
            refused = await agent.refused("control", "forbidden", run=run, action="approve", reason="me")
            assert "config.toml has changed" in refused["hint"]
