"""Agents from outside: what a test needs of an MCP client, and how it finds handrail.

The official clients are in typescript_agent.py and python_agent.py; story.py is the scenario that they run."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from outside.processes import PATIENCE_S, Place

MODERN = "2026-07-28"
WAYS = [("legacy", True), ("legacy", False), ("auto", False), ("modern", True)]
"""How a client chooses the protocol (by handshake, by asking first, by knowing), and whether it can ask its person."""
TRANSPORTS = ("stdio", "http")


@dataclass(frozen=True)
class Refused(Exception):
    """A tool's answer that is an error which the caller can act on."""

    data: Mapping[str, Any]
    text: str


class Agent(Protocol):
    """A client that is connected."""

    @property
    def version(self) -> str:
        """The protocol that it has agreed on with the server."""
        ...

    async def tools(self) -> Sequence[str]:
        """The names of all tools."""
        ...

    async def call(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        """A tool's structured answer; Refused if that is an error."""
        ...

    async def read(self, uri: str) -> str:
        """What stands at an address."""
        ...

    async def asked(self) -> Sequence[str]:
        """What the person behind the client was asked; they have agreed to it."""
        ...


@dataclass(frozen=True)
class Started:
    """handrail as a command that the client starts itself."""

    place: Place

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "handrail", "mcp"]


@dataclass(frozen=True)
class Reached:
    """handrail at an address."""

    url: str
    token: str


Where = Started | Reached


def answered(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """The structured answer of a call, as it stands on the wire."""
    text = "\n".join(block["text"] for block in result["content"])
    data: Mapping[str, Any] = result.get("structuredContent") or {}
    if result.get("isError"):
        raise Refused(data, text)
    assert data, result
    assert text, result
    return data


@asynccontextmanager
async def where(transport: str, place: Place) -> AsyncIterator[Where]:
    """handrail on a place, to be found in one of its two ways."""
    if transport == "stdio":
        yield Started(place)
        return
    async with served(place) as reached:
        yield reached


@asynccontextmanager
async def served(place: Place, *options: str) -> AsyncIterator[Reached]:
    """`handrail serve` on a free port, as a process of its own; it must end well when it is asked to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "handrail", "serve", "--port", "0", "--json", *options),
        env=place.environment,
        cwd=place.project,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        endpoint = await asyncio.wait_for(_first_value(process), PATIENCE_S)
        file = endpoint.get("token_file")
        yield Reached(endpoint["url"], Path(file).read_text(encoding="utf-8").strip() if file else "")
        process.terminate()
        code = await asyncio.wait_for(process.wait(), PATIENCE_S)
        assert code == 0 or sys.platform == "win32", code
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _first_value(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """The first JSON value that a process says, on however many lines."""
    assert process.stdout is not None
    said = ""
    async for line in process.stdout:
        said += line.decode()
        with contextlib.suppress(json.JSONDecodeError):
            value: dict[str, Any] = json.loads(said)
            return value
    raise AssertionError(f"it ended without a value: {said}")
