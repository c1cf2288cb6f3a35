"""The least server that the official SDK can make: one tool that answers at once. A peer of bench/agents.py."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as mt
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server

Context = ServerRequestContext[Any, Any]

ECHO = mt.Tool(name="status", description="Say it again.", input_schema={"type": "object"})


async def list_tools(_: Context, __: mt.PaginatedRequestParams | None) -> mt.ListToolsResult:
    return mt.ListToolsResult(tools=[ECHO])


async def call_tool(_: Context, params: mt.CallToolRequestParams) -> mt.CallToolResult:
    return mt.CallToolResult(content=[mt.TextContent(type="text", text=str(params.arguments))])


async def main() -> None:
    server: Server[Any] = Server("least", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
