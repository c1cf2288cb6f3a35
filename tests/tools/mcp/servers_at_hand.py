"""Connections to the hostile server, for tests, and a heart that notices when the loop was held up."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types

from handrail.domain.run.tool_question import PersonReply, ToolQuestion
from handrail.engine.tool import ToolAsks
from handrail.tools.mcp.connection import ServerConnection
from handrail.tools.mcp.declaration import Declared
from handrail.tools.mcp.transport.era_memory import EraCache
from handrail.tools.mcp.working_folder import ServerPlaces

SERVER = Path(__file__).with_name("hostile_server.py")


def declared(*modes: str, **more: Any) -> Declared:
    words = ("-I", "-S", str(SERVER), *modes)
    return Declared(**{"name": "bad", "origin": "tools.json", "command": sys.executable, "args": words, **more})


def connection(folder: Path, *modes: str, **more: Any) -> ServerConnection:
    return connected(folder, declared(*modes, **more))


def connected(folder: Path, server: Declared, **more: Any) -> ServerConnection:
    options: dict[str, Any] = {"fill": lambda text: text, "places": ServerPlaces(folder, folder), **more}
    book = EraCache(folder / "cache" / "eras.json")
    return ServerConnection(server, log=folder / "logs" / "bad.log", remembered=book, **options)


@asynccontextmanager
async def opened(folder: Path, *modes: str, **more: Any) -> AsyncIterator[ServerConnection]:
    found = connection(folder, *modes, **more)
    try:
        yield found
    finally:
        await found.close()


def nobody(question: ToolQuestion) -> PersonReply:
    raise ToolAsks(question)


def silent(_words: str) -> None:
    """Nobody listens."""


async def call(
    server: ServerConnection,
    tool: str,
    *,
    progress: Callable[[str], None] = silent,
    ask: Callable[[ToolQuestion], PersonReply] = nobody,
    **args: Any,
) -> str:
    """What the tool says."""
    result = await server.call(tool, args, key="key-1", progress=progress, ask=ask)
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)


async def described_as(server: ServerConnection, text: str, seconds: float = 10) -> None:
    """Wait until the server's tools are described with this text."""
    async with asyncio.timeout(seconds):
        while text not in {tool.description for tool in await server.listing()}:
            await asyncio.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z" and os.getpid() != process


class Heart:
    """Beats as long as the loop serves everybody; `gap_s` is the longest that it had to wait."""

    gap_s = 0.0

    async def __aenter__(self) -> Heart:
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *error: object) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _beat(self) -> None:
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.005)
            self.gap_s = max(self.gap_s, time.monotonic() - before)
