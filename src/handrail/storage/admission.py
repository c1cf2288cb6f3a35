"""Admission checks: what an append or an erasure must fulfil before a store accepts it. Pure; the same for every store.

Each store checks inside its own transaction whether an append follows the end of its stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from handrail.domain.errors import (
    Conflict,
    HandrailError,
    Invalid,
    JournalConflict,
    LeaseLost,
    Limited,
    NotFound,
    Unavailable,
)
from handrail.domain.journal.archived import Tombstone
from handrail.domain.journal.chain import Break, Head, Record, body_digest
from handrail.domain.journal.projection import Change
from handrail.domain.project import plan_stream
from handrail.engine.running.lease import Lease

BODY_BYTES_MAX: Final = 1_000_000
RECORDS_MAX: Final = 1_000
APPEND_BYTES_MAX: Final = 16_000_000
LEASES_MAX: Final = 10_000


def admitted_bytes(records: Sequence[Record], change: Change, lease: Lease | None = None) -> int:
    """The size of an append in bytes; Limited or Invalid if no store may accept it."""
    if not records:
        raise Invalid("an append needs at least one event")
    if len(records) > RECORDS_MAX:
        raise Limited(f"{len(records)} events in one append; at most {RECORDS_MAX} are allowed")
    stream, size = records[0].stream, 0
    for record in records:
        if record.stream != stream:
            raise Invalid(f"an append to {stream} contains an event of {record.stream}")
        if len(record.body) > BODY_BYTES_MAX:
            raise Limited(
                f"the body of a {record.kind} event has {len(record.body)} bytes; at most {BODY_BYTES_MAX} are allowed"
            )
        size += len(record.body)
    require_belonging(stream, change)
    if lease is not None:
        _require_lease_of(stream, lease)
    for _, text in change.definitions:
        size += len(text)
    if size > APPEND_BYTES_MAX:
        raise Limited(f"an append of {size} bytes; at most {APPEND_BYTES_MAX} are allowed")
    return size


def require_belonging(stream: str, change: Change) -> None:
    """Refuse a change that would write the projections of another stream."""
    run, plan = change.run, change.plan
    is_strange = run is not None and run.id != stream
    is_strange = is_strange or (plan is not None and plan_stream(plan.project, plan.id) != stream)
    for step in change.steps:
        is_strange = is_strange or step.run != stream
    if is_strange:
        raise Invalid(f"a change of {stream} contains rows of another stream")


def require_owner(owner: str) -> None:
    """Refuse an owner without a name: an empty name marks a lease that is not held."""
    if not owner:
        raise Invalid("the owner of a lease needs a name")


def require_few(leases: Sequence[object]) -> None:
    """Refuse to claim or release so many leases in one transaction that other writers would wait too long."""
    if len(leases) > LEASES_MAX:
        raise Limited(f"{len(leases)} leases at once; at most {LEASES_MAX} are allowed")


def is_held(lease: Lease, *, owner: str, epoch: int, is_first: bool) -> bool:
    """Whether a lease is valid for a run with this owner and epoch in the store; a first append may create one."""
    return (lease.owner, lease.epoch) == (owner, epoch) or (is_first and epoch == 0 and lease.epoch == 1)


def lease_lost(lease: Lease) -> HandrailError:
    """Why an append under a lease is refused."""
    return LeaseLost(f"{lease.run} is no longer held by {lease.owner!r} in epoch {lease.epoch}")


def require_erasure(stored: Record | None, record: Record) -> None:
    """Refuse to replace the stored record unless `record` is the same event without its text."""
    if stored is None:
        raise NotFound(f"there is no event {record.n} of {record.stream}")
    if stored.erased is not None:
        raise Conflict(f"event {record.n} of {record.stream} is already erased", hint="there is nothing left to erase")
    erased = body_digest(stored.salt, stored.body)
    if record != replace(stored, salt=record.salt, body=record.body, erased=erased):
        raise Invalid(f"the erased form of event {record.n} of {record.stream} does not match that event")


def require_ended(stone: Tombstone, row: tuple[int, bytes, int, int | None] | None) -> None:
    """Refuse to archive a run that is not over, or is not as it was when its archive was written: `row` has the number
    and the hash of its last event, the number in its row, and when it ended."""
    if row is None:
        raise NotFound(f"there is no run {stone.stream!r} with events here", hint="`handrail run list` shows the runs")
    n, head, row_n, ended = row
    if ended is None:
        raise Conflict(f"{stone.stream} has not ended", hint="only ended runs are archived")
    if (n, head, row_n) != (stone.n, stone.head, stone.n):
        raise Conflict(f"{stone.stream} has changed since its archive was written", hint="archive it again")


def refusal(end: Head, broken: Break) -> HandrailError:
    """Why an append does not follow `end`: another writer was first, or its own events do not follow each other."""
    if broken.n == end.n + 1:
        return JournalConflict(f"{end.stream} ends with event {end.n}, and the append does not follow it")
    return Invalid(f"the events of an append to {end.stream} don't form a chain at {broken.n}: {broken.reason}")


def steps_without_run(stream: str) -> HandrailError:
    """Why steps can't be written: their run has no row."""
    return Invalid(f"a change of {stream} contains steps of a run that has no row")


def closed(name: str) -> HandrailError:
    """The error of every call after the store was closed."""
    return Unavailable(f"the store {name} is closed", hint="open it again")


def _require_lease_of(stream: str, lease: Lease) -> None:
    require_owner(lease.owner)
    if lease.run != stream:
        raise Invalid(f"an append to {stream} comes with a lease of {lease.run}")
