"""Exchanges that are under way: each can be ended, and its client sees an end, not a broken line.

An answer that breaks is ended too, and logged. What is exchanged is the application's business."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from handrail.domain.errors import HandrailError, Unavailable
from handrail.interfaces.mcp.http.answers import (
    CLOSE,
    Answer,
    Application,
    Message,
    Receive,
    Scope,
    Send,
    give,
    refusal,
)

END_S: Final = 1.0
"""How long an exchange that was told to end may take for it."""
GOING_DOWN: Final = refusal(503, Unavailable("this server is going down"), CLOSE)
BROKEN: Final = refusal(500, HandrailError("this request broke something here", hint="look into the log"), CLOSE)

log = logging.getLogger(__name__)


class Exchanges:
    """The open exchanges of one server."""

    def __init__(self) -> None:
        self.is_closing = False
        self._open: dict[asyncio.Timeout, bool] = {}
        """What ends an exchange, and whether it would never end by itself."""
        self._all_done = asyncio.Event()

    @property
    def count(self) -> int:
        """How many are under way."""
        return len(self._open)

    async def carry(self, application: Application, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer, until it has or is told to end."""
        way_out = _WayOut(send)
        if self.is_closing:
            await way_out.end(GOING_DOWN)
            return
        try:
            async with asyncio.timeout(None) as allowed:
                self._open[allowed] = is_endless(scope)
                try:
                    await application(scope, receive, way_out.send)
                finally:
                    del self._open[allowed]
                    if not self._open:
                        self._all_done.set()
        except Exception as error:  # an answer of ours or of the SDK: its break ends one exchange, not the server
            is_told = isinstance(error, TimeoutError) and allowed.expired()
            if not is_told:
                log.exception("a request broke: %s %s", scope["method"], scope["path"])
            await way_out.end(GOING_DOWN if is_told else BROKEN)

    async def close(self, *, within_s: float) -> None:
        """End streams at once, and calls after `within_s`; nothing new is begun."""
        self.is_closing = True
        self._end(one for one, is_stream in self._open.items() if is_stream)
        if not await self._done(within_s):
            self._end(self._open)
            await self._done(END_S)

    def _end(self, exchanges: Iterable[asyncio.Timeout]) -> None:
        now = asyncio.get_running_loop().time()
        for one in list(exchanges):
            one.reschedule(now)

    async def _done(self, within_s: float) -> bool:
        self._all_done.clear()
        if not self._open:
            return True
        try:
            await asyncio.wait_for(self._all_done.wait(), within_s)
        except TimeoutError:
            return False
        return True


def is_endless(scope: Scope) -> bool:
    """Whether this exchange is a stream of news, which ends when one of both sides goes."""
    return scope["method"] == "GET" or (b"mcp-method", b"subscriptions/listen") in scope["headers"]


class _WayOut:
    """Where an answer goes, and how far it has come."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._has_begun = self._is_whole = False

    async def send(self, message: Message) -> None:
        self._has_begun = True
        self._is_whole = message["type"] == "http.response.body" and not message.get("more_body", False)
        await self._send(message)

    async def end(self, answer: Answer) -> None:
        """Bring what was begun to an end; `answer` if nothing was."""
        if not self._has_begun:
            await give(answer, self._send)
        elif not self._is_whole:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
