"""Leases inside a write transaction: claims and releases. The lease stands in the row of the stream's end.

writer.py starts and commits the transaction, in order with the appends around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handrail.engine.running.lease import Lease, LeaseHolder
from handrail.storage.postgres import queries
from handrail.storage.postgres.append import Streams, columns_of
from handrail.storage.postgres.connections import Connection
from handrail.storage.postgres.texts import read, stored


async def beat(connection: Connection, owner: str) -> None:
    """Increase the beat of an owner by one."""
    await connection.execute(queries.BEAT, stored(owner))


async def claim(
    connection: Connection, streams: Streams, owner: str, lease_holders: Sequence[LeaseHolder]
) -> list[Lease]:
    """Claim those runs that still have work and whose lease is unchanged since it was seen."""
    seen = columns_of([(one.run, one.owner, one.epoch, one.beat) for one in lease_holders], (True, True, False, False))
    rows = await connection.fetch(queries.CLAIM, stored(owner), *seen)
    granted = {read(run): epoch for run, epoch in rows}
    await connection.execute(queries.PUT_WORKER, stored(owner))
    # The epochs that are remembered are old now: an append of this process under its new lease would be refused.
    streams.forget(granted)
    # In the order in which they were asked for, each once.
    return [
        Lease(run, owner, epoch)
        for run in dict.fromkeys(one.run for one in lease_holders)
        if (epoch := granted.get(run)) is not None
    ]


async def release(
    connection: Connection,
    streams: Streams,
    leases: Sequence[Lease],
    resting: Mapping[str, tuple[int, int | None]],
) -> None:
    """Release those leases that are still held as given; those that rest with the last event seen, and until when."""
    given = [(lease.run, lease.owner, lease.epoch, *resting.get(lease.run, (None, None))) for lease in leases]
    await connection.execute(queries.RELEASE, *columns_of(given, (True, True, False, False, False)))
    streams.forget(lease.run for lease in leases)


async def hand_over(connection: Connection, streams: Streams, lease: Lease, n: int, needs: str) -> None:
    """Release a lease that is still held as given, and say what the next node must have."""
    held = (stored(lease.run), stored(lease.owner), lease.epoch)
    await connection.execute(queries.HAND_OVER, *held, stored(needs), n)
    streams.forget([lease.run])


async def retire(connection: Connection, streams: Streams, owner: str) -> None:
    """Release all leases of an owner, and forget the owner."""
    rows = await connection.fetch(queries.RELEASE_ALL, stored(owner))
    await connection.execute(queries.DROP_WORKER, stored(owner))
    streams.forget(read(run) for (run,) in rows)
