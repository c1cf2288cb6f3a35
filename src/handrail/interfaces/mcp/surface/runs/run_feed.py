"""The feed of changes: notifies subscribers when a run or the list of workflows changes, in any process.

Changes of this process are noticed at once; those of other processes by polling, only while there are subscribers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from typing import Final

from handrail.domain.errors import HandrailError
from handrail.domain.journal.event import RUN_PREFIX
from handrail.domain.journal.mark import Mark
from handrail.interfaces.mcp.surface.lazy_program import LazyProgram
from handrail.interfaces.mcp.surface.resources import RUNS
from handrail.interfaces.mcp.surface.surface_protocol import SurfaceChange

POLL_S: Final = 0.25
"""How often changes of other processes are looked for."""

Listener = Callable[[SurfaceChange], None]

log = logging.getLogger(__name__)


class RunFeed:
    """Changes of what the surface offers."""

    def __init__(self, lazy: LazyProgram) -> None:
        self.lazy = lazy
        self._listeners: dict[object, Listener] = {}
        self._polling: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener on every change; the returned function unsubscribes."""
        token = object()
        self._listeners[token] = listener
        if self._polling is None or self._polling.done():
            self._polling = asyncio.get_running_loop().create_task(self._poll())

        def unsubscribe() -> None:
            self._listeners.pop(token, None)
            if not self._listeners and self._polling is not None:
                self._polling.cancel()
                self._polling = None  # a subscriber that comes before the task has ended needs a new one

        return unsubscribe

    def _notify(self, change: SurfaceChange) -> None:
        for listener in list(self._listeners.values()):
            listener(change)

    async def _poll(self) -> None:
        library = self.lazy.library
        stamp = library.fingerprint()
        seen: Mark | None = None
        while True:
            try:
                program = await self.lazy.open()
                # In the loop, because the program may not be open yet.
                if self._on_write not in program.writer.dispatch.watchers:
                    program.writer.dispatch.watchers.append(self._on_write)
                store = program.writer.reader.store
                if seen is None or not seen.lanes:  # of an empty mark everything would be news
                    seen = await store.end()
                else:
                    seen, heads = await store.heads(after=seen)
                    self._notify_runs([head.stream for head in heads])
            except HandrailError as error:
                log.debug("can't look for changes: %s", error)  # tried again at the next poll
            if (now := library.fingerprint()) != stamp:
                stamp = now
                self._notify(SurfaceChange(lists=("prompts", "resources")))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):  # wait_for can lose a cancellation
                    await self._wake.wait()
            self._wake.clear()

    def _on_write(self, *_: object) -> None:
        self._wake.set()

    def _notify_runs(self, streams: Collection[str]) -> None:
        runs = [stream for stream in streams if stream.startswith(RUN_PREFIX)]
        for run in runs:
            for part in ("", "/journal", "/graph"):
                self._notify(SurfaceChange(uri=f"{RUNS}/{run}{part}"))
        if runs:
            self._notify(SurfaceChange(uri=RUNS))
