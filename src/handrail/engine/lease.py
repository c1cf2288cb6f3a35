"""Leases: which worker executes a run, as a protocol. An older epoch is refused by the store itself.

A worker beats once for all its leases. Whoever sees an owner's beat stand still for the length of a lease, by its own
monotonic clock, may take its runs over: no two clocks are ever compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class Lease(Struct, frozen=True):
    """The right to execute a run; every new owner has a higher epoch than the one before."""

    run: str
    owner: str
    epoch: int = 1


class Holding(Struct, frozen=True):
    """A run that has work, and who holds it as far as one can see; without an owner it is free."""

    run: str
    n: int
    """Its last event."""
    owner: str = ""
    epoch: int = 0
    beat: int = 0
    """How often the owner has beaten."""


class Leases(Protocol):
    """The leases of a store."""

    async def beat(self, owner: str) -> None:
        """Say that the owner is at work."""
        ...

    async def holdings(self, *, after: str = "", limit: int = 1_000) -> list[Holding]:
        """The runs by id that are stored as running or compensating and that handrail executes, with their owners."""
        ...

    async def holding(self, run: str) -> Holding | None:
        """The same for one run; None if it has no work for handrail."""
        ...

    async def claim(self, owner: str, holdings: Sequence[Holding]) -> list[Lease]:
        """Take those runs whose lease is still just as it was seen, the owner's beat included; those that were taken.

        All in one transaction. The claimer's own worker row is made with it."""
        ...

    async def release(self, leases: Sequence[Lease]) -> None:
        """Give leases back that are still held as given; others are left alone."""
        ...

    async def retire(self, owner: str) -> None:
        """Give all leases of an owner back, and forget that it was there."""
        ...
