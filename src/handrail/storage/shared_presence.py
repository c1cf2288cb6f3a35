"""Presence in a store that several machines share: a file lock tells only about processes of this machine.

Processes of this home begin with the same name; of all others it is unknown whether they live, so that only their
heartbeat counts (docs/decisions/0004)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class LocalPresence(Protocol):
    """The presence of this process among those of its machine."""

    def is_alive(self, owner: str) -> bool:
        """Whether the process of an owner is alive."""
        ...


@dataclass(frozen=True)
class SharedPresence:
    """Whether an owner is gone, as far as this machine can tell."""

    local: LocalPresence
    prefix: str

    def is_alive(self, owner: str) -> bool:
        """False only if the owner is known to be gone."""
        # A process of another machine can't be seen from here. It counts as alive until its beat has been silent for
        # the length of a lease.
        return not owner.startswith(self.prefix) or self.local.is_alive(owner)
