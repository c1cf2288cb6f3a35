"""How much and how long a client may take over HTTP; times are short here, so that tests are quick."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from handrail.interfaces.web.connection import SPARE
from handrail.interfaces.web.limits import HttpLimits
from interfaces.mcp.http.live_server import (
    ACCEPT,
    INITIALIZE,
    PATIENCE_S,
    LiveServer,
    body_of,
    get,
    opened,
    request,
    status_of,
    until,
)

SOON = HttpLimits(header_s=0.3, body_silence_s=0.3, body_s=1.0, rest_s=0.3, keep_alive_s=1)
BODY = json.dumps(INITIALIZE).encode()
JSON = {"content-type": "application/json", **ACCEPT}


async def dribble(live: LiveServer, start: bytes, *, every_s: float = 0.05) -> bytes:
    """Send something, then go on byte by byte until the other side closes; returns what it sent."""
    async with live.line() as line:
        line.writer.write(start)
        answer = asyncio.ensure_future(line.rest())
        while not answer.done():
            line.writer.write(b"a")
            await asyncio.sleep(every_s)
        return await answer


async def test_a_client_that_says_nothing_is_cut_off() -> None:
    async with opened(SOON) as live:
        assert await live.say(b"") == b""


async def test_a_client_that_dribbles_its_head_is_cut_off_however_steadily() -> None:
    async with opened(SOON) as live:
        said = await dribble(live, b"GET /livez HTTP/1.1\r\nx: ")
        assert (status_of(said), body_of(said)["name"]) == (408, "limited")


async def test_the_head_of_the_second_request_is_watched_too() -> None:
    async with opened(SOON) as live:
        said = await dribble(live, get("/livez", live.port) + b"GET /livez HTTP/1.1\r\nx: ")
        assert said.startswith(b"HTTP/1.1 200")
        assert b"HTTP/1.1 408" in said


async def test_a_client_that_is_silent_in_its_body_is_cut_off() -> None:
    async with opened(replace(SOON, body_s=10 * PATIENCE_S)) as live:
        started = request("POST", "/mcp", live.port, BODY, **JSON)[:-5]
        said = await live.say(started)
        assert (status_of(said), body_of(said)["name"]) == (408, "limited")
        assert live.app.open_requests.count == 0


async def test_a_body_that_dribbles_forever_is_cut_off() -> None:
    async with opened(SOON) as live:
        head = {**JSON, "content-length": "1000000"}
        said = await dribble(live, request("POST", "/mcp", live.port, b"", **head))
        assert status_of(said) == 408


async def test_a_slow_body_that_goes_on_is_taken() -> None:
    patient = HttpLimits(body_silence_s=0.6)
    async with opened(patient) as live:
        whole = request("POST", "/mcp", live.port, BODY, connection="close", **JSON)
        head = whole.index(b"\r\n\r\n") + 4
        async with live.line() as line:
            line.writer.write(whole[:head])
            for at in range(head, len(whole), 8):
                await asyncio.sleep(0.05)
                line.writer.write(whole[at : at + 8])
            assert 0.05 * len(BODY) / 8 > patient.body_silence_s
            assert status_of(await line.rest()) == 200


async def test_the_rest_of_a_refused_body_is_not_read_forever() -> None:
    async with opened(SOON) as live:
        head = {**JSON, "authorization": "", "content-length": "1000000"}
        said = await dribble(live, request("POST", "/mcp", live.port, b"", **head))
        assert status_of(said) == 401


async def test_an_idle_connection_is_closed() -> None:
    async with opened(SOON) as live:
        said = await live.say(get("/livez", live.port))
        assert status_of(said) == 200


async def test_a_call_that_takes_long_is_not_cut_off() -> None:
    async with opened(SOON) as live, live.client() as client:
        session = (await client.post("/mcp", json=INITIALIZE)).headers["mcp-session-id"]
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "wait", "arguments": {}}}
        asking = asyncio.ensure_future(client.post("/mcp", json=call, headers={"mcp-session-id": session}))
        await asyncio.wait_for(live.calls.started.wait(), PATIENCE_S)
        await asyncio.sleep(2 * SOON.header_s)
        live.calls.go_on.set()
        answer = await asking
        assert (answer.status_code, '"isError":true' in answer.text) == (200, False)
        assert '"result"' in answer.text


async def test_a_body_that_is_too_large_is_refused_whether_it_says_so_or_not() -> None:
    async def in_pieces() -> AsyncIterator[bytes]:
        yield b"x" * 600
        yield b"x" * 600

    async with opened(HttpLimits(body_bytes=1_000)) as live, live.client() as client:
        for content in (b"x" * 1_200, in_pieces()):
            answer = await client.post("/mcp", content=content, headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["name"]) == (413, "limited")
        huge = request("POST", "/mcp", live.port, b"x", **{**JSON, "content-length": "9" * 20, "connection": "close"})
        assert status_of(await live.say(huge)) == 413
        assert (await client.post("/mcp", json=INITIALIZE)).status_code == 200


async def test_four_mebibytes_are_taken_and_not_more() -> None:
    async with opened() as live, live.client() as client:
        for extra, status in ((0, 200), (1, 413)):
            body = BODY + b" " * (4 * 1_024 * 1_024 - len(BODY) + extra)
            answer = await client.post("/mcp", content=body, headers={"content-type": "application/json"})
            assert answer.status_code == status


async def test_a_head_that_is_too_large_is_refused() -> None:
    async with opened(HttpLimits(header_bytes=4_096)) as live:
        at_once = await live.say(get("/livez", live.port, x="a" * 5_000))
        assert (status_of(at_once), body_of(at_once)["name"]) == (431, "limited")
        in_pieces = await dribble(live, b"GET /" + b"a" * 4_080, every_s=0)
        assert (status_of(in_pieces), body_of(in_pieces)["name"]) == (400, "invalid")


async def test_too_many_connections_are_turned_away_and_room_is_given_again() -> None:
    async with opened(HttpLimits(connections=3)) as live:
        async with AsyncExitStack() as stack:
            for _ in range(3):
                await stack.enter_async_context(live.line())
            async with live.client() as client:
                answer = await client.get("/livez")
                assert (answer.status_code, answer.json()["name"]) == (503, "unavailable")
                assert int(answer.headers["retry-after"]) > 0
        async with live.client() as client:
            assert (await client.get("/livez")).status_code == 200


async def test_far_too_many_connections_are_closed_without_an_answer() -> None:
    async with opened(HttpLimits(connections=1)) as live, AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(live.line()) for _ in range(1 + SPARE + 1)]
        assert status_of(await lines[1].rest()) == 503
        assert await lines[-1].rest() == b""


async def test_a_client_that_leaves_its_answers_unread_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with opened(HttpLimits(write_s=0.3)) as live, live.line() as line:
        meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}}
        call = {
            "name": "echo",
            "arguments": {"text": "x" * 3_000_000},
            "_meta": {f"io.modelcontextprotocol/{name}": value for name, value in meta.items()},
        }
        asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        head = {**JSON, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo"}
        line.writer.write(8 * request("POST", "/mcp", live.port, asked, **head))
        await until(lambda: "left its response unread" in caplog.text)
        await until(lambda: live.app.open_requests.count == 0)
        assert await line.is_broken()
