"""Which HTTP requests are allowed: host name, origin, token and path."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

from handrail.domain.errors import Unavailable
from handrail.interfaces.web.guard import Guard, guard_of
from handrail.interfaces.web.limits import HttpLimits
from interfaces.mcp.http.live_server import INITIALIZE, TOKEN, body_of, get, opened, status_of

PATHS = ("/", "/livez", "/readyz", "/mcp", "/nothing")
SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-store", "referrer-policy": "no-referrer"}


def is_safe(answer: httpx.Response) -> bool:
    return all(answer.headers.get_list(name) == [value] for name, value in SAFE.items())


def headers(**named: str) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in named.items()]


async def test_a_request_under_another_name_is_misdirected_on_every_path() -> None:
    async with opened() as live:
        for host in ("evil.example", "127.0.0.1", "127.0.0.1:1", f"localhost.evil.example:{live.port}", "[::1]:1", ""):
            async with live.client(host=host) as client:
                for path in PATHS:
                    answer = await client.get(path)
                    assert (answer.status_code, answer.json()["name"]) == (421, "forbidden"), (host, path)
                    assert is_safe(answer)


async def test_a_page_from_elsewhere_is_refused_on_every_path() -> None:
    async with opened() as live:
        ours = f"127.0.0.1:{live.port}"
        for origin in ("http://evil.example", "null", "", "http://127.0.0.1", f"https://{ours}", f"http://{ours}.x"):
            async with live.client(origin=origin) as client:
                for path in PATHS:
                    answer = await client.post(path, json=INITIALIZE)
                    assert (answer.status_code, answer.json()["name"]) == (403, "forbidden"), (origin, path)
                    assert is_safe(answer)


async def test_our_own_names_and_pages_are_allowed() -> None:
    async with opened() as live:
        for name in ("127.0.0.1", "localhost", "LOCALHOST"):
            async with live.client(host=f"{name}:{live.port}", origin=f"http://{name}:{live.port}") as client:
                assert (await client.get("/livez")).json() == {"status": "ok"}


async def test_a_request_without_a_name_or_with_two_is_refused() -> None:
    async with opened() as live:
        nameless = await live.say(b"GET /livez HTTP/1.0\r\n\r\n")
        assert status_of(nameless) == 421
        twice = get("/livez", live.port).replace(b"\r\n", b"\r\nHost: evil.example\r\n", 1)
        assert status_of(await live.say(twice)) == 400


async def test_without_the_token_nothing_of_mcp_is_reached() -> None:
    wrong = [f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", "Bearer", "", TOKEN]
    limits = HttpLimits(refused_s=0.0)  # else the later answers would wait
    async with opened(limits) as live, httpx.AsyncClient(base_url=live.url, trust_env=False) as client:
        for shown in (None, *wrong):
            for method in ("GET", "POST", "DELETE", "OPTIONS"):
                with_it = {} if shown is None else {"authorization": shown}
                answer = await client.request(method, "/mcp", json=INITIALIZE, headers=with_it)
                assert answer.status_code == 401, (shown, method)
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert set(answer.json()) == {"code", "name", "message", "hint"}
                assert is_safe(answer)
                assert TOKEN not in answer.text


async def test_two_tokens_count_as_none() -> None:
    async with opened() as live:
        asked = get("/mcp", live.port, connection="close")
        twice = asked.replace(b"\r\n", f"\r\nAuthorization: Bearer {TOKEN}\r\n".encode(), 1)
        assert status_of(await live.say(twice)) == 401


async def test_health_needs_no_token_and_says_what_is_wrong() -> None:
    errors: list[Exception] = []

    async def ready() -> None:
        for error in errors:
            raise error

    async with opened(ready=ready) as live, httpx.AsyncClient(base_url=live.url, trust_env=False) as client:
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.head("/livez")).content == b""
        errors.append(Unavailable("the store is being migrated", hint="wait"))
        answer = await client.get("/readyz")
        assert answer.status_code == 503
        assert (answer.json()["message"], answer.json()["hint"]) == ("the store is being migrated", "wait")
        assert (await client.get("/livez")).status_code == 200


async def test_a_store_that_never_answers_is_not_ready() -> None:
    async with opened(HttpLimits(ready_s=0.05), ready=asyncio.Event().wait) as live, live.client() as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["name"]) == (503, "unavailable")


async def test_other_paths_lead_nowhere_and_pages_are_only_read() -> None:
    async with opened() as live, live.client() as client:
        for path in ("/mcp/", "/MCP", "/.well-known/oauth-protected-resource", "/livez/..%2fmcp", "//mcp"):
            answer = await client.get(live.url + path)
            assert (answer.status_code, answer.json()["name"]) == (404, "not_found")
            assert is_safe(answer)
        posted = await client.post("/livez")
        assert (posted.status_code, posted.headers["allow"]) == (405, "GET, HEAD")
        assert (await client.get("/")).json()["mcp"] == "/mcp"


async def test_a_whole_address_instead_of_a_path_leads_nowhere() -> None:
    async with opened() as live:
        asked = get(f"http://127.0.0.1:{live.port}/livez", live.port, connection="close")
        assert status_of(await live.say(asked)) == 404


async def test_an_internal_error_is_answered_and_the_next_request_is_served(caplog: pytest.LogCaptureFixture) -> None:
    async def ready() -> None:
        raise RuntimeError("broken on purpose")

    async with opened(ready=ready) as live, live.client() as client:
        answer = await client.get("/readyz")
        assert (answer.status_code, answer.json()["name"]) == (500, "internal")
        assert is_safe(answer)
        assert "broken on purpose" not in answer.text
        assert (await client.get("/livez")).status_code == 200
    assert "broken on purpose" in caplog.text


async def test_a_guard_without_a_token_needs_none() -> None:
    async with opened(token=None) as live, httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(f"{live.url}/mcp", json=INITIALIZE, headers={"accept": "*/*"})
        assert answer.status_code == 200
        assert is_safe(answer)


async def test_what_is_not_http_is_refused_with_a_reason() -> None:
    async with opened() as live:
        said = await live.say(b"\x16\x03\x01 hello\r\n\r\n")
        assert status_of(said) == 400
        assert body_of(said)["name"] == "invalid"
        assert b"nosniff" in said


async def test_upgrades_are_not_followed() -> None:
    async with opened() as live, live.client(connection="upgrade", upgrade="websocket") as client:
        assert (await client.get("/livez")).json() == {"status": "ok"}


ALLOWED: Any = [
    ("rail.example", {"rail.example", "rail.example:7420"}),
    ("Rail.Example:8443", {"rail.example:8443"}),
    ("[fd00::1]", {"[fd00::1]", "[fd00::1]:7420"}),
]


@pytest.mark.parametrize(("name", "hosts"), ALLOWED)
def test_an_allowed_name_is_allowed_whole_and_its_pages_only_encrypted(name: str, hosts: set[str]) -> None:
    guard = guard_of(["127.0.0.1"], 7420, token=None, allowed=[name])
    assert guard.hosts == {"127.0.0.1:7420", *hosts}
    assert guard.origins == {"http://127.0.0.1:7420", *(f"https://{host}" for host in hosts)}


def test_the_port_of_plain_http_may_be_left_out() -> None:
    assert guard_of(["localhost"], 80, token=None).hosts == {"localhost", "localhost:80"}


def test_a_guard_does_not_show_its_token() -> None:
    guard = guard_of(["localhost"], 7420, token=TOKEN)
    assert TOKEN not in repr(guard)
    assert guard.check_token(headers(authorization=f"bearer {TOKEN}")) is None
    assert guard.check_token(headers(authorization="Bearer \u00e9")) is not None
    assert isinstance(replace(guard, token=None), Guard)
