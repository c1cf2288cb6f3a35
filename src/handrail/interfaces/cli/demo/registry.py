"""A package registry for the demo: a real HTTP server that is slow to start and strict about permissions.

Only the demo uses it. It listens on loopback, on a free port, while the demo runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

HOST: Final = "127.0.0.1"
REASONS: Final = {200: "OK", 201: "Created", 403: "Forbidden", 404: "Not Found", 503: "Service Unavailable"}


@dataclass
class DemoRegistry:
    """Answers 503 once, then 200; accepts packages only when `takes_packages` is set."""

    port: int = 0
    is_ready: bool = False
    takes_packages: bool = False
    published: list[str] = field(default_factory=list)

    @property
    def address(self) -> str:
        """Its URL."""
        return f"http://{HOST}:{self.port}"

    def answer(self, method: str, path: str) -> tuple[int, str]:
        """Its response to a request: status and body."""
        match method, path:
            case "GET", "/ready":
                was_ready, self.is_ready = self.is_ready, True
                return (200, "ready") if was_ready else (503, "still starting")
            case "POST", "/packages":
                if not self.takes_packages:
                    return 403, "your token may not publish"
                self.published.append("app")
                return 201, "published"
            case "DELETE", "/packages":
                self.published.clear()
                return 200, "withdrawn"
            case _:
                return 404, "no such path"

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                method, path, _ = head[0].split(" ", 2)
                await reader.readexactly(_length(head))
                status, text = self.answer(method, path)
                start = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Length: {len(text)}\r\n\r\n"
                writer.write(f"{start}{text}".encode("latin-1"))
                await writer.drain()
        writer.close()


def _length(head: list[str]) -> int:
    lengths = [line.partition(":")[2] for line in head if line.lower().startswith("content-length:")]
    return int(lengths[0]) if lengths else 0


@contextlib.asynccontextmanager
async def demo_registry() -> AsyncIterator[DemoRegistry]:
    """A running registry."""
    registry = DemoRegistry()
    server = await asyncio.start_server(registry.talk, HOST, 0)
    registry.port = server.sockets[0].getsockname()[1]
    try:
        yield registry
    finally:
        server.close()
