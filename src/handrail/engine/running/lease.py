"""Leases: which worker executes a run, as a protocol. An older epoch is refused by the store itself.

A worker sends one heartbeat for all its leases. Another worker that sees no new heartbeat for the length of a lease,
by its own monotonic clock, may take over the runs: no two clocks are ever compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Protocol

from msgspec import Struct

NONE_RESTS: Final[Mapping[str, int]] = MappingProxyType({})
FOR_EVER: Final = 2**62
"""An instant after every timer."""


class Lease(Struct, frozen=True):
    """The right to execute a run; every new owner has a higher epoch than the one before."""

    run: str
    owner: str
    epoch: int = 1


class LeaseHolder(Struct, frozen=True):
    """A run that has work, and its owner as last seen; without an owner it is free."""

    run: str
    n: int
    """Its last event."""
    owner: str = ""
    epoch: int = 0
    beat: int = 0
    """The owner's heartbeat count."""
    needs: str = ""
    """What the node must have that goes on with it (domain/fleet/label.py); empty: any node does."""


class Leases(Protocol):
    """The leases of a store."""

    async def beat(self, owner: str) -> None:
        """Record a heartbeat of the owner."""
        ...

    async def lease_holders(
        self,
        *,
        after: str = "",
        limit: int = 1_000,
        project: str | None = None,
        is_awake: bool = False,
        now: int = FOR_EVER,
    ) -> list[LeaseHolder]:
        """The runs that handrail executes and that are stored as running or compensating, by id, with their owners;
        only those of the given project, if one is given. With `is_awake`, runs that were released as resting beyond
        `now`, and have not changed since, may be left out: there can be many of them."""
        ...

    async def lease_holder(self, run: str, *, project: str | None = None) -> LeaseHolder | None:
        """The same for one run; None if it has no work for handrail, or not in this project."""
        ...

    async def claim(self, owner: str, lease_holders: Sequence[LeaseHolder]) -> list[Lease]:
        """Take those runs whose lease has not changed since it was read, heartbeat included; returns those taken.

        All in one transaction, which also creates the claimer's own worker row."""
        ...

    async def release(
        self,
        leases: Sequence[Lease],
        *,
        resting: Mapping[str, int] = NONE_RESTS,
        until: Mapping[str, int] = NONE_RESTS,
    ) -> None:
        """Release these leases if they are still current; others are ignored. `resting` are runs that need no worker
        until something happens to them, each with its last event that was seen; those in `until` not beyond that
        instant."""
        ...

    async def hand_over(self, lease: Lease, *, n: int, needs: str) -> None:
        """Release a lease if it is still current, and say what the node must have that goes on with the run
        (domain/fleet/label.py): that is so as long as `n` is the last event of the run."""
        ...

    async def retire(self, owner: str) -> None:
        """Release all leases of an owner, and delete its worker row."""
        ...
