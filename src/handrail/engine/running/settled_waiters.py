"""Callers that wait until a run has settled: it has ended, or only an agent or a person can move it.

Async. Whether a run is settled is decided by the worker (worker.py); it notifies those who wait here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from handrail.domain.run.state import Run


@dataclass
class SettledWaiters:
    """Who waits, by run."""

    _waiting: dict[str, list[asyncio.Future[Run]]] = field(default_factory=dict)

    async def next(self, run_id: str, *, within_s: float) -> Run | None:
        """Wait until a run is reported as settled; None if it is not within this time."""
        waiter: asyncio.Future[Run] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(run_id, []).append(waiter)
        try:
            await asyncio.wait({waiter}, timeout=within_s)
        finally:
            if not waiter.done():
                self._leave(run_id, waiter)
        return waiter.result() if waiter.done() else None

    def _leave(self, run_id: str, waiter: asyncio.Future[Run]) -> None:
        # A caller looks again every few seconds: a run that waits for days would collect one for each look.
        waiting = self._waiting[run_id]
        waiting.remove(waiter)
        if not waiting:
            del self._waiting[run_id]

    def notify(self, run: Run) -> None:
        """Wake those who wait for this run."""
        for waiter in self._waiting.pop(run.id, ()):
            if not waiter.done():
                waiter.set_result(run)
