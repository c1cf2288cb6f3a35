"""A stretch of work for a host: take the run, let the worker execute it until it rests, release it, say why.

Async. The worker (worker.py) executes; this only waits for it. That a host has placed a run here is not enough to
take it from another node: that one must have released it, be gone, or be silent for the length of a lease."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container
from typing import Final, Protocol

from handrail.domain.errors import Unavailable
from handrail.domain.run.status import RUN_UNENDED
from handrail.engine.running.host import Reason, Rest
from handrail.engine.running.lease import Lease, LeaseHolder, Leases
from handrail.engine.running.resting import Resting

LOOK_S: Final = 0.05
"""How often a run that another node holds is looked at."""


class Executor(Protocol):
    """What is needed of a worker."""

    is_closing: bool
    resting: Resting

    @property
    def conductors(self) -> Container[str]:
        """The runs that it executes."""
        ...

    def could(self, needs: str) -> bool:
        """Whether a run that needs this can go on here."""
        ...

    def room(self) -> int | None:
        """How many more runs it takes now; None: as many as come."""
        ...

    def working_on(self) -> Collection[str]:
        """The runs that take up its room."""
        ...

    async def take(self, run_id: str) -> bool:
        """Execute a run unless another worker does; whether this one does, or has done all there was to do."""
        ...


class Stretches:
    """Conducts runs that a host has placed on this node."""

    def __init__(self, worker: Executor, store: Leases, *, owner: str, project: str) -> None:
        self.worker = worker
        self.store = store
        self.owner = owner
        self.project = project
        self._taking: set[str] = set()
        """Runs that are being taken, for which there was room."""

    async def conduct(self, run_id: str) -> Rest:
        """Execute a run until it rests; it is released when this returns."""
        while True:
            rest = await self._conducted(run_id)
            if not may_go_on(rest):
                return rest
            held = await self._holder(run_id)
            if held is None:
                return Rest(run=run_id, why=Reason.ENDED, n=rest.n)
            # A process that wrote since may have found it held here, and relied on that.
            if held.owner or held.n == rest.n:
                return rest

    async def _conducted(self, run_id: str) -> Rest:
        rested = self.worker.resting.waiter(run_id)
        try:
            try:
                refused = await self._take(run_id)
            finally:
                self._taking.discard(run_id)
            if refused is not None:
                return refused
            if not rested.done() and run_id not in self.worker.conductors:
                await self._give_back(run_id)
                raise Unavailable(f"run {run_id} can't be executed here", hint="the log of this node says why")
            rest = await rested
            await self.worker.resting.release()
            return rest
        finally:
            self.worker.resting.dismiss(run_id, rested)

    async def _take(self, run_id: str) -> Rest | None:
        """Take the run; or say why not: it has ended, another node that has just shown its life has it, or must."""
        seen: LeaseHolder | None = None
        while True:
            if self.worker.is_closing or self._is_full(run_id):
                return Rest(run=run_id, why=Reason.HANDED_OVER)
            if await self.worker.take(run_id):
                return None
            holder = await self._holder(run_id)
            if holder is None:
                return Rest(run=run_id, why=Reason.ENDED)
            if not self.worker.could(holder.needs):
                return Rest(run=run_id, why=Reason.LABELS, n=holder.n)
            # Two looks with different beats: it is alive. That a host has placed the run here is no reason to take it
            # away.
            if seen is not None and seen.owner and seen.owner == holder.owner and seen.beat != holder.beat:
                return Rest(run=run_id, why=Reason.HELD, n=holder.n)
            if seen is None or seen.owner != holder.owner:
                seen = holder
            await asyncio.sleep(LOOK_S)

    def _is_full(self, run_id: str) -> bool:
        """Whether there is no room for this run: a host asks first, and places later."""
        room = self.worker.room()
        if run_id in self.worker.conductors or room is None:
            return False
        if room <= len(self._taking - {run_id, *self.worker.working_on()}):
            return True
        self._taking.add(run_id)
        return False

    async def _holder(self, run_id: str) -> LeaseHolder | None:
        return await self.store.lease_holder(run_id, project=self.project)

    async def _give_back(self, run_id: str) -> None:
        holder = await self._holder(run_id)
        if holder is not None and holder.owner == self.owner:
            await self.store.release([Lease(run_id, holder.owner, holder.epoch)])


def may_go_on(rest: Rest) -> bool:
    """Whether a rest may no longer be true when the run is released, because something has happened to it."""
    if rest.why is Reason.ENDED:
        return rest.status in RUN_UNENDED  # paused, or its undo failed
    return rest.why in (Reason.OTHERS, Reason.TIMER)
