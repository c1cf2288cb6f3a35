"""The feed of runs: tells subscribers that a run, or the list of workflows, has changed, whoever changed it.

Async; looks only while somebody listens. What this process writes is heard at once, what others write by looking."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection
from typing import Final

from handrail.domain.errors import HandrailError
from handrail.domain.event import RUN_PREFIX
from handrail.engine.journal import FAR_BEHIND
from handrail.interfaces.mcp.surface.desk import Desk
from handrail.interfaces.mcp.surface.resources import RUNS
from handrail.interfaces.mcp.surface.shown import Change

LOOK_S: Final = 0.25
"""How often what others have written is looked for."""

Listener = Callable[[Change], None]

log = logging.getLogger(__name__)


class RunFeed:
    """Changes of what the surface shows."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._listeners: dict[object, Listener] = {}
        self._looking: asyncio.Task[None] | None = None
        self._poke = asyncio.Event()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell this listener of every change, until what is returned is called."""
        token = object()
        self._listeners[token] = listener
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look())

        def leave() -> None:
            self._listeners.pop(token, None)
            if not self._listeners and self._looking is not None:
                self._looking.cancel()
                self._looking = None  # whoever comes before it has ended gets a look of their own

        return leave

    def _tell(self, change: Change) -> None:
        for listener in list(self._listeners.values()):
            listener(change)

    async def _look(self) -> None:
        books = self.desk.books
        stamp, seen = books.fingerprint(), FAR_BEHIND
        while True:
            try:
                at_work = await self.desk.open()
                if self._hear not in at_work.handrail.dispatch.watchers:
                    at_work.handrail.dispatch.watchers.append(self._hear)
                last, heads = await at_work.handrail.look.store.heads(after=seen)
                seen = last
                self._told_of([head.stream for head in heads])
            except HandrailError as error:
                log.debug("changes can't be looked for: %s", error)
            if (now := books.fingerprint()) != stamp:
                stamp = now
                self._tell(Change(lists=("prompts", "resources")))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):  # wait_for can lose a cancellation
                    await self._poke.wait()
            self._poke.clear()

    def _hear(self, *_: object) -> None:
        self._poke.set()

    def _told_of(self, streams: Collection[str]) -> None:
        runs = [stream for stream in streams if stream.startswith(RUN_PREFIX)]
        for run in runs:
            for part in ("", "/journal", "/graph"):
                self._tell(Change(uri=f"{RUNS}/{run}{part}"))
        if runs:
            self._tell(Change(uri=RUNS))
