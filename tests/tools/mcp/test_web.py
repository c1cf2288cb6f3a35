"""Tool servers behind a URL: headers, statuses, broken answers, and sessions that are forgotten."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.definition.model import Category
from handrail.tools.mcp.declaration import Declared
from handrail.tools.mcp.transport import web
from tools.calls import Fails
from tools.loopback import Asked, Loopback, reply, serving
from tools.mcp.servers_at_hand import call, connected


def web_server(tools: dict[str, Callable[[dict[str, Any]], bytes]]) -> Callable[[Asked], bytes]:
    """An MCP server behind a URL, of the handshake, which answers each request with JSON."""

    def answer(asked: Asked) -> bytes:
        if asked.method != "POST":
            return reply(405)
        message = json.loads(asked.body)
        match message.get("method"):
            case "initialize":
                version = message["params"]["protocolVersion"]
                info = {"name": "web", "version": "2"}
                result: dict[str, Any] = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
                return said(message, result, Mcp_Session_Id="s-1")
            case "tools/list":
                return said(message, {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]})
            case "tools/call":
                return tools[message["params"]["name"]](message)
            case "server/discover":
                return reply(400)
            case _:
                return reply(202)

    return answer


def said(message: dict[str, Any], result: Any, **headers: str) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return reply(200, body, Content_Type="application/json", **headers)


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def on_web(loopback: Loopback, path: str = "/mcp") -> Declared:
    return Declared(name="web", origin="tools.json", url=loopback.url(path), headers={"Authorization": "Bearer $X"})


async def test_a_server_on_the_web_is_called_with_its_headers(tmp_path: Path) -> None:
    tools = {"echo": lambda message: said(message, text(message["params"]["arguments"]["text"]))}
    async with serving({"/mcp": web_server(tools)}) as loopback:
        found = connected(tmp_path, on_web(loopback), fill=lambda words: words.replace("$X", "filled"))
        assert await call(found, "echo", text="hello") == "hello"
        assert (found.status.status, found.status.server, found.status.pid) == ("running", "web 2", 0)
        await found.close()
        assert {asked.headers["authorization"] for asked in loopback.asked} == {"Bearer filled"}
        assert loopback.asked[-1].method == "DELETE"


@pytest.mark.parametrize(
    ("answer", "category", "words"),
    [
        (reply(401), Category.PERMISSION, "status 401"),
        (reply(403), Category.PERMISSION, "status 403"),
        (reply(410), Category.NOT_FOUND, "status 410"),
        (reply(408), Category.TIMEOUT, "status 408"),
        (reply(409), Category.CONFLICT, "status 409"),
        (reply(429, Retry_After="7"), Category.RATE_LIMITED, "status 429"),
        (reply(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT"), Category.RATE_LIMITED, "status 429"),
        (reply(429, Retry_After="soon"), Category.RATE_LIMITED, "status 429"),
        (reply(503), Category.TRANSIENT, "status 503"),
        (reply(418), Category.INVALID_INPUT, "status 418"),
        (reply(200, b"{}", Content_Type="application/json"), Category.TOOL_ERROR, "Failed to parse"),
        (reply(200, b"[" + b" " * 17_000_000 + b"]", Content_Type="application/json"), Category.TOOL_ERROR, "16 MB"),
        (reply(200, b"x", Content_Type="application/json", Content_Encoding="gzip"), Category.TOOL_ERROR, "compressed"),
        (reply(200, b"x", Content_Type="text/html"), Category.TOOL_ERROR, "Unexpected content type"),
        (b"HTTP/1.1 200 Fine\r\nContent-Type: text/event-stream\r\nContent-Length: 0\r\n\r\n", Category.TRANSIENT, ""),
        (b"not HTTP at all\r\n\r\n", Category.TRANSIENT, "can't be reached"),
    ],
)
async def test_statuses_and_broken_answers_have_their_category_and_the_session_goes_on(
    answer: bytes, category: Category, words: str, tmp_path: Path
) -> None:
    tools = {"bad": lambda _: answer, "good": lambda message: said(message, text("good"))}
    async with serving({"/mcp": web_server(tools)}) as loopback:
        found = connected(tmp_path, on_web(loopback))
        await found.listing()
        with Fails(category, words) as fails:
            await call(found, "bad")
        if b"Retry-After: 7" in answer:
            assert fails.failed.retry_after_ms == 7_000
        assert await call(found, "good") == "good"
        assert found.status.starts == 1
        await found.close()


async def test_a_session_that_the_server_has_forgotten_is_opened_again(tmp_path: Path) -> None:
    forgotten = [True]

    def tool(message: dict[str, Any]) -> bytes:
        return reply(404) if forgotten.pop() else said(message, text("known again"))

    forgotten = [False, True]
    async with serving({"/mcp": web_server({"tool": tool})}) as loopback:
        found = connected(tmp_path, on_web(loopback))
        with Fails(Category.TRANSIENT, "has forgotten the session"):
            await call(found, "tool")
        assert await call(found, "tool") == "known again"
        assert found.status.starts == 2
        await found.close()


@pytest.mark.parametrize(("status", "category"), [(401, Category.PERMISSION), (404, Category.NOT_FOUND)])
async def test_a_server_on_the_web_that_refuses_access_says_so(status: int, category: Category, tmp_path: Path) -> None:
    async with serving({"/mcp": reply(status)}) as loopback:
        found = connected(tmp_path, on_web(loopback))
        with Fails(category, f"status {status}"):
            await found.listing()
        await found.close()


async def test_a_server_on_the_web_that_is_not_there_is_transient(tmp_path: Path) -> None:
    async with serving({}) as loopback:
        gone = on_web(loopback)
    found = connected(tmp_path, gone)
    with Fails(Category.TRANSIENT, "127.0.0.1 can't be reached"):
        await found.listing()
    await found.close()


async def test_a_server_on_the_web_that_stays_silent_or_breaks_off_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "SILENCE_S", 0.2)
    half = b"HTTP/1.1 200 Fine\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"
    async with serving({"/mcp": web_server({"half": lambda _: half, "none": lambda _: b""})}) as loopback:
        found = connected(tmp_path, on_web(loopback))
        with Fails(Category.TRANSIENT, "was cut off"):
            await call(found, "half")
        with Fails(Category.TIMEOUT, "did not answer in time"):
            await call(found, "none")
        await found.close()


def test_a_certificate_that_is_not_trusted_is_no_trouble_that_passes() -> None:
    error = OSError("wrapped")
    error.__cause__ = ssl.SSLCertVerificationError(1, "x")
    error.__cause__.verify_message = "self-signed"
    assert web._unreached("host", error) == (
        Category.PERMISSION,
        "the certificate of host is not trusted: self-signed",
    )
