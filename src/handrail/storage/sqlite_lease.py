"""Leases inside a write transaction: beats, claims, and giving back. What the appender remembers is kept true.

They share transactions with appends, which sqlite_writer.py begins and ends. That an append is made under its lease is
checked where appends are checked: sqlite_append.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from handrail.engine.lease import Holding, Lease
from handrail.storage import queries
from handrail.storage.sqlite_append import Appender


def beat(connection: sqlite3.Connection, owner: str) -> None:
    """Count one more beat of an owner."""
    connection.execute(queries.BEAT, (owner,))


def claim(connection: sqlite3.Connection, appender: Appender, owner: str, holdings: Sequence[Holding]) -> list[Lease]:
    """Take those runs that still have work and are held just as they were seen."""
    taken = []
    for seen in holdings:
        wanted = (seen.run, owner, seen.owner, seen.epoch, seen.beat)
        if connection.execute(queries.CLAIM, wanted).rowcount == 1:
            lease = Lease(seen.run, owner, seen.epoch + 1)
            appender.remember_lease(lease.run, lease.owner, lease.epoch)
            taken.append(lease)
    connection.execute(queries.PUT_WORKER, (owner,))  # last: the claimer may have seen itself without a beat
    return taken


def release(connection: sqlite3.Connection, appender: Appender, leases: Sequence[Lease]) -> None:
    """Give back those leases that are still held as given."""
    for lease in leases:
        if connection.execute(queries.RELEASE, (lease.run, lease.owner, lease.epoch)).rowcount == 1:
            appender.remember_lease(lease.run, "", lease.epoch)


def retire(connection: sqlite3.Connection, appender: Appender, owner: str) -> None:
    """Give all leases of an owner back, and forget that it was there."""
    for run, epoch in connection.execute(queries.RELEASE_ALL, (owner,)).fetchall():
        appender.remember_lease(run, "", epoch)
    connection.execute(queries.DROP_WORKER, (owner,))
