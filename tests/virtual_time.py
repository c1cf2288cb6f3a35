"""An event loop without waiting: its time jumps to the next timer. Threads' work is done on the spot."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


ROUNDS_MAX = 100


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only when there is nothing else to do."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 1_000.0

    def time(self) -> float:
        return self.now_s

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0].cancelled():  # behind it, the loop would really wait for the next one
            heapq.heappop(scheduled)._scheduled = False
            self._timer_cancelled_count -= 1  # type: ignore[attr-defined]
        if not ready and scheduled:
            self.now_s = max(self.now_s, scheduled[0].when())
        super()._run_once()  # type: ignore[misc]


def in_virtual_time(scene: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    """Play a scene to its end, in no time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(asyncio.wait_for(scene(), 1_000_000))
    finally:
        for _ in range(ROUNDS_MAX):  # a task that ends may start another one: a conductor wakes when its call ends
            left = asyncio.all_tasks(loop)
            if not left:
                break
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left))
        loop.close()
