"""A real HTTP server on this machine, for tests: it answers by a table of paths and remembers what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Loopback:
    answers: dict[str, bytes | Callable[[Asked], bytes]]
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str, host: str = "127.0.0.1") -> str:
        return f"http://{host}:{self.port}{path}"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while asked := await read(reader):
                self.asked.append(asked)
                answer = self.answers.get(asked.path, reply(404, b"no such path"))
                writer.write(answer(asked) if callable(answer) else answer)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


async def read(reader: asyncio.StreamReader) -> Asked | None:
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    method, path, _ = head[0].split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    return Asked(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


def reply(status: int, body: bytes = b"", **headers: str) -> bytes:
    names = {name.replace("_", "-"): value for name, value in headers.items()} | {"Content-Length": str(len(body))}
    lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in names.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


@asynccontextmanager
async def serving(answers: dict[str, bytes | Callable[[Asked], bytes]]) -> AsyncIterator[Loopback]:
    loopback = Loopback(answers)
    server = await asyncio.start_server(loopback.talk, "127.0.0.1", 0)
    loopback.port = server.sockets[0].getsockname()[1]
    try:
        yield loopback
    finally:
        server.close()
