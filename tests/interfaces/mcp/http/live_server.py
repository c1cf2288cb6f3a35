"""A small MCP server behind the real HTTP server, on a free port, for tests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

import httpx
import mcp_types as mt
from mcp.server.lowlevel.server import Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

from handrail.interfaces.mcp.http.app import McpPart, app_of
from handrail.interfaces.web.guard import guard_of
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.listen_address import listen_on, resolve_address
from handrail.interfaces.web.site import WebSite
from handrail.interfaces.web.uvicorn_runner import run

PATIENCE_S = 30.0
TOKEN = "t" * 43
VERSION = "2025-11-25"
ACCEPT = {"accept": "application/json, text/event-stream"}
ECHO = mt.Tool(name="echo", description="Say it again.", input_schema={"type": "object"})
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@dataclass
class LiveServer:
    """A running server: its address, and what its tools do."""

    app: WebSite
    mcp: McpPart
    port: int
    stop: asyncio.Future[None]
    calls: Calls

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def client(self, **headers: str) -> httpx.AsyncClient:
        shown = {"authorization": f"Bearer {TOKEN}", **ACCEPT, **headers}
        return httpx.AsyncClient(base_url=self.url, headers=shown, timeout=PATIENCE_S, trust_env=False)

    @asynccontextmanager
    async def line(self) -> AsyncIterator[Line]:
        """A raw TCP connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Line(reader, writer)
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def say(self, sent: bytes) -> bytes:
        """Everything received for these bytes, until the other side closes."""
        async with self.line() as line:
            line.writer.write(sent)
            return await line.rest()


@dataclass
class Line:
    """A raw TCP connection to the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def rest(self) -> bytes:
        """Everything received until the other side closes."""
        return await asyncio.wait_for(self.reader.read(), PATIENCE_S)

    async def is_broken(self) -> bool:
        """Whether the other side reset the connection instead of closing it."""
        try:
            await self.rest()
        except ConnectionError:
            return True
        return False


@dataclass
class Calls:
    """What the tools of the small server do."""

    started: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    initialized: int = 0

    async def note_initialized(self, _: Any, __: mt.NotificationParams) -> None:
        self.initialized += 1

    async def call(self, _: Any, params: mt.CallToolRequestParams) -> mt.CallToolResult:
        if params.name == "break":
            raise RuntimeError("broken on purpose")
        if params.name == "wait":
            self.started.set()
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        text = str((params.arguments or {}).get("text", ""))
        return mt.CallToolResult(content=[mt.TextContent(type="text", text=text)])

    def server(self) -> Server[Any]:
        async def tools(_: Any, __: Any) -> mt.ListToolsResult:
            return mt.ListToolsResult(tools=[ECHO, replace_name("wait"), replace_name("break")])

        server: Server[Any] = Server(
            "small",
            version="1",
            on_list_tools=tools,
            on_call_tool=self.call,
            get_tool_input_schema=lambda _: ECHO.input_schema,
            on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
        )
        server.add_notification_handler("notifications/initialized", mt.NotificationParams, self.note_initialized)
        return server


def replace_name(name: str) -> mt.Tool:
    return ECHO.model_copy(update={"name": name})


async def always_ready() -> None:
    """Always ready."""


@asynccontextmanager
async def opened(limits: HttpLimits | None = None, **changes: Any) -> AsyncIterator[LiveServer]:
    """The small server, running; `changes` are made to the guard, or to `ready`."""
    listener = listen_on(resolve_address("127.0.0.1", 0))
    port = listener.getsockname()[1]
    ready = changes.pop("ready", always_ready)
    guard = replace(guard_of(resolve_address("127.0.0.1", port).names, port, token=TOKEN), **changes)
    calls = Calls()
    app = app_of(calls.server(), ready=ready, guard=guard, limits=limits)
    loop = asyncio.get_running_loop()
    stop, started = loop.create_future(), asyncio.Event()
    running = asyncio.ensure_future(run(app, listener, stop=stop, on_started=started.set))
    await asyncio.wait_for(started.wait(), PATIENCE_S)
    try:
        (part,) = app.parts
        assert isinstance(part, McpPart)
        yield LiveServer(app, part, port, stop, calls)
    finally:
        if not stop.done():
            stop.set_result(None)
        await asyncio.wait_for(running, PATIENCE_S)


def request(method: str, path: str, port: int, body: bytes, **headers: str) -> bytes:
    """The bytes of a request."""
    shown = {"host": f"127.0.0.1:{port}", "authorization": f"Bearer {TOKEN}", **headers}
    if body and "transfer-encoding" not in shown:
        shown.setdefault("content-length", str(len(body)))
    head = "".join(f"{name}: {value}\r\n" for name, value in shown.items() if value)
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode("latin-1") + body


def get(path: str, port: int, **headers: str) -> bytes:
    """The bytes of a GET."""
    return request("GET", path, port, b"", **headers)


def status_of(said: bytes) -> int:
    return int(said.split(b" ", 2)[1])


def body_of(said: bytes) -> Any:
    """The JSON body of a response."""
    return json.loads(said.partition(b"\r\n\r\n")[2])


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)
