"""The store as one process sees it: one queue of writes, and everything that can go wrong with a disk.

Wraps the memory store, which all processes share. A write is refused, or done and its answer lost, or slow; a read
fails. The witness sees what was really written, when it was."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol

from handrail.domain.errors import HandrailError, Limited, Unavailable
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.mark import START, Mark
from handrail.domain.journal.projection import Change
from handrail.engine.fleet.node_table import NodeTable
from handrail.engine.running.lease import FOR_EVER, NONE_RESTS, Lease, LeaseHolder
from handrail.storage.memory import MemoryStore
from simulation.lanes import Lanes
from simulation.loop import Process

REFUSED: Final = 0.02
LOST: Final = 0.02


class Clerk(Protocol):
    """Who sees what is really written."""

    def appended(self, process: Process, records: Sequence[Record], change: Change, lease: Lease | None) -> None:
        """An append is in the store."""
        ...

    def refused(self, records: Sequence[Record]) -> None:
        """An append was refused, and must never appear."""
        ...

    def unanswered(self, records: Sequence[Record]) -> None:
        """An append was done, and its caller is told that nobody knows."""
        ...

    def beaten(self, owner: str) -> None:
        """An owner has said that it is at work."""
        ...

    def claimed(self, process: Process, before: Sequence[Lease], leases: Sequence[Lease]) -> None:
        """Leases were taken; how they were held before."""
        ...

    def released(self, leases: Sequence[Lease]) -> None:
        """Leases were given back, if they were still held so."""
        ...


@dataclass
class Weather:
    """How well the disk does at the moment; one for all processes."""

    random: Random
    is_calm: bool = False
    is_full: bool = False

    def refusal(self) -> HandrailError | None:
        """Why a write is not done."""
        if self.is_calm:
            return None
        if self.is_full:
            return Limited("the disk is full")
        return Unavailable("the disk is busy") if self.random.random() < REFUSED else None

    def loses_answer(self) -> bool:
        """Whether a write that was done is told as if it were not."""
        return not self.is_calm and self.random.random() < LOST

    def delay_s(self) -> float:
        """How long something takes."""
        if self.is_calm or self.random.random() < 0.85:
            return 0.0
        return self.random.choice((0.002, 0.01, 0.06, 0.5))


@dataclass
class Job:
    """A write in the queue."""

    do: Callable[[], Awaitable[Any]]
    future: asyncio.Future[Any]
    records: Sequence[Record] = ()


class Disk:
    """The memory store, behind a queue and in all weathers."""

    def __init__(
        self, store: MemoryStore, process: Process, weather: Weather, clerk: Clerk, lanes: Lanes | None = None
    ) -> None:
        self._store = store
        self._lanes = lanes
        self._process = process
        self._weather = weather
        self._clerk = clerk
        self._queue: deque[Job] = deque()
        self._is_draining = False
        self._writer: asyncio.Task[None] | None = None

    async def append(self, records: Sequence[Record], change: Change, *, lease: Lease | None = None) -> None:
        """Append, if all goes well."""

        def appended() -> None:
            self._clerk.appended(self._process, records, change, lease)

        async def do() -> None:
            if self._lanes is not None:
                await self._lanes.append(records, change, lease, appended)
                return
            await self._store.append(records, change, lease=lease)
            appended()

        await self._write(do, records)

    async def read(self, stream: str, *, after: int = 0, limit: int = 100_000) -> list[Record]:
        """The records of a stream."""
        await self._reading()
        return await self._store.read(stream, after=after, limit=limit)

    async def definition(self, content_hash: str) -> bytes | None:
        """A pinned text."""
        await self._reading()
        return await self._store.definition(content_hash)

    async def end(self) -> Mark:
        """How far the store is."""
        await self._reading()
        return await self._store.end() if self._lanes is None else self._lanes.end()

    def listen(self, heard: Callable[[], None]) -> Callable[[], None]:
        """Others are found by looking."""
        return self._store.listen(heard)

    async def heads(self, *, after: Mark = START) -> tuple[Mark, list[Head]]:
        """What has changed."""
        await self._reading()
        return await (self._store.heads(after=after) if self._lanes is None else self._lanes.heads(after))

    async def lease_holders(
        self,
        *,
        after: str = "",
        limit: int = 1_000,
        project: str | None = None,
        is_awake: bool = False,
        now: int = FOR_EVER,
    ) -> list[LeaseHolder]:
        """Who executes what."""
        await self._reading()
        return await self._store.lease_holders(after=after, limit=limit, project=project, is_awake=is_awake)

    async def lease_holder(self, run: str, *, project: str | None = None) -> LeaseHolder | None:
        """The same for one run."""
        await self._reading()
        return await self._store.lease_holder(run, project=project)

    async def beat(self, owner: str) -> None:
        """Say that an owner is at work."""

        async def do() -> None:
            await self._store.beat(owner)
            self._clerk.beaten(owner)

        await self._write(do)

    async def claim(self, owner: str, lease_holders: Sequence[LeaseHolder]) -> list[Lease]:
        """Take leases."""

        async def do() -> list[Lease]:
            before = [self._store._leases.get(seen.run, Lease(seen.run, "", 0)) for seen in lease_holders]
            leases = await self._store.claim(owner, lease_holders)
            self._clerk.claimed(self._process, before, leases)
            return leases

        leases: list[Lease] = await self._write(do)
        return leases

    async def release(
        self,
        leases: Sequence[Lease],
        *,
        resting: Mapping[str, int] = NONE_RESTS,
        until: Mapping[str, int] = NONE_RESTS,
    ) -> None:
        """Give leases back."""

        async def do() -> None:
            await self._store.release(leases, resting=resting, until=until)
            self._clerk.released(leases)

        await self._write(do)

    async def hand_over(self, lease: Lease, *, n: int, needs: str) -> None:
        """Give a lease back, for a node that has something."""

        async def do() -> None:
            await self._store.hand_over(lease, n=n, needs=needs)
            self._clerk.released([lease])

        await self._write(do)

    def nodes(self) -> NodeTable:
        """Who works on this store."""
        return self._store.nodes()

    async def retire(self, owner: str) -> None:
        """Give all leases of an owner back."""

        async def do() -> None:
            held = [lease for lease in self._store._leases.values() if lease.owner == owner]
            await self._store.retire(owner)
            self._clerk.released(held)

        await self._write(do)

    # --- how ----------------------------------------------------------------------------------------

    async def _reading(self) -> None:
        await self._process.port()
        if delay_s := self._weather.delay_s():
            await asyncio.sleep(delay_s)
        if not self._weather.is_calm and self._weather.random.random() < REFUSED / 2:
            raise Unavailable("the disk can't be read now")

    async def _write(self, do: Callable[[], Awaitable[Any]], records: Sequence[Record] = ()) -> Any:
        await self._process.port()
        loop = asyncio.get_running_loop()
        job = Job(do, loop.create_future(), records)
        self._queue.append(job)
        if not self._is_draining:
            self._is_draining = True
            self._writer = loop.create_task(self._drain())
        return await job.future

    async def _drain(self) -> None:
        while self._queue:
            job = self._queue.popleft()
            await asyncio.sleep(self._weather.delay_s())
            answer = await self._done(job)
            await self._process.port()  # a crash here: it is written, and nobody is told
            if job.future.done():
                continue
            if isinstance(answer, HandrailError):
                job.future.set_exception(answer)
            elif self._weather.loses_answer():
                self._clerk.unanswered(job.records)
                job.future.set_exception(Unavailable("the disk did not answer"))
            else:
                job.future.set_result(answer)
        self._is_draining = False

    async def _done(self, job: Job) -> Any:
        if refusal := self._weather.refusal():
            self._clerk.refused(job.records)
            return refusal
        try:
            return await job.do()
        except HandrailError as error:
            self._clerk.refused(job.records)
            return error
