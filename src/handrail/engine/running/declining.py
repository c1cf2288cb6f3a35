"""Runs that a worker has claimed and can't go on with: it releases them, so that a node that can takes them.

Async. It may lack the key of their secret inputs, or be of an older version than their events. A worker that kept the
lease would be alive, so that no other node would ever take the run."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final

from handrail.domain.errors import HandrailError, IntegrityBroken, SealedForOthers, Unavailable
from handrail.domain.fleet.label import OPENS, needs_of
from handrail.engine.running.lease import Lease, Leases

AGAIN_S: Final = 15.0
"""How long a run is left alone after that: the node that can take it looks every half second."""

log = logging.getLogger(__name__)


@dataclass
class Declining:
    """What a worker could not go on with."""

    store: Leases
    _until_s: dict[str, float] = field(default_factory=dict)

    def has(self, run_id: str) -> bool:
        """Whether this worker could not go on with a run a moment ago."""
        return bool(self._until_s) and self._until_s.get(run_id, 0.0) > asyncio.get_running_loop().time()

    async def decline(self, lease: Lease, error: HandrailError, *, n: int) -> None:
        """Release a run that can't be taken over because of this error, as of its event `n`."""
        log.warning("run %s can't be taken over: %s", lease.run, error)
        if isinstance(error, Unavailable) and not isinstance(error, IntegrityBroken):
            return  # the store is away, as it is for every other node: the next look claims the run again
        now_s = asyncio.get_running_loop().time()
        self._until_s = {run: until_s for run, until_s in self._until_s.items() if until_s > now_s}
        self._until_s[lease.run] = now_s + AGAIN_S
        if isinstance(error, SealedForOthers):
            needs = needs_of([f"{OPENS}{key}"] for key in error.keys)
            await self.store.hand_over(lease, n=n, needs=needs)
        else:
            await self.store.release([lease])
