"""Records what the SDK's server answers, in every protocol version, so that the next start can answer from a snapshot.

The server itself answers, over in-memory streams, so the results are the SDK's own. snapshot_file.py stores them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Final, Self

import mcp_types as mt
from mcp.server.lowlevel.server import Server
from mcp.shared.message import SessionMessage

from handrail.interfaces.mcp.stdio.snapshot_answers import (
    APPS_CAPABILITIES,
    APPS_MARK,
    HANDSHAKES,
    LISTS,
    META_CAPABILITIES,
    META_CLIENT,
    META_VERSION,
    MODERN,
)

CLIENT: Final = {"name": "handrail", "version": "0"}
ANSWER_S: Final = 10.0

Pause = Callable[[], Awaitable[None]]


async def record(server: Server[Any], pause: Pause) -> dict[tuple[str, str], bytes]:
    """What this server answers, by version and method; `pause` is awaited before each question."""
    answers: dict[tuple[str, str], bytes] = {}
    for version in (*HANDSHAKES, MODERN):
        plain = await _answers(server, version, {}, pause)
        shown = await _answers(server, version, APPS_CAPABILITIES, pause)
        answers |= {(version, method): result for method, result in plain.items()}
        answers |= {(version + APPS_MARK, method): one for method, one in shown.items() if one != plain.get(method)}
    return answers


async def _answers(
    server: Server[Any], version: str, capabilities: Mapping[str, Any], pause: Pause
) -> dict[str, bytes]:
    """What a client of this version with these capabilities is answered, by method."""
    questions = QuestionStream(version, pause, capabilities)
    async with asyncio.timeout(ANSWER_S):
        await server.run(questions, AnswerStream(questions), server.create_initialization_options())
    return questions.results


class QuestionStream:
    """The stream that the SDK reads: one question at a time, each after the previous one is answered."""

    def __init__(self, version: str, pause: Pause, capabilities: Mapping[str, Any]) -> None:
        self._questions = _questions(version, capabilities)
        self._pause = pause
        self._method = ""
        self._answered = asyncio.Event()
        self._answered.set()
        self.results: dict[str, bytes] = {}

    def keep(self, message: mt.JSONRPCMessage) -> None:
        """Store a result. An error isn't stored: the real session will produce it again."""
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
        await self._pause()
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


class AnswerStream:
    """The stream that the SDK writes to."""

    def __init__(self, questions: QuestionStream) -> None:
        self._questions = questions

    async def send(self, item: SessionMessage, /) -> None:
        """Receive a message from the server."""
        self._questions.keep(item.message)

    async def aclose(self) -> None:
        """Nothing to close."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


def _questions(version: str, capabilities: Mapping[str, Any]) -> Iterator[mt.JSONRPCMessage]:
    if version == MODERN:
        meta = {META_VERSION: version, META_CLIENT: CLIENT, META_CAPABILITIES: dict(capabilities)}
        for number, method in enumerate(("server/discover", *LISTS)):
            yield mt.JSONRPCRequest(jsonrpc="2.0", id=number, method=method, params={"_meta": meta})
        return
    hello = {"protocolVersion": version, "capabilities": dict(capabilities), "clientInfo": CLIENT}
    yield mt.JSONRPCRequest(jsonrpc="2.0", id=0, method="initialize", params=hello)
    yield mt.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
    for number, method in enumerate(("ping", *LISTS), start=1):
        yield mt.JSONRPCRequest(jsonrpc="2.0", id=number, method=method)
