"""A small server for the front's tests: the SDK's own, with a few tools that are quick, slow, talkative or asking."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as mt
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server

from handrail.domain.errors import Unavailable
from handrail.settings import Settings

Context = ServerRequestContext[Any, Any]
NAMES = ("echo", "slow", "progress", "ask", "noise", "crash", "half")
ANY: dict[str, Any] = {"type": "object"}


@asynccontextmanager
async def open_server(settings: Settings, toolsets: Sequence[str]) -> AsyncIterator[Server[Any]]:
    """A server, and a file that says how it ended."""
    if (settings.home / "refuse").exists():
        raise Unavailable("the store is on strike", hint="come back tomorrow")
    settings.home.mkdir(parents=True, exist_ok=True)
    ended = settings.home / "ended"
    ended.unlink(missing_ok=True)
    try:
        yield build(settings.project, toolsets)
    finally:
        ended.write_text("in order", encoding="utf-8")


def build(project: Path, toolsets: Sequence[str]) -> Server[Any]:
    """The server; its prompts are the names of the project's workflows."""
    running: set[str] = set()

    async def list_tools(_: Context, __: object) -> mt.ListToolsResult:
        described = f"For {','.join(toolsets)}."
        return mt.ListToolsResult(tools=[mt.Tool(name=name, description=described, input_schema=ANY) for name in NAMES])

    async def list_prompts(_: Context, __: object) -> mt.ListPromptsResult:
        folder = project / ".handrail" / "workflows"
        names = sorted(file.stem for file in folder.glob("*.yaml"))
        return mt.ListPromptsResult(prompts=[mt.Prompt(name=name) for name in names])

    async def list_resources(_: Context, __: object) -> mt.ListResourcesResult:
        return mt.ListResourcesResult(resources=[mt.Resource(uri="fake://one", name="one")])

    async def list_templates(_: Context, __: object) -> mt.ListResourceTemplatesResult:
        return mt.ListResourceTemplatesResult(resource_templates=[])

    async def call_tool(context: Context, params: mt.CallToolRequestParams) -> mt.CallToolResult:
        arguments = params.arguments or {}
        if params.name == "running":
            return _text(",".join(sorted(running)))
        name = str(arguments.get("name", ""))
        running.add(name)
        try:
            return _text(await _do(context, params.name, arguments))
        finally:
            running.discard(name)

    return Server(
        "fake",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=list_prompts,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
    )


async def _do(context: Context, tool: str, arguments: dict[str, Any]) -> str:
    match tool:
        case "slow":
            await asyncio.sleep(arguments["seconds"])
        case "progress":
            for step in range(3):
                await context.session.report_progress(step + 1, 3, "on the way")
        case "ask":
            answer = await context.session.elicit_form("Really?", {"type": "object", "properties": {}})
            return str(answer.action)
        case "noise":
            sys.stdout.write("a print that must not reach the client\n")
            sys.stdout.flush()
            os.write(1, b"nor may this\n")
            subprocess.run([sys.executable, "-c", "print(len(input()))"], stderr=subprocess.DEVNULL)
        case "crash":
            raise RuntimeError("a bug of a tool")
        case "half":
            return "\ud800"
        case _:
            pass
    return str(arguments.get("text", "")) * int(arguments.get("times", 1))


def _text(text: str) -> mt.CallToolResult:
    return mt.CallToolResult(content=[mt.TextContent(type="text", text=text)])
