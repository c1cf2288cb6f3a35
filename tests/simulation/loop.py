"""A loop whose time is virtual, and processes in it that can be killed or stopped between any two callbacks.

Single-threaded, no I/O: when nothing is ready, time jumps to the next timer. Which process a callback belongs to, its
context tells; those of a dead one are dropped, just as a kill would, those of a stopped one wait until it goes on."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import warnings
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop
from typing import Any, Final, TypeVar

T = TypeVar("T")

CALLBACKS_MAX: Final = 600_000
"""How many callbacks one seed may take; more mean that something turns without end."""


class Stuck(Exception):
    """The loop turns without end, or nothing will ever happen again."""


class Process:
    """One process of the simulated machine: alive, stopped or dead."""

    def __init__(self, name: str, loop: VirtualLoop) -> None:
        self.name = name
        self.is_dead = False
        self.is_stopped = False
        self.crash_at: int | None = None
        self.on_crash: Callable[[Process], None] = _unheard
        self.calls = 0
        self.tasks: list[asyncio.Task[Any]] = []
        self.parked: list[asyncio.Handle] = []
        self._loop = loop
        self._context = contextvars.copy_context()
        self._context.run(PROCESS.set, self)

    def do(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin some work inside the process."""
        return self._loop.create_task(work, context=self._context)

    def kill(self) -> None:
        """End it at once: none of its code runs any more, not even to clean up."""
        self.is_dead = True
        self.parked.clear()

    def stop(self) -> None:
        """Let none of its code run for now."""
        self.is_stopped = True

    def go_on(self) -> None:
        """Let it run again, beginning with all that has come up meanwhile."""
        self.is_stopped = False
        if not self.is_dead:
            self._loop.take_up(self.parked)
        self.parked = []

    async def port(self) -> None:
        """A call of a port: the place where a crash is planned by number."""
        self.calls += 1
        if self.calls == self.crash_at and not self.is_dead:
            self.on_crash(self)
            self.kill()
        if self.is_dead:
            await self._loop.create_future()


def _unheard(_process: Process) -> None:
    """Nobody is told of the crash."""


PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("process", default=None)


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop in virtual time."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        self._now = 0.0
        self._run_so_far = 0
        self.broken: list[str] = []
        self.loose: list[asyncio.Task[Any]] = []
        self.set_task_factory(self._made)  # type: ignore[arg-type]
        self.set_exception_handler(self._note)

    def time(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now

    def take_up(self, handles: list[asyncio.Handle]) -> None:
        """Let callbacks run that had to wait."""
        self._ready.extend(handles)

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> asyncio.Future[T]:  # type: ignore[override]
        """Run it here and now: there are no threads."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _made(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], context: contextvars.Context | None = None
    ) -> asyncio.Task[T]:
        task = asyncio.Task(work, loop=loop, context=context)
        process = context.get(PROCESS) if context is not None else PROCESS.get()
        (self.loose if process is None else process.tasks).append(task)
        return task

    def _note(self, _loop: asyncio.AbstractEventLoop, what: dict[str, Any]) -> None:
        error = what.get("exception")
        self.broken.append(f"{what.get('message')}: {error!r}")

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody waits outside."""

    def _run_once(self) -> None:
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0].cancelled():
            heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        if not ready and not self._stopping:
            if not scheduled:
                raise Stuck("nothing will ever happen again")
            self._now = max(self._now, scheduled[0].when())
        while scheduled and scheduled[0].when() <= self._now:
            timer = heappop(scheduled)
            timer._scheduled = False  # type: ignore[attr-defined]
            ready.append(timer)
        self._run_so_far += len(ready)
        if self._run_so_far > CALLBACKS_MAX:
            raise Stuck(f"more than {CALLBACKS_MAX} callbacks")
        for _ in range(len(ready)):
            self._run_one(ready.popleft())

    def _run_one(self, handle: asyncio.Handle) -> None:
        if handle.cancelled():
            return
        process = handle._context.get(PROCESS)  # type: ignore[attr-defined]
        if process is not None and process.is_dead:
            return
        if process is not None and process.is_stopped:
            process.parked.append(handle)
            return
        handle._run()


def bury(loop: VirtualLoop, processes: list[Process]) -> None:
    """Close what dead processes left half-done, so that it does not wake up when memory is cleared."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of work that was never begun
        for task in [*(task for process in processes for task in process.tasks), *loop.loose]:
            if not task.done():
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with contextlib.suppress(BaseException):
                    work: Any = task.get_coro()
                    work.close()
        loop.close()
