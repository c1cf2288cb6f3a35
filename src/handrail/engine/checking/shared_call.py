"""A call whose result several callers share, if they ask for it before it starts.

A call that has started may have read something that was changed since: a later caller gets one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SharedCall(Generic[Result]):
    """Makes one call for all who ask at the same time."""

    def __init__(self, call: Callable[[], Awaitable[Result]]) -> None:
        self._call = call
        self._coming: asyncio.Task[Result] | None = None

    async def __call__(self) -> Result:
        """The result of a call that starts after this was asked."""
        coming = self._coming
        if coming is None or coming.done() or coming.get_loop() is not asyncio.get_running_loop():
            coming = self._coming = asyncio.ensure_future(self._made())
        # Another caller may still want it when this one gives up.
        return await asyncio.shield(coming)

    async def _made(self) -> Result:
        await asyncio.sleep(0)  # callers that ask in the same moment join
        self._coming = None
        return await self._call()
