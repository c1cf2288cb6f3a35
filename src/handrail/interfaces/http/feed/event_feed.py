"""The feed: reads new events of the store once, and keeps the latest for all readers.

Readers pull: each knows the place of its last event, and takes what follows from here. So a slow reader costs nothing
but its connection, and none can miss or repeat an event: places are counted without gaps. The store is only looked at
while there are readers; writes of this process wake the feed at once, those of others are found by looking."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

import msgspec
from msgspec import Struct

from handrail.assembly.opening import Assembly
from handrail.domain.errors import HandrailError, Limited
from handrail.domain.journal.event import PLAN_PREFIX, RUN_PREFIX, SERVER_PREFIX
from handrail.domain.project import plan_in, server_in
from handrail.engine.journal import FAR_BEHIND, Placed
from handrail.engine.reading.ledger import event_view
from handrail.foundation.bounded_cache import BoundedCache

KEPT_MAX: Final = 5_000
"""How many of the latest events are kept for readers; who is further behind reads the store itself."""
KEPT_BYTES_MAX: Final = 32 * 1_024 * 1_024
READERS_MAX: Final = 400
LOOK_S: Final = 0.1
"""How often writes of other processes are looked for."""
GATHER_S: Final = 0.03
"""How long events are gathered before readers are woken: waking 200 of them for each event would cost the engine."""
BATCH: Final = 500
CATCHING_UP_MAX: Final = 4
"""How many readers that are far behind read the store at once."""
STREAMS_KNOWN: Final = 10_000

log = logging.getLogger(__name__)

OpenProgram = Callable[[], Awaitable[Assembly]]


class FeedFrame(Struct, frozen=True, gc=False):
    """An event, ready to be sent."""

    seq: int
    stream: str
    project: str
    kind: str
    data: bytes


class EventFeed:
    """The latest events, for all readers."""

    def __init__(self, open_program: OpenProgram) -> None:
        self._open_program = open_program
        self._frames: list[FeedFrame] = []
        self._bytes = 0
        self._last = 0
        """The place of the newest event that readers may have."""
        self._readers = 0
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._changed: asyncio.Future[None] | None = None
        self._projects: BoundedCache[str, str] = BoundedCache(STREAMS_KNOWN)
        self._starting = asyncio.Lock()
        self._catching_up = asyncio.Semaphore(CATCHING_UP_MAX)

    @property
    def readers(self) -> int:
        """How many receive the feed."""
        return self._readers

    @property
    def is_full(self) -> bool:
        """Whether no more readers are let in."""
        return self._readers >= READERS_MAX

    @property
    def last(self) -> int:
        """The place of the newest event that is known here."""
        return self._last

    @property
    def _first(self) -> int:
        """The place of the oldest event that is kept."""
        return self._last - len(self._frames) + 1

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Be a reader; the feed looks at the store as long as there is one."""
        if self.is_full:
            raise Limited("too many readers receive the live feed", hint="close other windows, then try again")
        self._readers += 1
        try:
            async with self._starting:  # the second of two first readers must not start before the first has
                if self._task is None or self._task.done():
                    await self._start()
            yield
        finally:
            self._readers -= 1
            if not self._readers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def close(self) -> None:
        """Stop looking at the store."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def is_kept(self, after: int) -> bool:
        """Whether everything after this place is kept here."""
        return after >= self._first - 1

    def kept_after(self, after: int) -> list[FeedFrame]:
        """The events after a place, which must be kept here, at most a batch of them."""
        start = max(0, after - self._first + 1)
        return self._frames[start : start + BATCH]

    async def stored_after(self, after: int) -> list[FeedFrame]:
        """The next events after a place, read from the store, at most a batch of them."""
        async with self._catching_up:
            program = await self._open_program()
            async for batch in program.writer.reader.store.scan(after=after, size=BATCH):
                return [await self._frame(program, placed) for placed in batch]
        return []

    async def change(self, *, within_s: float) -> bool:
        """Wait until there are new events; False if there are none within this time."""
        if self._changed is None or self._changed.done():
            self._changed = asyncio.get_running_loop().create_future()
        waiting = self._changed
        done, _ = await asyncio.wait({waiting}, timeout=within_s)
        return bool(done)

    async def _start(self) -> None:
        program = await self._open_program()
        if self._on_write not in program.writer.dispatch.watchers:
            program.writer.dispatch.watchers.append(self._on_write)
        # What happened without readers is not kept: who wants it reads the store.
        self._frames, self._bytes = [], 0
        self._last, _ = await program.writer.reader.store.heads(after=FAR_BEHIND)
        self._task = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        """Look for new events until there are no readers; a store that can't be read is looked at again."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):  # wait_for can lose a cancellation
                    await self._wake.wait()
            self._wake.clear()
            try:
                if await self._read_new():
                    await asyncio.sleep(GATHER_S)
            except HandrailError as error:
                log.debug("can't look for events: %s", error)

    async def _read_new(self) -> bool:
        program = await self._open_program()
        store = program.writer.reader.store
        end, _ = await store.heads(after=FAR_BEHIND)
        if end <= self._last:
            return False
        async for batch in store.scan(after=self._last, size=BATCH):
            for placed in batch:
                self._keep(await self._frame(program, placed))
            self._notify()
        return True

    def _keep(self, frame: FeedFrame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.data)
        self._last = frame.seq
        if len(self._frames) > KEPT_MAX + BATCH or self._bytes > KEPT_BYTES_MAX:
            self._trim()

    def _trim(self) -> None:
        """Forget the oldest, many at once: each time costs as much as there are."""
        dropped = max(BATCH, len(self._frames) - KEPT_MAX)
        self._bytes -= sum(len(frame.data) for frame in self._frames[:dropped])
        del self._frames[:dropped]

    def _notify(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def _on_write(self, *_: object) -> None:
        self._wake.set()

    async def _frame(self, program: Assembly, placed: Placed) -> FeedFrame:
        record = placed.record
        project = await self._project(program, record.stream)
        view = {**event_view(record), "seq": placed.seq, "project": project}
        data = b"id: %d\ndata: %b\n\n" % (placed.seq, msgspec.json.encode(view))
        return FeedFrame(placed.seq, record.stream, project, record.kind, data)

    async def _project(self, program: Assembly, stream: str) -> str:
        known = self._projects.get(stream)
        if known is not None:
            return known
        if stream.startswith(PLAN_PREFIX):
            return plan_in(stream)[0]
        if stream.startswith(SERVER_PREFIX):
            return server_in(stream)[0]
        row = await program.writer.reader.store.run(stream) if stream.startswith(RUN_PREFIX) else None
        return self._projects.put(stream, row.project) if row is not None else ""
