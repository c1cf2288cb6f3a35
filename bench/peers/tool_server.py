"""A tool server that answers at once, and can be made to fail: the other side of bench/tools.py.

    python tool_server.py            over stdio, as clients start it
    python tool_server.py http PORT  over HTTP: POST /mood says `well` or `ill`, GET /mood how many requests came

Ill means: every request is answered with 503, and counted like the others."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import anyio
import mcp_types as mt
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[Any, Any]
Message = MutableMapping[str, Any]
App = Callable[[Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]]

NUMBERED: dict[str, Any] = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}
LOOK = mt.Tool(
    name="look",
    description="Say when it was asked.",
    input_schema=NUMBERED,
    annotations=mt.ToolAnnotations(read_only_hint=True),
)
NOTE = mt.Tool(
    name="note",
    description="Say when it was asked, as if that were an effect.",
    input_schema=NUMBERED,
    annotations=mt.ToolAnnotations(read_only_hint=False, destructive_hint=False),
)


async def list_tools(_: Context, __: mt.PaginatedRequestParams | None) -> mt.ListToolsResult:
    return mt.ListToolsResult(tools=[LOOK, NOTE])


async def call_tool(_: Context, params: mt.CallToolRequestParams) -> mt.CallToolResult:
    """The moment at which a call came, so that the time from one to the next is known to the reader of the answers."""
    at = {"at": time.monotonic_ns(), "number": (params.arguments or {})["number"]}
    return mt.CallToolResult(content=[mt.TextContent(type="text", text=json.dumps(at))], structured_content=at)


def made() -> Server[Any]:
    return Server("bench", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


class Moody:
    """The server over HTTP, well or ill."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.is_ill = False
        self.requests = 0

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
        elif scope["path"] == "/mood":
            if scope["method"] == "POST":
                self.is_ill = (await receive())["body"] == b"ill"
            await _said(send, 200, str(self.requests).encode())
        else:
            self.requests += scope["method"] == "POST"
            await (_said(send, 503, b"ill") if self.is_ill else self.app(scope, receive, send))


async def _said(send: Callable[[Message], Awaitable[None]], status: int, body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": []})
    await send({"type": "http.response.body", "body": body})


async def main() -> None:
    server = made()
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1:2] == ["http"]:
        uvicorn.run(Moody(made().streamable_http_app()), port=int(sys.argv[2]), log_level="error")
    else:
        anyio.run(main)
