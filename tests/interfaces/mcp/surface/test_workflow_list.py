"""`workflow_list`: workflows, saved plans, and the tools that plans can call."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from interfaces.mcp.surface.agent import Place, read, write
from support import trust_project


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_the_tools_are_listed_with_arguments_output_effect_and_undo(place: Place) -> None:
    async with place.agent() as agent:
        found = await agent.call("workflow_list", of="tools", limit=100)
        tools = {one["id"]: one for one in found["tools"]}
        assert found["total"] == len(tools)
        assert {"file.write", "http.request", "shell.run", "value.set"} <= tools.keys()
        assert tools["file.write"] == {
            "id": "file.write",
            "description": "Write text to a file, new or not.",
            "args": {"path": "string", "text": "string"},
            "output": {"path": "string", "bytes": "integer"},
            "effect": "reversible",
            "undo": "own",
        }
        assert tools["http.request"]["args"]["method"] == "string, optional, default GET"
        assert tools["http.request"]["args"]["expect"] == "array of integer, optional"
        said = await agent.said("workflow_list", of="tools", query="write a file")
        assert "file.write(path: string, text: string)" in said.splitlines()[1]
        assert "effect reversible, undo own" in said


async def test_tools_come_page_by_page_and_by_words(place: Place) -> None:
    async with place.agent("guide") as agent:
        names, cursor = [], ""
        while True:
            page = await agent.call("workflow_list", of="tools", limit=3, cursor=cursor)
            names += [one["id"] for one in page["tools"]]
            if not (cursor := page.get("cursor", "")):
                break
        assert len(names) == len(set(names)) == page["total"]
        assert (await agent.call("workflow_list", of="tools", query="http"))["tools"][0]["id"] == "http.request"
        assert (await agent.call("workflow_list", of="tools", query="zebra"))["total"] == 0


async def test_a_listed_tool_can_be_called_as_it_is_described(place: Place) -> None:
    async with place.agent() as agent:
        tool = (await agent.call("workflow_list", of="tools", query="append"))["tools"][0]
        step = {"id": "a", "tool": tool["id"], "args": dict.fromkeys(tool["args"], "x")}
        then = {
            "id": "b",
            "tool": "value.set",
            "args": {"value": f"{{{{ steps.a.output.{next(iter(tool['output']))} }}}}"},
        }
        await agent.call("save_plan", plan={"name": "One", "steps": [step, then]})


async def test_a_look_at_the_tools_starts_no_server_and_names_those_that_were_never_asked(place: Place) -> None:
    mark = place.folder / "started"
    program = [sys.executable, "-c", f"open({str(mark)!r}, 'w')"]
    servers = {"far": {"command": program[0], "args": program[1:]}}
    (place.project / ".handrail").mkdir()
    (place.project / ".handrail" / "tools.json").write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    async with place.agent() as agent:
        found = await agent.call("workflow_list", of="tools")
        assert found["untrusted"] == ["far"]
        assert "handrail trust" in await agent.said("workflow_list", of="tools")
    trust_project(place.home, place.project)
    async with place.agent() as agent:
        found = await agent.call("workflow_list", of="tools")
        assert found["unasked"] == ["far"]
        assert "handrail tools check far" in await agent.said("workflow_list", of="tools")
    assert not mark.exists()


async def test_saved_plans_are_listed_with_their_inputs_until_they_are_retired(place: Place) -> None:
    inputs = {"where": {"type": "string"}, "times": {"type": "integer", "default": 2}}
    async with place.agent() as agent:
        assert await agent.call("workflow_list", of="plans") == {"plans": [], "total": 0}
        await agent.call("save_plan", plan={"name": "Tag it", "steps": [write()], "inputs": inputs})
        await agent.call("save_plan", plan={"name": "Read it", "steps": [read(), write()]})
        found = await agent.call("workflow_list", of="plans")
        assert found["total"] == 2
        (tag,) = [one for one in found["plans"] if one["id"] == "tag-it"]
        assert tag.pop("saved").endswith("Z")
        assert tag == {
            "id": "tag-it",
            "name": "Tag it",
            "version": 1,
            "steps": 1,
            "inputs": {"where": "string", "times": "integer, optional, default 2"},
        }
        only = await agent.call("workflow_list", of="plans", query="reading")
        assert [one["id"] for one in only["plans"]] == ["read-it"]
        assert "execute_plan" in await agent.said("workflow_list", of="plans")
    assert place.beside("plan", "retire", "tag-it", "--reason", "old").end()[0] == 0
    async with place.agent() as agent:
        assert [one["id"] for one in (await agent.call("workflow_list", of="plans"))["plans"]] == ["read-it"]


async def test_only_workflows_have_a_category_and_tags(place: Place) -> None:
    async with place.agent() as agent:
        for of in ("plans", "tools"):
            await agent.refused("workflow_list", "invalid", of=of, category="code")
            await agent.refused("workflow_list", "invalid", of=of, tags=["x"])
        await agent.refused("workflow_list", "invalid", of="rules")
