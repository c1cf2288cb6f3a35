"""The requests that are being handled: at shutdown each is ended, and its client gets a proper end of the response.

A request whose handler raises is logged and ended too. Requests are handled in site.py."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from handrail.domain.errors import HandrailError, Unavailable
from handrail.interfaces.web.responses import (
    CLOSE,
    Application,
    JsonResponse,
    Message,
    Receive,
    Scope,
    Send,
    error_response,
    send_response,
)

END_S: Final = 1.0
"""How long a cancelled request may take to end."""
SHUTTING_DOWN: Final = error_response(503, Unavailable("the server is shutting down"), CLOSE)
FAILED: Final = error_response(500, HandrailError("an internal error occurred", hint="see the server's log"), CLOSE)

log = logging.getLogger(__name__)


class OpenRequests:
    """The open requests of one server."""

    def __init__(self, streams: frozenset[str] = frozenset()) -> None:
        self.is_closing = False
        self._streams = streams
        self._open: dict[asyncio.Timeout, bool] = {}
        """The timeout that can end each request, and whether the request is an endless stream."""
        self._all_done = asyncio.Event()

    @property
    def count(self) -> int:
        """How many requests are open."""
        return len(self._open)

    async def run(self, application: Application, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application handle a request, until it has finished or the server shuts down."""
        response = _Response(send)
        if self.is_closing:
            await response.end(SHUTTING_DOWN)
            return
        try:
            # A timeout without a deadline: `_end` sets one, which cancels just this request.
            async with asyncio.timeout(None) as timeout:
                self._open[timeout] = is_endless(scope, self._streams)
                try:
                    await application(scope, receive, response.send)
                finally:
                    del self._open[timeout]
                    if not self._open:
                        self._all_done.set()
        except Exception as error:  # a bug in one handler, ours or the SDK's, must not stop the server
            is_shutdown = isinstance(error, TimeoutError) and timeout.expired()
            if not is_shutdown:
                log.exception("a request failed: %s %s", scope["method"], scope["path"])
            await response.end(SHUTTING_DOWN if is_shutdown else FAILED)

    async def close(self, *, within_s: float) -> None:
        """End streams at once and calls after `within_s`; refuse new requests."""
        self.is_closing = True
        self._end(one for one, is_stream in self._open.items() if is_stream)
        if not await self._wait_until_done(within_s):
            self._end(self._open)
            await self._wait_until_done(END_S)

    def _end(self, timeouts: Iterable[asyncio.Timeout]) -> None:
        now = asyncio.get_running_loop().time()
        for one in list(timeouts):
            one.reschedule(now)

    async def _wait_until_done(self, within_s: float) -> bool:
        self._all_done.clear()
        if not self._open:
            return True
        try:
            await asyncio.wait_for(self._all_done.wait(), within_s)
        except TimeoutError:
            return False
        return True


def is_endless(scope: Scope, streams: frozenset[str]) -> bool:
    """Whether this request is a stream of notifications, which ends only when one side leaves."""
    is_stream = scope["method"] == "GET" and scope["path"] in streams
    return is_stream or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


class _Response:
    """Sends a response, and knows how much of it has been sent."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._is_started = self._is_complete = False

    async def send(self, message: Message) -> None:
        self._is_started = True
        self._is_complete = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def end(self, response: JsonResponse) -> None:
        """End a started response, or send this one if none was started."""
        if not self._is_started:
            await send_response(response, self._send)
        elif not self._is_complete:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
