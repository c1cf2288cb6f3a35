"""Calls whose results several callers share.

A call that has started may have read something that was changed since. So a later caller gets one of its own, unless
both belong to the same output: all that was done for it was done before the first of its checks asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Any, Final, Generic, TypeVar

FRESH_S: Final = 1.0
"""How long the checks of one output share an answer: they start together, but some wait for a place."""

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


class SharedLooks:
    """What the checks of one output look at in common: each question is asked once, as long as its answer is fresh."""

    def __init__(self) -> None:
        self._asked: dict[Hashable, tuple[float, asyncio.Future[Any]]] = {}

    async def once(self, question: Hashable, ask: Callable[[], Awaitable[Result]]) -> Result:
        """The answer to a question, which another check may be asking already."""
        now_s = asyncio.get_running_loop().time()
        asked_s, answer = self._asked.get(question, (0.0, None))
        if answer is None or now_s - asked_s > FRESH_S:
            answer = asyncio.ensure_future(ask())
            self._asked[question] = (now_s, answer)
            answer.add_done_callback(partial(self._ended, question))
        found: Result = await asyncio.shield(answer)  # another check may still want it when this one gives up
        return found

    def _ended(self, question: Hashable, answer: asyncio.Future[Any]) -> None:
        """Forget an error, which may be another one the next time; also one that every caller has given up on."""
        if answer.cancelled() or answer.exception() is not None:
            self._asked.pop(question, None)
