"""A client of `handrail mcp` that many tasks share: requests are answered in any order, and a server can be killed."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "lanes", "version": "1"},
}
PATIENCE_S = 60.0


class Gone(Exception):
    """The server ended before it answered."""


class McpClient:
    """One server process, and all who talk to it."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self.numbers = count(1)
        self.stray: list[bytes] = []
        """Lines on stdout that are no answers to anything."""
        self.hearing = asyncio.create_task(self._hear())

    async def _hear(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            try:
                message = json.loads(line)
                waiter = self.waiting.pop(message["id"])
            except (ValueError, KeyError):
                self.stray.append(line)
                continue
            if not waiter.done():
                waiter.set_result(message)
        for waiter in self.waiting.values():
            if not waiter.done():
                waiter.set_exception(Gone())

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a request."""
        number = next(self.numbers)
        waiter = self.waiting[number] = asyncio.get_running_loop().create_future()
        request = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}
        assert self.process.stdin is not None
        if self.hearing.done():
            raise Gone
        with suppress(ConnectionError):
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            await self.process.stdin.drain()
        answer = await asyncio.wait_for(waiter, PATIENCE_S)
        assert "result" in answer, answer
        result: dict[str, Any] = answer["result"]
        return result

    async def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers, errors too."""
        result = await self.ask("tools/call", name=name, arguments=arguments)
        data: dict[str, Any] = result["structuredContent"]
        return data

    async def kill(self) -> None:
        """Kill the server."""
        self.process.kill()
        await self.process.wait()

    async def close(self) -> int:
        """Close stdin, and wait until the server is gone."""
        if self.process.stdin is not None and self.process.returncode is None:
            self.process.stdin.close()
        code = await asyncio.wait_for(self.process.wait(), PATIENCE_S)
        await self.hearing
        return code


@asynccontextmanager
async def mcp_server(home: Path, project: Path, *options: str) -> AsyncIterator[McpClient]:
    """`handrail mcp`, as a client starts it."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HANDRAIL_")}
    environment["HANDRAIL_CHECKS"] = "plain"  # agents here follow scripts: there are no projects behind what they claim
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "handrail",
        "mcp",
        "--home",
        str(home),
        "--project",
        str(project),
        *options,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=environment,
        limit=2**24,
    )
    client = McpClient(process)
    try:
        yield client
    finally:
        if process.returncode is None:
            try:
                await client.close()
            except TimeoutError:
                await client.kill()
        client.hearing.cancel()
        with suppress(asyncio.CancelledError):
            await client.hearing
