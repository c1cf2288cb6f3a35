"""The desk: the program at work, as the handlers reach for it.

It opens in the background, so that a server can tell its tools at once; what can't be opened is told by every call,
with the way out, and tried again."""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Final

from handrail.assembly import Working, bookcase_of, working
from handrail.domain.errors import HandrailError, Unavailable
from handrail.settings import Settings

PATIENCE_S: Final = 1.0
"""How long a failed opening is told again before the next try."""

log = logging.getLogger(__name__)


class Desk:
    """Opens the program once, for everybody."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.books = bookcase_of(settings)
        self.offered: frozenset[str] = frozenset()
        """The tools that callers have: no other is named to them."""
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()
        self._open: Working | None = None
        self._failure: HandrailError | None = None
        self._failed_s = float("-inf")
        self._is_closed = False

    async def open(self) -> Working:
        """The program at work; the error that keeps it from being opened."""
        if self._open is not None:
            return self._open
        async with self._lock:
            if self._is_closed:
                raise Unavailable("handrail is shutting down", hint="repeat the call when it is up again")
            if self._open is None:
                await self._try()
            if self._open is None:
                raise self._failure or Unavailable("handrail can't be opened")
            return self._open

    async def close(self) -> None:
        """Begin nothing more, and give back what is held."""
        async with self._lock:
            self._is_closed = True
            self._open = None
            await self._stack.aclose()

    async def _try(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s - self._failed_s < PATIENCE_S:
            return
        try:
            self._open = await self._stack.enter_async_context(working(self.settings))
        except HandrailError as error:
            self._failure, self._failed_s = self._placed(error), now_s
            log.warning("%s; %s", error, error.hint)
        except OSError as error:
            self._failure = Unavailable(
                f"{self.settings.home} can't be used: {error.strerror or error}",
                hint="make it writable, or name another folder with --home or HANDRAIL_HOME",
            )
            self._failed_s = now_s
            log.warning("%s; %s", self._failure, self._failure.hint)

    def _placed(self, error: HandrailError) -> HandrailError:
        """The error; with the folder that it is about, if it does not say what to do about that."""
        if type(error) is not Unavailable or "HANDRAIL_HOME" in error.hint:
            return error
        hint = f"{error.hint}, or name another folder with --home or HANDRAIL_HOME"
        return Unavailable(f"{self.settings.home} can't be used: {error}", hint=hint)
