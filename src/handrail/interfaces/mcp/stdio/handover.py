"""The handover: the SDK's server, served from the front. Two streams in the SDK's own shape, and how it all ends.

Needs asyncio and the SDK, so it is imported only after the first answers are given."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Self

import mcp_types as mt
from mcp.server.lowlevel.server import Server
from mcp.shared.message import ServerMessageMetadata, SessionMessage

from handrail.interfaces.mcp.stdio.envelope import Request
from handrail.interfaces.mcp.stdio.front import Ending, Front, Passed
from handrail.interfaces.mcp.stdio.replies import INTERNAL_ERROR, error_line

WAIT_S: Final = {Ending.CLIENT_IS_DONE: 30.0, Ending.SIGNAL: 5.0, Ending.CLIENT_IS_GONE: 0.0}
"""How long requests that are being worked on may take when the end has come."""

log = logging.getLogger(__name__)


async def hand_over(server: Server[Any], front: Front, beside: Callable[[], Awaitable[None]]) -> None:
    """Let this server answer all that reaches the front, until the end; `beside` is done in the meantime."""
    loop = asyncio.get_running_loop()
    replays: set[mt.RequestId] = set()
    source, sink = Source(front, replays), Sink(front, replays)
    wake = partial(loop.call_soon_threadsafe, source.look)
    front.attach(partial(_unless_closed, wake))
    front.outlet.call_on_room(partial(_unless_closed, partial(loop.call_soon_threadsafe, sink.look)))
    front.retire_clerk()
    ending = asyncio.create_task(_end(front, source))
    besides = asyncio.ensure_future(beside())
    try:
        await server.run(source, sink, server.create_initialization_options())
    finally:
        for task in (ending, besides):
            task.cancel()
        await asyncio.gather(ending, besides, return_exceptions=True)


class Source:
    """What the SDK reads: messages of the client, as they come from the front."""

    def __init__(self, front: Front, replays: set[mt.RequestId]) -> None:
        self._front, self._replays = front, replays
        self._news = asyncio.Event()
        self._has_ended = False
        self.must_end, self.changed = asyncio.Event(), asyncio.Event()

    def look(self) -> None:
        """There may be something to take, or the end may have come."""
        self._news.set()
        self.changed.set()
        if self._front.ending:
            self.must_end.set()

    def end(self) -> None:
        """Give no more than what is there."""
        self._has_ended = True
        self._news.set()

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        return await anext(self)

    async def aclose(self) -> None:
        """Nothing to close: the front lives longer."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while True:
            self._news.clear()
            passed = self._front.take()
            if passed is not None:
                return self._message(passed)
            if self._has_ended:
                raise StopAsyncIteration
            await self._news.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _message(self, passed: Passed | str) -> SessionMessage:
        text = passed if isinstance(passed, str) else passed.text
        message = mt.jsonrpc_message_adapter.validate_json(text, by_name=False)
        if isinstance(passed, str) and isinstance(message, mt.JSONRPCRequest):
            self._replays.add(message.id)
        if not isinstance(passed, Request):
            return SessionMessage(message)
        # A request that the client cancelled gets no answer; its place is free only when its work has stopped.
        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=partial(self._unanswered, passed)))

    async def _unanswered(self, request: Request) -> None:
        self._front.settled(request.id)


class Sink:
    """What the SDK writes to: messages for the client, on their way to the outlet."""

    def __init__(self, front: Front, replays: set[mt.RequestId]) -> None:
        self._front, self._replays = front, replays
        self._room = asyncio.Event()

    def look(self) -> None:
        """There may be room again."""
        self._room.set()

    async def send(self, item: SessionMessage, /) -> None:
        """Hand a message to the outlet, when the client has read enough of what came before."""
        message = item.message
        if isinstance(message, mt.JSONRPCResponse | mt.JSONRPCError) and message.id in self._replays:
            self._drop(message)
            return
        await self._room_is_there()  # until then the request keeps its place, and no other one is begun
        if isinstance(message, mt.JSONRPCRequest):
            self._front.asked(message.id)
        elif not isinstance(message, mt.JSONRPCNotification) and message.id is not None:
            self._front.settled(message.id)  # before the client can know, and use the id again
        self._front.outlet.hand_in(_line(message))

    async def aclose(self) -> None:
        """Nothing to close: the outlet lives longer."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _room_is_there(self) -> None:
        while not self._front.outlet.has_room:
            self._room.clear()
            if not self._front.outlet.has_room:
                await self._room.wait()

    def _drop(self, message: mt.JSONRPCResponse | mt.JSONRPCError) -> None:
        """The client has this answer already."""
        self._replays -= {message.id}
        if isinstance(message, mt.JSONRPCError):
            log.warning("the SDK refused what a snapshot had accepted: %s", message.error.message)


def _line(message: mt.JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError as error:  # text that is no text, from wherever a tool has it
        log.warning("an answer can't be written: %s", error)
        request_id = getattr(message, "id", None)
        return error_line(request_id, INTERNAL_ERROR, "the answer holds something that JSON can't carry")


async def _end(front: Front, source: Source) -> None:
    """Wait for the end; then give what is being worked on its time."""
    await source.must_end.wait()
    began = time.monotonic()
    while not front.is_idle and (left_s := began + WAIT_S[front.ending] - time.monotonic()) > 0:
        source.changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await source.changed.wait()
    source.end()


def _unless_closed(call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop has ended; so nobody is there to be woken
        call()
