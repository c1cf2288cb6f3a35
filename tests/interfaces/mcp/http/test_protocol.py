"""MCP over HTTP: both eras of the protocol by the official client and by hand, malformed requests, and the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import TextContent

from handrail.interfaces.web.limits import HttpLimits
from interfaces.mcp.http.live_server import INITIALIZE, PATIENCE_S, TOKEN, LiveServer, opened, until
from interfaces.mcp.stdio.test_envelope import REFUSED

MODERN = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
WAIT = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}, "_meta": META}}
MODERN_WAIT = {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "wait"}
JSON = {"content-type": "application/json"}


@asynccontextmanager
async def connected(live: LiveServer, mode: str) -> AsyncIterator[Client]:
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
        transport = streamable_http_client(f"{live.url}/mcp", http_client=http)
        async with Client(transport, mode=mode, read_timeout_seconds=PATIENCE_S) as client:
            yield client


@pytest.mark.parametrize("mode", ["legacy", "auto", MODERN])
async def test_the_official_client_lists_and_calls(mode: str) -> None:
    async with opened() as live, connected(live, mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["echo", "wait", "break"]
        result = await client.call_tool("echo", {"text": "hello"})
        assert isinstance(result.content[0], TextContent)
        assert result.content[0].text == "hello"


async def test_a_hundred_calls_at_once_are_all_answered() -> None:
    async with opened() as live, connected(live, "auto") as client:
        results = await asyncio.gather(*(client.call_tool("echo", {"text": str(n)}) for n in range(100)))
        texts = [one.content[0].text for one in results if isinstance(one.content[0], TextContent)]
        assert texts == [str(n) for n in range(100)]


async def test_a_call_whose_client_has_gone_is_cancelled() -> None:
    async with opened() as live:
        async with live.client(**MODERN_WAIT) as client:
            asking = asyncio.ensure_future(client.post("/mcp", json=WAIT))
            await asyncio.wait_for(live.calls.started.wait(), PATIENCE_S)
            asking.cancel()
            await asyncio.wait({asking})
        await asyncio.wait_for(live.calls.cancelled.wait(), PATIENCE_S)
        await until(lambda: live.app.open_requests.count == 0)


async def test_malformed_requests_are_answered_in_both_eras_and_the_next_good_one_too() -> None:
    async with opened() as live, live.client(**JSON) as client:
        session = (await client.post("/mcp", json=INITIALIZE)).headers["mcp-session-id"]
        eras: list[dict[str, str]] = [
            {"mcp-session-id": session},
            {"mcp-protocol-version": MODERN, "mcp-method": "tools/list"},
            {},
        ]
        for body, code, request_id, word in [(b"", -32600, None, "empty"), *REFUSED]:  # the same table as over stdio
            for era in eras:
                answer = await client.post("/mcp", content=body, headers=era)
                said = answer.json()
                assert answer.status_code == 400, (body[:80], era)
                assert (said["error"]["code"], said["id"]) == (code, request_id), (body[:80], era)
                assert word in said["error"]["message"]
                assert answer.headers["content-type"] == "application/json"
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        good = await client.post("/mcp", content=b" \n" + json.dumps(ping).encode() + b"\r\n", headers=eras[0])
        assert good.status_code == 200
        assert '"result"' in good.text


async def test_a_notification_is_taken_without_an_answer() -> None:
    async with opened() as live, live.client() as client:
        session = (await client.post("/mcp", json=INITIALIZE)).headers["mcp-session-id"]
        said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        answer = await client.post("/mcp", json=said, headers={"mcp-session-id": session})
        assert (answer.status_code, answer.content) == (202, b"")


async def test_open_streams_of_both_eras_end_at_once_when_the_server_does() -> None:
    # Calls may take longer here than the test waits: only streams are ended.
    async with opened(HttpLimits(shutdown_s=10 * PATIENCE_S)) as live, live.client() as client:
        session = (await client.post("/mcp", json=INITIALIZE)).headers["mcp-session-id"]
        filters = {"notifications": {"toolsListChanged": True}, "_meta": META}
        listen = {"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": filters}
        modern = {"mcp-protocol-version": MODERN, "mcp-method": "subscriptions/listen"}
        async with (
            client.stream("GET", "/mcp", headers={"mcp-session-id": session}) as old,
            client.stream("POST", "/mcp", json=listen, headers=modern) as new,
        ):
            assert (old.status_code, new.status_code) == (200, 200)
            new_bytes = new.aiter_bytes()
            assert b"acknowledged" in await anext(new_bytes)
            live.stop.set_result(None)
            assert not [piece async for piece in old.aiter_bytes() if b"data:" in piece]
            assert not [piece async for piece in new_bytes if b'"error"' in piece]


async def test_a_call_that_ends_in_time_is_answered_while_the_server_ends() -> None:
    async with opened(HttpLimits(shutdown_s=PATIENCE_S)) as live, live.client(**MODERN_WAIT) as client:
        asking = asyncio.ensure_future(client.post("/mcp", json=WAIT))
        await asyncio.wait_for(live.calls.started.wait(), PATIENCE_S)
        live.stop.set_result(None)
        await until(lambda: live.app.open_requests.is_closing)
        live.calls.go_on.set()
        assert "result" in (await asking).json()


async def test_a_call_that_does_not_end_is_answered_that_the_server_shuts_down(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with opened(HttpLimits(shutdown_s=0.2)) as live, live.client(**MODERN_WAIT) as client:
        asking = asyncio.ensure_future(client.post("/mcp", json=WAIT))
        await asyncio.wait_for(live.calls.started.wait(), PATIENCE_S)
        live.stop.set_result(None)
        answer = await asking
        assert (answer.status_code, answer.json()["name"]) == (503, "unavailable")
        await asyncio.wait_for(live.calls.cancelled.wait(), PATIENCE_S)
    assert not [record for record in caplog.records if record.levelname in {"WARNING", "ERROR"}]


async def test_nothing_new_is_started_while_the_server_ends() -> None:
    async with opened(HttpLimits(shutdown_s=PATIENCE_S)) as live, live.client() as client, live.client() as second:
        await second.get("/livez")  # so that its connection is there already
        asking = asyncio.ensure_future(client.post("/mcp", json=WAIT, headers=MODERN_WAIT))
        await asyncio.wait_for(live.calls.started.wait(), PATIENCE_S)
        closing = asyncio.ensure_future(live.app.close())
        await until(lambda: live.app.open_requests.is_closing)
        refused = await second.post("/mcp", json=INITIALIZE)
        assert (refused.status_code, refused.headers["connection"]) == (503, "close")
        live.calls.go_on.set()
        assert (await asking).status_code == 200
        await closing
