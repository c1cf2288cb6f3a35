"""The other owners of leases: since when each has been silent, and whether its process is gone.

Async, because looking at a process may wait for a file lock. No two clocks are compared: silence is measured here."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, Protocol

CHECK_S: Final = 0.5
"""How often a process is looked at, and how often a worker looks for runs, if nothing was written."""
GONE: Final = float("-inf")
"""`since_s` of an owner whose process is gone: longer ago than any lease lasts."""


class OwnerPresence(Protocol):
    """Knows whether the process of an owner is alive on this machine."""

    def is_alive(self, owner: str) -> bool:
        """False only if it is certain that the process is gone."""
        ...


@dataclass
class SeenOwner:
    """Since when another owner's heartbeat has not changed, and when its process was last checked."""

    beat: int
    since_s: float
    checked_s: float = float("-inf")


@dataclass
class Owners:
    """What this process has seen of the owners of leases."""

    presence: OwnerPresence
    lease_s: float
    _seen: dict[str, SeenOwner] = field(default_factory=dict)

    async def is_silent(self, owner: str, beat: int) -> bool:
        """Whether an owner has been silent for the length of a lease, or its process is gone."""
        now_s = asyncio.get_running_loop().time()
        seen = self._seen.get(owner)
        if seen is None or seen.beat != beat:
            # By this process's own clock, from when it saw the beat: clocks of two machines may differ by more than a
            # lease.
            seen = self._seen[owner] = SeenOwner(beat, now_s)
        if now_s - seen.checked_s >= CHECK_S:
            seen.checked_s = now_s
            # A process that is gone needs no waiting: its runs continue at once, instead of after a lease.
            if not await asyncio.to_thread(self.presence.is_alive, owner):
                seen.since_s = GONE
        return now_s - seen.since_s >= self.lease_s

    def gone(self) -> list[str]:
        """The owners whose processes are gone."""
        return [owner for owner, seen in self._seen.items() if seen.since_s == GONE]

    def forget(self, owner: str) -> None:
        """Forget an owner that was retired."""
        del self._seen[owner]
