"""Claiming: takes the leases of runs, and starts to execute what was taken. A claim that was sent is carried through.

Async. A host may call its stretch off at any moment, and a request may end. Without a conductor,
the run would be held by a node that is alive and does nothing, and no other node takes it from that one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Container, Mapping, Sequence
from typing import Final, TypeAlias

from handrail.domain.errors import HandrailError
from handrail.engine.running.declining import Declining
from handrail.engine.running.lease import Lease, LeaseHolder, Leases

CLOSE_S: Final = 5.0
"""How long a worker that ends waits for the answers to its claims."""

Adopt: TypeAlias = Callable[[Lease], Awaitable[None]]
"""Start to execute a run that was just taken."""


class Claims:
    """Takes runs for one worker."""

    def __init__(self, store: Leases, owner: str, adopt: Adopt, executed: Container[str]) -> None:
        self.store = store
        self.owner = owner
        self.declining = Declining(store)
        self._adopt = adopt
        self._executed = executed
        self._taking: set[str] = set()
        self._tasks: set[asyncio.Task[set[str]]] = set()

    @property
    def under_way(self) -> Collection[str]:
        """The runs that are being taken right now."""
        return self._taking

    async def take(self, lease_holders: Sequence[LeaseHolder]) -> set[str]:
        """Take runs and start to execute them; returns those that could be taken."""
        task = asyncio.get_running_loop().create_task(self._take(lease_holders))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def give_back(self, lease_holders: Sequence[LeaseHolder]) -> None:
        """Release runs that this worker holds and may not execute now."""
        held = [one for one in lease_holders if one.owner == self.owner and one.run not in self._taking]
        if held:
            await self.store.release([Lease(one.run, one.owner, one.epoch) for one in held])

    async def close(self) -> None:
        """Wait for the answers to all claims that were sent: what they took must be released with the rest."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_S)
        for task in self._tasks:
            task.cancel()

    async def _take(self, lease_holders: Sequence[LeaseHolder]) -> set[str]:
        # While a run is being taken, it looks like our own run without a conductor: it must not be taken twice.
        fresh = [one for one in lease_holders if one.run not in self._taking and one.run not in self._executed]
        if not fresh:
            return set()
        runs = {one.run for one in fresh}
        self._taking |= runs
        try:
            leases = await self.store.claim(self.owner, fresh)
            await self._adopt_all(leases, {one.run: one.n for one in fresh})
        finally:
            self._taking -= runs
        return {lease.run for lease in leases}

    async def _adopt_all(self, leases: Sequence[Lease], seen: Mapping[str, int]) -> None:
        answers = await asyncio.gather(*map(self._adopt, leases), return_exceptions=True)
        for lease, answer in zip(leases, answers, strict=True):
            if isinstance(answer, HandrailError):
                await self.declining.decline(lease, answer, n=seen[lease.run])
            elif isinstance(answer, BaseException):
                raise answer
