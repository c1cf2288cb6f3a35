"""The feed: reads new events of the store once, and keeps the latest for all readers.

Readers pull: each knows the mark of what it has, and takes what follows from here. So a slow reader costs nothing but
its connection, and none can miss or repeat an event: places are counted without gaps. The store is only looked at while
there are readers; writes of this process wake the feed at once, those of others are found by looking."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from bisect import bisect_left
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from msgspec import Struct

from handrail.assembly.opening import Assembly
from handrail.domain.errors import HandrailError, Limited
from handrail.domain.journal.event import PLAN_PREFIX, RUN_PREFIX, SERVER_PREFIX
from handrail.domain.journal.mark import START, Mark
from handrail.domain.project import plan_in, server_in
from handrail.engine.journal import Placed, mark_after
from handrail.engine.reading.ledger import event_view
from handrail.foundation.bounded_cache import BoundedCache
from handrail.interfaces.http.edge.clean_json import clean_json

KEPT_MAX: Final = 5_000
"""How many of the latest events are kept for readers; who is further behind reads the store itself."""
KEPT_BYTES_MAX: Final = 32 * 1_024 * 1_024
READERS_MAX: Final = 400
LOOK_S: Final = 0.1
"""How often writes of other processes are looked for."""
GATHER_S: Final = 0.03
GATHER_S_A_READER: Final = 0.0006
"""How long events are gathered before readers are woken again; longer with more readers, so that what they cost stays
about the same: waking 200 of them for each event would cost more than the engine's own work."""
BATCH: Final = 500
CATCHING_UP_MAX: Final = 4
"""How many readers that are far behind read the store at once."""
STREAMS_KNOWN: Final = 10_000

log = logging.getLogger(__name__)

OpenProgram = Callable[[], Awaitable[Assembly]]


class FeedFrame(Struct, frozen=True, gc=False):
    """An event, ready to be sent, and the mark of what this feed had with it."""

    mark: Mark
    place: tuple[int, int]
    stream: str
    project: str
    kind: str
    data: bytes
    body: int
    """Where in the data its id ends."""


class EventFeed:
    """The latest events, for all readers."""

    def __init__(self, open_program: OpenProgram) -> None:
        self._open_program = open_program
        self._frames: list[FeedFrame] = []
        self._bytes = 0
        self._last = self._base = START
        """The mark of what readers may have, and of what came before the oldest event that is kept."""
        self._dropped = 0
        self._readers = 0
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._deafen: Callable[[], None] = lambda: None
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
    def last(self) -> Mark:
        """The mark of all that is known here."""
        return self._last

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
                self._deafen()
                self._task.cancel()
                self._task = None

    async def close(self) -> None:
        """Stop looking at the store."""
        self._deafen()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    def is_kept(self, after: Mark) -> bool:
        """Whether everything behind this mark is kept here."""
        return after.covers(self._base)

    def turn_of(self, after: Mark) -> int:
        """The number of the first event kept here that a mark may not know: of the newest if it knows all."""
        # A mark from another feed may be ahead in one lane and behind in another: only if it covers all is it at the
        # end.
        if after.covers(self._last):
            return self._dropped + len(self._frames)
        return self._dropped + bisect_left(self._frames, 1, key=lambda frame: not after.covers(frame.mark))

    def kept_from(self, turn: int) -> list[FeedFrame] | None:
        """The events from a number of this feed on, at most a batch of them; None if they are not kept any more."""
        start = turn - self._dropped
        return self._frames[start : start + BATCH] if start >= 0 else None

    async def stored_after(self, after: Mark) -> list[FeedFrame]:
        """The next events behind a mark, read from the store, at most a batch of them."""
        async with self._catching_up:
            program = await self._open_program()
            async for batch in program.writer.reader.store.scan(after=after, size=BATCH):
                return await self._framed(program, after, batch)
        return []

    async def change(self, *, within_s: float) -> bool:
        """Wait until there are new events; False if there are none within this time."""
        if self._changed is None or self._changed.done():
            self._changed = asyncio.get_running_loop().create_future()
        # One future for all: setting it wakes every reader, and none of them can cancel it.
        waiting = self._changed
        done, _ = await asyncio.wait({waiting}, timeout=within_s)
        return bool(done)

    def follow(self, program: Assembly) -> None:
        """Notice the writes of one more project at once."""
        if self._on_write not in program.writer.dispatch.watchers:
            program.writer.dispatch.watchers.append(self._on_write)

    async def _start(self) -> None:
        program = await self._open_program()
        self.follow(program)
        # What happened without readers is not kept: who wants it reads the store.
        self._dropped += len(self._frames)
        self._frames, self._bytes = [], 0
        store = program.writer.reader.store
        # The end is read before listening starts; what is written in between is found by the first look.
        self._last = self._base = await store.end()
        self._deafen()
        self._deafen = store.listen(self._wake.set)
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
                    await asyncio.sleep(GATHER_S + GATHER_S_A_READER * self._readers)
            except HandrailError as error:
                log.debug("can't look for events: %s", error)

    async def _read_new(self) -> bool:
        program = await self._open_program()
        store = program.writer.reader.store
        if self._last.covers(await store.end()):
            return False
        async for batch in store.scan(after=self._last, size=BATCH):
            # After each batch, not at the end: a reader must not wait until a long import has been read.
            for frame in await self._framed(program, self._last, batch):
                self._keep(frame)
            self._notify()
        return True

    def _keep(self, frame: FeedFrame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.data)
        self._last = frame.mark
        if len(self._frames) > KEPT_MAX + BATCH or self._bytes > KEPT_BYTES_MAX:
            self._trim()

    def _trim(self) -> None:
        """Forget the oldest, many at once: each time costs as much as there are."""
        dropped = max(BATCH, len(self._frames) - KEPT_MAX)
        self._bytes -= sum(len(frame.data) for frame in self._frames[:dropped])
        self._base = self._frames[:dropped][-1].mark
        self._dropped += len(self._frames[:dropped])
        del self._frames[:dropped]

    def _notify(self) -> None:
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)

    def _on_write(self, *_: object) -> None:
        self._wake.set()

    async def _framed(self, program: Assembly, mark: Mark, batch: Sequence[Placed]) -> list[FeedFrame]:
        """A batch of events that follow a mark, ready to be sent."""
        frames = []
        for placed in batch:
            record = placed.record
            project = await self._project(program, record.stream)
            view = {**event_view(record), "seq": placed.seq, "project": project}
            mark = mark_after(mark, [placed])
            id_line = b"id: %b\n" % mark.text.encode()
            data = b"%bdata: %b\n\n" % (id_line, clean_json(view, program.writer.record_writer.secrets))
            place = (placed.lane, placed.number or placed.seq)
            frames.append(FeedFrame(mark, place, record.stream, project, record.kind, data, len(id_line)))
        return frames

    async def _project(self, program: Assembly, stream: str) -> str:
        known = self._projects.get(stream)
        if known is not None:
            return known
        if stream.startswith(PLAN_PREFIX):
            return plan_in(stream)[0]
        if stream.startswith(SERVER_PREFIX):
            return server_in(stream)[0]
        # Only what is found is kept: a run gets its row in the same transaction as its first event.
        row = await program.writer.reader.store.run(stream) if stream.startswith(RUN_PREFIX) else None
        return self._projects.put(stream, row.project) if row is not None else ""
