"""Connects the front to the SDK's server: one stream that the SDK reads, one that it writes to, and the shutdown.

Imported only after the first answers, because asyncio and the SDK are slow to import."""

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
from handrail.interfaces.mcp.stdio.front import Ending, Front, Queued
from handrail.interfaces.mcp.stdio.replies import INTERNAL_ERROR, error_line

WAIT_S: Final = {Ending.CLIENT_IS_DONE: 30.0, Ending.SIGNAL: 5.0, Ending.CLIENT_IS_GONE: 0.0}
"""How long running requests may still take, by the reason for the shutdown."""

log = logging.getLogger(__name__)


async def run_server(server: Server[Any], front: Front, background: Callable[[], Awaitable[None]]) -> None:
    """Let this server answer everything that reaches the front, until the end; `background` runs meanwhile."""
    loop = asyncio.get_running_loop()
    replays: set[mt.RequestId] = set()
    reading, writing = FrontReadStream(front, replays), FrontWriteStream(front, replays)
    # The reader and writer threads wake the loop, and may outlive it by a moment.
    front.attach(partial(_unless_closed, partial(loop.call_soon_threadsafe, reading.wake)))
    front.outlet.call_on_room(partial(_unless_closed, partial(loop.call_soon_threadsafe, writing.wake)))
    front.retire_snapshot()
    ending = asyncio.create_task(_end(front, reading))
    extra = asyncio.ensure_future(background())
    try:
        await server.run(reading, writing, server.create_initialization_options())
    finally:
        for task in (ending, extra):
            task.cancel()
        await asyncio.gather(ending, extra, return_exceptions=True)


class FrontReadStream:
    """The stream that the SDK reads: the client's messages, in the order of the front's queue."""

    def __init__(self, front: Front, replays: set[mt.RequestId]) -> None:
        self._front, self._replays = front, replays
        self._woken = asyncio.Event()
        self._has_ended = False
        self.must_end, self.changed = asyncio.Event(), asyncio.Event()

    def wake(self) -> None:
        """A message may be queued, or the server may have to end."""
        self._woken.set()
        self.changed.set()
        if self._front.ending:
            self.must_end.set()

    def end(self) -> None:
        """Stop after the messages that are already queued."""
        self._has_ended = True
        self._woken.set()

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        return await anext(self)

    async def aclose(self) -> None:
        """Nothing to close: the front outlives this stream."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        while True:
            self._woken.clear()  # before looking, so that a message queued in between isn't missed
            queued = self._front.take()
            if queued is not None:
                return self._message(queued)
            if self._has_ended:
                raise StopAsyncIteration
            await self._woken.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _message(self, queued: Queued | str) -> SessionMessage:
        text = queued if isinstance(queued, str) else queued.text
        message = mt.jsonrpc_message_adapter.validate_json(text, by_name=False)
        if isinstance(queued, str) and isinstance(message, mt.JSONRPCRequest):
            self._replays.add(message.id)
        if not isinstance(queued, Request):
            return SessionMessage(message)
        # A request that the client cancelled gets no answer; its slot is free only when its work has stopped.
        return SessionMessage(message, ServerMessageMetadata(on_request_unanswered=partial(self._unanswered, queued)))

    async def _unanswered(self, request: Request) -> None:
        self._front.settled(request.id)


class FrontWriteStream:
    """The stream that the SDK writes to: messages for the client, passed to the outlet."""

    def __init__(self, front: Front, replays: set[mt.RequestId]) -> None:
        self._front, self._replays = front, replays
        self._room = asyncio.Event()

    def wake(self) -> None:
        """The outlet may have room again."""
        self._room.set()

    async def send(self, item: SessionMessage, /) -> None:
        """Queue a message in the outlet; wait while the client has too much left to read."""
        message = item.message
        if isinstance(message, mt.JSONRPCResponse | mt.JSONRPCError) and message.id in self._replays:
            self._drop(message)
            return
        await self._wait_for_room()  # until then the request keeps its slot, so no other one starts
        if isinstance(message, mt.JSONRPCRequest):
            self._front.asked(message.id)
        elif not isinstance(message, mt.JSONRPCNotification) and message.id is not None:
            self._front.settled(message.id)  # before the client sees the answer, and may use the id again
        self._front.outlet.enqueue(_line(message))

    async def aclose(self) -> None:
        """Nothing to close: the outlet outlives this stream."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _wait_for_room(self) -> None:
        while not self._front.outlet.has_room:
            self._room.clear()
            if not self._front.outlet.has_room:  # the writer thread may have made room before the clear
                await self._room.wait()

    def _drop(self, message: mt.JSONRPCResponse | mt.JSONRPCError) -> None:
        """Drop an answer that the client already got from the snapshot."""
        self._replays -= {message.id}
        if isinstance(message, mt.JSONRPCError):
            log.warning("the SDK refused what a snapshot had accepted: %s", message.error.message)


def _line(message: mt.JSONRPCMessage) -> bytes:
    try:
        return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
    except ValueError as error:  # a tool can return text with half of a surrogate pair, which UTF-8 can't encode
        log.warning("an answer can't be encoded: %s", error)
        request_id = getattr(message, "id", None)
        return error_line(request_id, INTERNAL_ERROR, "the answer contains text that can't be encoded as JSON")


async def _end(front: Front, reading: FrontReadStream) -> None:
    """Wait for the shutdown; then give running requests time to finish."""
    await reading.must_end.wait()
    started_s = time.monotonic()
    # WAIT_S is read in each round: a signal after the client has left makes the wait shorter.
    while not front.is_idle and (left_s := started_s + WAIT_S[front.ending] - time.monotonic()) > 0:
        reading.changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await reading.changed.wait()
    reading.end()


def _unless_closed(call: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # the loop is closed: there is nothing left to wake
        call()
