"""Runs that rest: released until something happens to them, or until a timer is due. And who waits for their rest.

Async. The worker (worker.py) says which runs rest; why they do is decided by their conductors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from handrail.domain.errors import HandrailError
from handrail.engine.passed_in import Clock
from handrail.engine.running.host import Reason, Rest
from handrail.engine.running.lease import Lease, LeaseHolder, Leases

TIMERS_MAX: Final = 10_000
"""For how many runs an alarm is set here; others whose timer is due are found by looking."""


@dataclass
class Resting:
    """What a worker has put down."""

    store: Leases
    clock: Clock
    want: Callable[[str], None] | None = None
    """Called when a timer is due; None if a host does that."""
    _released: list[tuple[Lease, Rest]] = field(default_factory=list)
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _task: asyncio.Task[None] | None = None
    _timers: dict[str, tuple[Rest, asyncio.TimerHandle | None]] = field(default_factory=dict)
    _waiters: dict[str, list[asyncio.Future[Rest]]] = field(default_factory=dict)

    # --- leases and timers ----------------------------------------------------------------------------

    def put_down(self, lease: Lease, rest: Rest) -> None:
        """Release a lease soon; with a timer, be the first to take the run again when it is due."""
        # Later and together: releasing hundreds of runs one by one would be hundreds of transactions.
        self._released.append((lease, rest))
        self.forget(rest.run)
        if rest.until is None:
            return
        handle = None
        if self.want is not None and len(self._timers) < TIMERS_MAX:
            delay_s = max(0.0, (rest.until - self.clock()) / 1_000) + 0.001
            handle = asyncio.get_running_loop().call_later(delay_s, self.want, rest.run)
        self._timers[rest.run] = rest, handle

    def forget(self, run_id: str) -> None:
        """The run does not rest any more."""
        _, handle = self._timers.pop(run_id, (None, None))
        if handle is not None:
            handle.cancel()

    def until(self, holder: LeaseHolder) -> int | None:
        """When the timer of a run is due that rests as of its last event; None if it has none, or none known here."""
        rest, _ = self._timers.get(holder.run, (None, None))
        return rest.until if rest is not None and rest.n == holder.n else None

    async def release(self) -> None:
        """Release what was put down; when this returns, also what another caller is just releasing."""
        # One stretch releases for all: it must not end in the middle because its host calls it off.
        self._task = asyncio.get_running_loop().create_task(self._release())
        await asyncio.shield(self._task)

    async def _release(self) -> None:
        async with self._turn:
            if not self._released:
                return
            released, self._released = self._released, []
            rests = [rest for _, rest in released if rest.why in (Reason.OTHERS, Reason.TIMER)]
            resting = {rest.run: rest.n for rest in rests}
            until = {rest.run: rest.until for rest in rests if rest.until is not None}
            try:
                await self.store.release([lease for lease, _ in released], resting=resting, until=until)
            except HandrailError:
                self._released = released + self._released  # the store ignores those that are not current any more
                raise

    def close(self) -> None:
        """Wait for no more timers."""
        for run_id in list(self._timers):
            self.forget(run_id)

    # --- who waits ------------------------------------------------------------------------------------

    def waiter(self, run_id: str) -> asyncio.Future[Rest]:
        """Done when a run that is executed here, or will be, rests; `dismiss` ends it."""
        waiter: asyncio.Future[Rest] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(run_id, []).append(waiter)
        return waiter

    def dismiss(self, run_id: str, waiter: asyncio.Future[Rest]) -> None:
        """Wait no longer."""
        waiters = self._waiters.get(run_id, [])
        if waiter in waiters:
            waiters.remove(waiter)
        if not waiters:
            self._waiters.pop(run_id, None)

    def notify(self, rest: Rest) -> None:
        """Tell those that wait for the rest of this run."""
        for waiter in self._waiters.pop(rest.run, ()):
            if not waiter.done():
                waiter.set_result(rest)

    def hand_over_all(self) -> None:
        """Tell all that wait: this node executes nothing more."""
        for run_id in list(self._waiters):
            self.notify(Rest(run=run_id, why=Reason.HANDED_OVER))
