"""Sessions over HTTP: what an abandoned one leaves, which one gives way, and that a client never sees that it slept."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from handrail.interfaces.mcp.http.session_book import HELLO_BYTES_MAX, HttpSession, SessionBook
from handrail.interfaces.mcp.http.sessions import Sessions
from handrail.interfaces.mcp.stdio.envelope import read_envelope
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.responses import Receive, Scope, Send
from interfaces.mcp.http.live_server import INITIALIZE, LiveServer, opened, until

INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
ECHO = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}}


async def hello(client: httpx.AsyncClient, message: dict[str, Any] = INITIALIZE) -> dict[str, str]:
    """Open a session; the header that names it."""
    answer = await client.post("/mcp", json=message)
    assert answer.status_code == 200, answer.text
    session = {"mcp-session-id": answer.headers["mcp-session-id"]}
    assert (await client.post("/mcp", json=INITIALIZED, headers=session)).status_code == 202
    return session


async def ping(client: httpx.AsyncClient, session: dict[str, str], number: int = 2) -> int:
    return (await client.post("/mcp", json={**PING, "id": number}, headers=session)).status_code


def asleep(live: LiveServer) -> int:
    return len(live.mcp.sessions.book) - live.mcp.sessions.book.awake


async def test_the_session_that_was_idle_for_the_longest_gives_way_to_a_new_one() -> None:
    async with opened(HttpLimits(sessions=2)) as live, live.client() as client:
        first, second = await hello(client), await hello(client)
        assert await ping(client, first) == 200
        third = await hello(client)
        assert [await ping(client, one) for one in (first, second, third)] == [200, 404, 200]
        assert len(live.mcp.sessions.book) == 2


async def test_a_busy_session_stays_and_who_finds_no_place_is_told_when_to_try_again() -> None:
    async with opened(HttpLimits(sessions=1)) as live, live.client() as client:
        first = await hello(client)
        async with client.stream("GET", "/mcp", headers=first) as stream:
            assert stream.status_code == 200
            refused = await client.post("/mcp", json=INITIALIZE)
            assert (refused.status_code, refused.json()["name"]) == (503, "unavailable")
            assert int(refused.headers["retry-after"]) > 0
            assert await ping(client, first) == 200
        await until(lambda: live.mcp.sessions.book.oldest_idle() is not None)
        await hello(client)
        assert await ping(client, first) == 404


async def test_a_session_that_slept_continues_under_its_id() -> None:
    async with opened(HttpLimits(sessions_awake=1)) as live, live.client() as client:
        first, second = await hello(client), await hello(client)
        await until(lambda: asleep(live) == 1 and live.calls.initialized == 2)
        for session in (first, second, first):
            answer = await client.post("/mcp", json=ECHO, headers=session)
            assert (answer.status_code, answer.headers["mcp-session-id"]) == (200, session["mcp-session-id"])
            assert '"text":"hi"' in answer.text
            await until(lambda: asleep(live) == 1)
        assert live.calls.initialized == 2 + 3  # each that woke has said again that it is initialized


async def test_two_requests_at_once_wake_a_session_once() -> None:
    async with opened(HttpLimits(sessions_awake=1)) as live, live.client() as client:
        first = await hello(client)
        await hello(client)
        await until(lambda: asleep(live) == 1)
        before = len(asyncio.all_tasks())
        assert await asyncio.gather(*(ping(client, first, number) for number in range(5))) == [200] * 5
        await until(lambda: asleep(live) == 1)
        await until(lambda: len(asyncio.all_tasks()) <= before)


async def test_an_id_that_is_not_answered_yet_is_refused_in_its_own_session_only() -> None:
    wait = {**ECHO, "params": {"name": "wait", "arguments": {}}}
    async with opened() as live, live.client() as client:
        first, second = await hello(client), await hello(client)
        asking = asyncio.ensure_future(client.post("/mcp", json=wait, headers=first))
        await live.calls.started.wait()
        again = await client.post("/mcp", json={**ECHO, "id": "3"}, headers=first)
        assert (again.status_code, again.json()["id"], again.json()["error"]["code"]) == (400, "3", -32600)
        assert (await client.post("/mcp", json=ECHO, headers=second)).status_code == 200
        live.calls.go_on.set()
        assert (await asking).status_code == 200
        assert (await client.post("/mcp", json=ECHO, headers=first)).status_code == 200


async def test_abandoned_sessions_leave_nothing_running() -> None:
    async with opened(HttpLimits(sessions_awake=2)) as live, live.client() as client:
        for _ in range(3):
            await client.post("/mcp", json=INITIALIZE)
        await until(lambda: asleep(live) == 1)
        before = len(asyncio.all_tasks())
        for _ in range(40):
            await client.post("/mcp", json=INITIALIZE)
        await until(lambda: asleep(live) == 41)
        await until(lambda: len(asyncio.all_tasks()) <= before)


async def test_a_session_that_is_left_alone_ends_whether_it_sleeps_or_not() -> None:
    async with opened(HttpLimits(sessions_awake=1, session_idle_s=0.3)) as live, live.client() as client:
        sleeping, awake = await hello(client), await hello(client)
        await until(lambda: asleep(live) == 1)
        await asyncio.sleep(0.4)
        assert [await ping(client, one) for one in (sleeping, awake)] == [404, 404]
        await hello(client)
        assert len(live.mcp.sessions.book) == 1


async def test_a_session_that_its_client_ends_makes_room() -> None:
    async with opened(HttpLimits(sessions=2, sessions_awake=1)) as live, live.client() as client:
        first, second = await hello(client), await hello(client)
        await until(lambda: asleep(live) == 1)
        for session in (first, second):  # one that sleeps, and one that does not
            assert (await client.delete("/mcp", headers=session)).status_code == 200
            assert await ping(client, session) == 404
        assert len(live.mcp.sessions.book) == 0


async def test_a_session_with_subscriptions_or_a_huge_handshake_does_not_sleep() -> None:
    name = "n" * HELLO_BYTES_MAX
    huge: dict[str, Any] = json.loads(json.dumps(INITIALIZE))
    huge["params"]["clientInfo"]["name"] = name
    subscribe = {"jsonrpc": "2.0", "id": 4, "method": "resources/subscribe", "params": {"uri": "x://y"}}
    async with opened(HttpLimits(sessions_awake=1)) as live, live.client() as client:
        sessions = [await hello(client), await hello(client, huge)]
        await client.post("/mcp", json=subscribe, headers=sessions[0])
        await hello(client)
        await until(lambda: asleep(live) == 1)
        awake = {one["mcp-session-id"] for one in sessions}
        assert all(live.mcp.sessions.book.find(one, 0.0).is_awake for one in awake)  # type: ignore[union-attr]


async def test_a_request_that_opens_no_session_takes_no_place() -> None:
    async with opened(HttpLimits(sessions=1)) as live, live.client() as client:
        first = await hello(client)
        assert (await client.post("/mcp", json=PING)).status_code == 400
        assert (await client.post("/mcp", json=INITIALIZE, headers={"accept": "text/plain"})).status_code == 406
        assert (await client.post("/mcp", json=PING, headers={"mcp-session-id": "nobody"})).status_code == 404
        assert live.mcp.sessions.book.opening == 0
        assert await ping(client, first) == 404  # it gave way to the request that was then not acceptable
        await hello(client)


async def test_a_session_that_breaks_while_it_opens_takes_no_place() -> None:
    async def sdk(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"mcp-session-id", b"s1")]})
        raise ConnectionError("gone")

    async def nothing(*_: Any) -> Any:
        return None

    sessions = Sessions(sdk, "/mcp", HttpLimits())
    message = read_envelope(json.dumps(INITIALIZE).encode())
    with pytest.raises(ConnectionError):
        await sessions.handle({"method": "POST", "headers": []}, nothing, nothing, message, b"{}")
    assert (len(sessions.book), sessions.book.opening) == (0, 0)


def test_two_sessions_that_open_at_once_do_not_share_the_last_place() -> None:
    book = SessionBook(sessions_max=2, awake_max=2, idle_s=10)
    book.add(HttpSession("a", "a", b"{}", used=0.0))
    assert not book.is_full
    book.opening += 1
    assert book.is_full


def test_only_as_many_sessions_sleep_as_there_are_too_many_and_the_oldest_first() -> None:
    book = SessionBook(sessions_max=9, awake_max=2, idle_s=10)
    sessions = [HttpSession(name, name, b"{}", used=0.0) for name in "abcd"]
    for session in sessions:
        book.add(session)
    book.begin(sessions[0])
    assert [session.id for session in book.to_sleep()] == ["b", "c"]
    book.end(sessions[0], 1.0)
    assert book.oldest_idle() is sessions[1]
