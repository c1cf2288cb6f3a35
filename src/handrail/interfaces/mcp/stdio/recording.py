"""Recording: asks the SDK's server, in every version of the protocol, what the next start can answer from a snapshot.

The very same server answers over streams in memory, so the words are the SDK's. snapshot.py keeps them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final, Self

import mcp_types as mt
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage

from handrail.interfaces.mcp.stdio.clerk import (
    HANDSHAKES,
    LISTS,
    META_CAPABILITIES,
    META_CLIENT,
    META_VERSION,
    MODERN,
)

CLIENT: Final = {"name": "handrail", "version": "0"}
ANSWER_S: Final = 10.0

Turn = Callable[[], Awaitable[None]]
log = logging.getLogger(__name__)


async def record(server: Server[Any], turn: Turn) -> dict[tuple[str, str], bytes]:
    """What this server answers, by version and method; `turn` is awaited before each question."""
    answers: dict[tuple[str, str], bytes] = {}
    for version in (*HANDSHAKES, MODERN):
        asking = Asking(version, turn)
        async with asyncio.timeout(ANSWER_S):
            await server.run(asking, Hearing(asking), server.create_initialization_options())
        answers |= {(version, method): result for method, result in asking.results.items()}
    return answers


class Asking:
    """What the SDK reads: one question after the other, each when the last one is answered."""

    def __init__(self, version: str, turn: Turn) -> None:
        self._questions = _questions(version)
        self._turn = turn
        self._method = ""
        self._answered = asyncio.Event()
        self._answered.set()
        self.results: dict[str, bytes] = {}

    def hear(self, message: mt.JSONRPCMessage) -> None:
        """Keep a result; whatever else is said is left to the real conversation."""
        if isinstance(message, mt.JSONRPCResponse):
            self.results[self._method] = json.dumps(message.result, separators=(",", ":"), ensure_ascii=False).encode()
        if isinstance(message, mt.JSONRPCResponse | mt.JSONRPCError):
            self._answered.set()

    async def receive(self) -> SessionMessage | Exception:
        """The next question."""
        return await anext(self)

    async def aclose(self) -> None:
        """Nothing to close."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        await self._answered.wait()
        await self._turn()
        for message in self._questions:
            if isinstance(message, mt.JSONRPCRequest):
                self._method = message.method
                self._answered.clear()
            return SessionMessage(message)
        raise StopAsyncIteration

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class Hearing:
    """What the SDK writes to."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def send(self, item: SessionMessage, /) -> None:
        """Hear a message of the server."""
        self._asking.hear(item.message)

    async def aclose(self) -> None:
        """Nothing to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _questions(version: str) -> Iterator[mt.JSONRPCMessage]:
    if version == MODERN:
        meta = {META_VERSION: version, META_CLIENT: CLIENT, META_CAPABILITIES: {}}
        for number, method in enumerate(("server/discover", *LISTS)):
            yield mt.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params={"_meta": meta})
        return
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": CLIENT}
    yield mt.JSONRPCRequest(jsonrpc="2.0", id=0, method="initialize", params=hello)
    yield mt.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
    for number, method in enumerate(("ping", *LISTS), start=1):
        yield mt.JSONRPCRequest(jsonrpc="2.0", id=number, method=method)
