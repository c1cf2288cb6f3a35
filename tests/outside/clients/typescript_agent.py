"""The official TypeScript client as an agent: node/client.mjs at the other end of a pipe."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outside.agents import Started, Where, answered
from outside.nodejs import LOCKS, Node
from outside.processes import PATIENCE_S

CLIENT = LOCKS / "client.mjs"
LINE_MAX = 4_000_000


class ProtocolError(Exception):
    """A request that the server, or the client itself, has refused."""


@dataclass
class TypescriptAgent:
    """The client, connected."""

    process: asyncio.subprocess.Process
    version: str = ""

    async def tools(self) -> Sequence[str]:
        return [tool["name"] for tool in await self._do("tools")]

    async def call(self, tool: str, **arguments: Any) -> Mapping[str, Any]:
        return answered(await self._do("call", name=tool, arguments=arguments))

    async def read(self, uri: str) -> str:
        contents = await self._do("read", uri=uri)
        text: str = contents[0]["text"]
        return text

    async def asked(self) -> Sequence[str]:
        texts: list[str] = await self._do("asked")
        return texts

    async def connected(self) -> None:
        """Wait until it has shaken hands, or whatever its era does."""
        self.version = (await self._reply())["version"]

    async def _do(self, deed: str, **params: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"deed": deed, "params": params}).encode() + b"\n")
        return await self._reply()

    async def _reply(self) -> Any:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE_S)
        assert line, "the client has ended; what it said is on stderr"
        reply = json.loads(line)
        if "error" in reply:
            raise ProtocolError(reply["error"])
        return reply["result"]


@asynccontextmanager
async def typescript_agent(node: Node, where: Where, *, era: str, agrees: bool) -> AsyncIterator[TypescriptAgent]:
    """The client, connected in an era; its person agrees to all, or can't be asked."""
    wanted = {"era": era, "agrees": agrees, **_address(where)}
    process = await asyncio.create_subprocess_exec(
        *(str(node.program), str(CLIENT), str(node.folder / "node_modules"), json.dumps(wanted)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=LINE_MAX,
    )
    agent = TypescriptAgent(process)
    try:
        await agent.connected()
        yield agent
        assert process.stdin is not None
        process.stdin.close()
        assert await asyncio.wait_for(process.wait(), PATIENCE_S) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _address(where: Where) -> Mapping[str, Any]:
    if not isinstance(where, Started):
        return {"url": where.url, "token": where.token}
    command, *arguments = where.command
    place = where.place
    return {"command": command, "args": arguments, "env": place.environment, "cwd": str(Path(place.project))}
