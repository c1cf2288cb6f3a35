"""The writer of the PostgreSQL store: everything that queued while the last call was under way shares the next one.

One call at a time, on one connection, in the order in which it was asked. If the connection is lost, it is unknown
whether the call was done: the store itself is asked, by hash, and what was not done is done again."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, TypeAlias

from msgspec import Struct

from handrail.domain.errors import HandrailError, Unavailable
from handrail.domain.journal.chain import GENESIS
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.storage.admission import closed
from handrail.storage.postgres import queries
from handrail.storage.postgres.append import Batch, LaneAppend, StreamEnd, Streams
from handrail.storage.postgres.connections import Connection, Connections
from handrail.storage.postgres.faults import AGAIN, BELOW, is_lost, is_refused, store_error
from handrail.storage.postgres.texts import read, stored

APPENDS_AT_ONCE: Final = 500
BYTES_AT_ONCE: Final = 16_000_000
BYTES_QUEUED_MAX: Final = 128_000_000
TRIES_MAX: Final = 20

Answer: TypeAlias = HandrailError | None


class WriteTask(Struct, frozen=True):
    """A write that is not an append, in a transaction of its own."""

    write: Callable[[Connection, Streams], Awaitable[Any]]
    future: asyncio.Future[Any]


Job: TypeAlias = LaneAppend | WriteTask


class LaneWriter:
    """Owns the one connection that writes."""

    def __init__(self, connections: Connections, wrote: Callable[[], None], measures: Measures = NO_MEASURES) -> None:
        self._connections = connections
        self._measures = measures
        self._wrote = wrote
        self._streams = Streams()
        self._queue: list[tuple[Job, int]] = []
        self._queued_bytes = 0
        self._ready = asyncio.Event()
        self._is_closed = False
        self._connection: Connection | None = None
        self._work = asyncio.get_running_loop().create_task(self._go_on())

    def put(self, job: Job, size: int = 0) -> None:
        """Queue a job; its future is resolved when it is committed or refused."""
        if self._is_closed:
            raise closed(self._connections.name)
        if self._queued_bytes + size > BYTES_QUEUED_MAX:
            raise Unavailable("too much waits to be written", hint="PostgreSQL is slow or gone; try again later")
        self._queued_bytes += size
        self._queue.append((job, size))
        self._ready.set()

    async def close(self) -> None:
        """Write what is queued, then close the connection."""
        self._is_closed = True
        self._ready.set()
        await asyncio.wait({self._work})
        if self._connection is not None:
            with contextlib.suppress(*BELOW):
                await self._connection.close(timeout=1)

    async def _go_on(self) -> None:
        while self._queue or not self._is_closed:
            if not self._queue:
                self._ready.clear()
                await self._ready.wait()
            for is_task, group in groupby(self._take(), key=lambda job: isinstance(job, WriteTask)):
                jobs = list(group)
                await (self._do_all(jobs) if is_task else self._append_all(jobs))

    async def _append_all(self, jobs: Iterable[Job]) -> None:
        appends = [job for job in jobs if isinstance(job, LaneAppend)]
        started_s = time.perf_counter()
        answers = await self._answers(appends)
        self._measures.committed(len(appends), time.perf_counter() - started_s)
        _deliver(appends, answers)

    async def _do_all(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            if isinstance(job, WriteTask):
                await self._do(job)

    def _take(self) -> list[Job]:
        """The next jobs, as many as may share a call."""
        count = size = 0
        for _, bytes_ in self._queue[:APPENDS_AT_ONCE]:
            if count and size + bytes_ > BYTES_AT_ONCE:
                break
            count, size = count + 1, size + bytes_
        taken, self._queue = self._queue[:count], self._queue[count:]
        self._queued_bytes -= size
        return [job for job, _ in taken]

    async def _answers(self, appends: Sequence[LaneAppend]) -> Sequence[Answer]:
        """Write appends in one call; the answer to each caller."""
        try:
            return await self._written(appends)
        except Exception as error:  # even a bug here must not leave a caller waiting
            self._streams.forget()
            if is_refused(error) and len(appends) > 1:
                # Repeated alone: one of them can't be stored.
                return [answer for append in appends for answer in await self._answers([append])]
            return [store_error(error, self._connections.name) for _ in appends]

    async def _written(self, appends: Sequence[LaneAppend]) -> Sequence[Answer]:
        fresh: set[str] = set()
        done: set[int] = set()
        is_sure = True
        for _ in range(TRIES_MAX):
            try:
                connection = await self._connected()
                # The connection broke after the call was sent. Whether it was committed is not known: appending again
                # would be refused as a conflict, although it was our own append that came first.
                if not is_sure:
                    done |= await self._found(connection, appends)
                    is_sure = True
                batch = await self._judged(connection, _others(appends, done), fresh)
                if not batch.admitted or await self._sent(connection, batch, fresh):
                    return _merged(len(appends), done, batch.answers)
            except AGAIN:
                continue
            except BELOW as error:
                if not is_lost(error):
                    raise
                self._drop()
                is_sure = False
        return [Unavailable("too many others write, or connections are lost all the time") for _ in appends]

    async def _judged(self, connection: Connection, appends: Sequence[LaneAppend], fresh: set[str]) -> Batch:
        """Judge appends over what is known; who is refused by that is judged again over what the store says."""
        wanted = {append.stream for append in appends}
        await self._look_up(connection, wanted - self._streams.known.keys(), fresh)
        batch = _batch_of(appends, self._streams)
        refused = {one.stream for one, answer in zip(appends, batch.answers, strict=True) if answer is not None}
        # A refusal by what the store just said is final; one by memory may be wrong, because another node has written.
        if not refused - fresh:
            return batch
        await self._look_up(connection, refused - fresh, fresh)
        return _batch_of(appends, self._streams)

    async def _sent(self, connection: Connection, batch: Batch, fresh: set[str]) -> bool:
        """Whether a batch was written; if not, how its streams are is known now."""
        arguments = batch.arguments(self._streams.definitions)
        # The function compares every end and lease under its lock and writes all or nothing: one round trip, and no
        # transaction that waits for this process.
        differing = await _asked(connection, self._connections, queries.APPEND, *arguments)
        if not differing:
            for stream, end in batch.after.items():
                self._streams.put(stream, end)
            self._streams.definitions.update(name for one in batch.admitted for name, _ in one.change.definitions)
            self._streams.trim()
            # After the commit only: who is woken by it must find what it is woken for.
            self._wrote()
            return True
        self._correct(batch, {read(row[0]): row for row in differing})
        fresh |= batch.before.keys()
        return False

    def _correct(self, batch: Batch, found: Mapping[str, Any]) -> None:
        """Remember how the streams of a batch are, as the store says."""
        for stream in batch.before:
            end = StreamEnd()
            if stream in found and found[stream][1]:
                _, n, hash_, owner, epoch = found[stream]
                has_run = self._streams.known.get(stream, end).has_run
                end = StreamEnd(n, hash_, read(owner), epoch, has_run)
            self._streams.known[stream] = end

    async def _look_up(self, connection: Connection, streams: Iterable[str], fresh: set[str]) -> None:
        wanted = sorted(streams)
        if not wanted:
            return
        rows = await _asked(connection, self._connections, queries.ENDS, [stored(one) for one in wanted])
        for stream, n, hash_, owner, epoch, has_run in rows:
            self._streams.known[read(stream)] = StreamEnd(n, hash_ if n else GENESIS, read(owner), epoch, has_run)
        fresh.update(wanted)

    async def _found(self, connection: Connection, appends: Sequence[LaneAppend]) -> set[int]:
        """Which appends are in the store already, after a connection was lost in the middle of a call."""
        self._streams.forget()
        last = [append.records[-1] for append in appends]
        rows = await _asked(
            connection,
            self._connections,
            queries.KEPT,
            [stored(one.stream) for one in last],
            [one.n for one in last],
            [one.hash for one in last],
        )
        kept = {(read(stream), n) for stream, n in rows}
        return {index for index, one in enumerate(last) if (one.stream, one.n) in kept}

    async def _do(self, job: WriteTask) -> None:
        try:
            answer = await self._transacted(job.write)
        except Exception as error:  # even a bug here must not leave a caller waiting
            self._streams.forget()
            if not job.future.done():
                job.future.set_exception(store_error(error, self._connections.name))
        else:
            if not job.future.done():
                job.future.set_result(answer)

    async def _transacted(self, write: Callable[[Connection, Streams], Awaitable[Any]]) -> Any:
        # A serialization failure or a lost connection leaves nothing behind: a transaction may simply be repeated.
        for is_last in (False, False, True):
            connection = await self._connected()
            try:
                async with connection.transaction():
                    return await write(connection, self._streams)
            except BELOW as error:
                self._streams.forget()
                if is_lost(error):
                    self._drop()
                if is_last or not (is_lost(error) or isinstance(error, AGAIN)):
                    raise
        raise closed(self._connections.name)

    async def _connected(self) -> Connection:
        if self._connection is None or self._connection.is_closed():
            self._connection = await self._connections.connect()
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None


async def _asked(connection: Connection, connections: Connections, query: str, *values: Any) -> list[Any]:
    """The rows of a query, which is a transaction of its own."""
    # Behind a pooler each statement outside a transaction may reach another server process, without our settings.
    if not connections.is_pooled:
        return await connection.fetch(query, *values)
    async with connection.transaction():
        return await connection.fetch(query, *values)


def _batch_of(appends: Sequence[LaneAppend], streams: Streams) -> Batch:
    batch = Batch()
    for append in appends:
        batch.judge(append, streams.known[append.stream])
    return batch


def _others(appends: Sequence[LaneAppend], done: set[int]) -> list[LaneAppend]:
    return [append for index, append in enumerate(appends) if index not in done]


def _merged(count: int, done: set[int], answers: Sequence[Answer]) -> list[Answer]:
    rest = iter(answers)
    return [None if index in done else next(rest) for index in range(count)]


def _deliver(appends: Sequence[LaneAppend], answers: Sequence[Answer]) -> None:
    for append, answer in zip(appends, answers, strict=True):
        if append.future is None or append.future.done():  # cancelled and gone
            continue
        if answer is None:
            append.future.set_result(None)
        else:
            append.future.set_exception(answer)
