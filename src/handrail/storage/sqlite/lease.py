"""Leases inside a write transaction: beats, claims and releases. Also updates the leases that the appender caches.

They share transactions with appends, which writer.py starts and commits. Whether an append holds its lease is
checked in append.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from handrail.engine.running.lease import Lease, LeaseHolder
from handrail.storage.sqlite import queries
from handrail.storage.sqlite.append import Appender


def beat(connection: sqlite3.Connection, owner: str) -> None:
    """Increase the beat of an owner by one."""
    connection.execute(queries.BEAT, (owner,))


def claim(
    connection: sqlite3.Connection, appender: Appender, owner: str, lease_holders: Sequence[LeaseHolder]
) -> list[Lease]:
    """Claim those runs that still have work and whose lease is unchanged since it was seen."""
    taken = []
    for seen in lease_holders:
        wanted = {"run": seen.run, "claimer": owner, "owner": seen.owner, "epoch": seen.epoch, "beat": seen.beat}
        if connection.execute(queries.CLAIM, wanted).rowcount == 1:
            # The epoch only grows. A worker that still believes to have the run holds a smaller one, and all its
            # appends are refused from this commit on.
            lease = Lease(seen.run, owner, seen.epoch + 1)
            appender.remember_lease(lease.run, lease.owner, lease.epoch)
            taken.append(lease)
    connection.execute(queries.PUT_WORKER, (owner,))  # last: `lease_holders` may show the claimer itself without a beat
    return taken


def release(connection: sqlite3.Connection, appender: Appender, leases: Sequence[Lease]) -> None:
    """Release those leases that are still held as given."""
    for lease in leases:
        if connection.execute(queries.RELEASE, (lease.run, lease.owner, lease.epoch)).rowcount == 1:
            appender.remember_lease(lease.run, "", lease.epoch)


def hand_over(connection: sqlite3.Connection, appender: Appender, lease: Lease, n: int, needs: str) -> None:
    """Release a lease that is still held as given, and say what the next node must have."""
    if connection.execute(queries.HAND_OVER, (needs, n, lease.run, lease.owner, lease.epoch)).rowcount == 1:
        appender.remember_lease(lease.run, "", lease.epoch)


def retire(connection: sqlite3.Connection, appender: Appender, owner: str) -> None:
    """Release all leases of an owner, and forget the owner."""
    for run, epoch in connection.execute(queries.RELEASE_ALL, (owner,)).fetchall():
        appender.remember_lease(run, "", epoch)
    connection.execute(queries.DROP_WORKER, (owner,))
