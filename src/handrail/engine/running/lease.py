"""Leases: which worker executes a run, as a protocol. An older epoch is refused by the store itself.

A worker sends one heartbeat for all its leases. Another worker that sees no new heartbeat for the length of a lease,
by its own monotonic clock, may take over the runs: no two clocks are ever compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


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


class Leases(Protocol):
    """The leases of a store."""

    async def beat(self, owner: str) -> None:
        """Record a heartbeat of the owner."""
        ...

    async def lease_holders(
        self, *, after: str = "", limit: int = 1_000, project: str | None = None
    ) -> list[LeaseHolder]:
        """The runs that handrail executes and that are stored as running or compensating, by id, with their owners;
        only those of the given project, if one is given."""
        ...

    async def lease_holder(self, run: str, *, project: str | None = None) -> LeaseHolder | None:
        """The same for one run; None if it has no work for handrail, or not in this project."""
        ...

    async def claim(self, owner: str, lease_holders: Sequence[LeaseHolder]) -> list[Lease]:
        """Take those runs whose lease has not changed since it was read, heartbeat included; returns those taken.

        All in one transaction, which also creates the claimer's own worker row."""
        ...

    async def release(self, leases: Sequence[Lease]) -> None:
        """Release these leases if they are still current; others are ignored."""
        ...

    async def retire(self, owner: str) -> None:
        """Release all leases of an owner, and delete its worker row."""
        ...
