"""The page in a client's window: offered to clients that show pages, one file, and without a way out."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from pathlib import Path
from typing import Any

import mcp_types as mt
import pytest
from mcp.client.extension import ClientExtension, advertise

from handrail.interfaces.mcp.stdio.envelope import Request
from handrail.interfaces.mcp.stdio.recording import record
from handrail.interfaces.mcp.stdio.snapshot_answers import SnapshotAnswers
from interfaces.mcp.surface.agent import ERAS, Agent, Place

UI = "io.modelcontextprotocol/ui"
APP_TYPE = "text/html;profile=mcp-app"
APPS = (advertise(UI, {"mimeTypes": [APP_TYPE]}),)
RUN_PAGE, APPROVAL_PAGE = "ui://handrail/run", "ui://handrail/approval"
LINKED = {"workflow_next": RUN_PAGE, "execute_plan": RUN_PAGE, "status": RUN_PAGE, "control": APPROVAL_PAGE}
TOKENS_OF_ALL = 3_000
ZIPPED_MAX = 60_000
NAMES = {"http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML", "http://www.w3.org/1999/xhtml"}
"""Names of kinds of elements, which nothing is loaded from."""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def pages(agent: Agent) -> list[str]:
    listed = (await agent.client.list_resources()).resources
    return [str(one.uri) for one in listed if str(one.uri).startswith("ui://")]


async def links(agent: Agent) -> dict[str, Any]:
    listed = (await agent.client.list_tools()).tools
    return {tool.name: tool.meta["ui"]["resourceUri"] for tool in listed if tool.meta and "ui" in tool.meta}


async def given(agent: Agent) -> set[str]:
    (control,) = [one for one in (await agent.client.list_tools()).tools if one.name == "control"]
    return set(control.input_schema["properties"])


async def page(agent: Agent, uri: str = RUN_PAGE) -> mt.TextResourceContents:
    (one,) = (await agent.client.read_resource(uri)).contents
    assert isinstance(one, mt.TextResourceContents)
    return one


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_shows_pages_is_offered_them(place: Place, mode: str) -> None:
    async with place.agent(mode=mode, extensions=APPS) as agent:
        assert await pages(agent) == [RUN_PAGE, APPROVAL_PAGE]
        assert await links(agent) == LINKED
        assert "card" in await given(agent)
        listed = [one.model_dump(by_alias=True, exclude_none=True) for one in (await agent.client.list_tools()).tools]
        seen_by_models = [{key: value for key, value in one.items() if key != "_meta"} for one in listed]
        assert len(json.dumps(seen_by_models, separators=(",", ":"))) / 4 <= TOKENS_OF_ALL


async def test_the_server_says_that_it_has_pages_in_the_version_that_knows_extensions(place: Place) -> None:
    async with place.agent() as agent:
        assert agent.client.server_capabilities is not None
        assert UI in (agent.client.server_capabilities.extensions or {})


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("extensions", [(), (advertise(UI, {}),), (advertise(UI, {"mimeTypes": ["text/html"]}),)])
async def test_a_client_that_does_not_say_so_sees_nothing_of_it(
    place: Place, mode: str, extensions: tuple[ClientExtension, ...]
) -> None:
    async with place.agent(mode=mode, extensions=extensions) as agent:
        assert await pages(agent) == []
        assert await links(agent) == {}
        assert "card" not in await given(agent)


@pytest.mark.parametrize("mode", ERAS)
async def test_the_page_is_one_file_that_may_load_and_reach_nothing(place: Place, mode: str) -> None:
    async with place.agent(mode=mode, extensions=APPS) as agent:
        run, approval = await page(agent), await page(agent, APPROVAL_PAGE)
    assert run.mime_type == approval.mime_type == APP_TYPE
    assert run.meta is not None
    assert all(domains == [] for domains in run.meta["ui"]["csp"].values())
    assert set(run.meta["ui"]["csp"]) == {"connectDomains", "resourceDomains", "frameDomains", "baseUriDomains"}
    assert run.text.replace('data-view="run"', 'data-view="approval"') == approval.text
    assert approval.text.count('<html lang="en" data-view="approval">') == 1
    assert set(re.findall(r"https?://[\w.-]+\.[a-z]{2,}[\w./-]*", run.text)) <= NAMES
    assert re.findall(r"<(?:link|img|iframe|script)\b[^>]*(?:src|href)=|@import|url\((?!#)", run.text) == []
    assert re.findall(r"\bfetch\(|XMLHttpRequest|EventSource|WebSocket|\beval\(|new Function|import\(", run.text) == []
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', run.text)
    assert policy.startswith("default-src 'none'; ")
    assert "connect-src" not in policy, "so the default holds: nothing"
    assert len(gzip.compress(run.text.encode(), 9)) <= ZIPPED_MAX


async def test_a_page_that_does_not_exist_is_an_unknown_resource(place: Place) -> None:
    async with place.agent(extensions=APPS) as agent:
        with pytest.raises(Exception, match="there is no resource"):
            await agent.client.read_resource("ui://handrail/other")


async def test_a_cold_start_answers_such_a_client_from_the_snapshot_as_the_server_does(place: Place) -> None:
    async with place.serving() as server:
        recorded = await record(server, lambda: asyncio.sleep(0))
    for version in ("2025-11-25", "2026-07-28"):
        assert recorded[f"{version}+apps", "tools/list"] != recorded[version, "tools/list"]
        assert (f"{version}+apps", "prompts/list") not in recorded, "what is the same is not kept twice"
    for capabilities, count in (({"extensions": {UI: {"mimeTypes": [APP_TYPE]}}}, 4), ({}, 0), ({"extensions": {}}, 0)):
        front = SnapshotAnswers(recorded)
        info = {"name": "c", "version": "1"}
        hello: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}
        assert front.answer(Request(1, "initialize", hello, "")) is not None
        answer = front.answer(Request(2, "tools/list", {}, ""))
        assert answer is not None
        tools = json.loads(answer.result)["tools"]
        assert sum("ui" in tool.get("_meta", {}) for tool in tools) == count
    strange = {"protocolVersion": "2025-11-25", "capabilities": {"extensions": {UI: 5}}, "clientInfo": info}
    assert SnapshotAnswers(recorded).answer(Request(1, "initialize", strange, "")) is None, "left to the SDK"
