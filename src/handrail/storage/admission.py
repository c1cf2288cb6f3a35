"""Admission: what an append or an erasure must be before any store takes it. Pure; the same for every store.

Whether it follows the end of its stream is the store's own check, inside its transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from handrail.domain.chain import Break, Head, Record, body_digest
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
from handrail.domain.event import PLAN_PREFIX
from handrail.domain.projection import Change
from handrail.engine.lease import Lease

BODY_BYTES_MAX: Final = 1_000_000
RECORDS_MAX: Final = 1_000
APPEND_BYTES_MAX: Final = 16_000_000
LEASES_MAX: Final = 10_000


def admitted_bytes(records: Sequence[Record], change: Change, lease: Lease | None = None) -> int:
    """How many bytes an append carries; Limited or Invalid if no store may take it."""
    if not records:
        raise Invalid("an append needs at least one event")
    if len(records) > RECORDS_MAX:
        raise Limited(f"{len(records)} events in one append; at most {RECORDS_MAX} fit")
    stream, size = records[0].stream, 0
    for record in records:
        if record.stream != stream:
            raise Invalid(f"an append to {stream} holds an event of {record.stream}")
        if len(record.body) > BODY_BYTES_MAX:
            raise Limited(f"the body of a {record.kind} event has {len(record.body)} bytes; {BODY_BYTES_MAX} fit")
        size += len(record.body)
    require_belonging(stream, change)
    if lease is not None:
        _require_lease_of(stream, lease)
    for _, text in change.definitions:
        size += len(text)
    if size > APPEND_BYTES_MAX:
        raise Limited(f"an append of {size} bytes; at most {APPEND_BYTES_MAX} fit")
    return size


def require_belonging(stream: str, change: Change) -> None:
    """Refuse a change that would write the projections of another stream."""
    run, plan = change.run, change.plan
    is_strange = (run is not None and run.id != stream) or (plan is not None and PLAN_PREFIX + plan.id != stream)
    for step in change.steps:
        is_strange = is_strange or step.run != stream
    if is_strange:
        raise Invalid(f"a change of {stream} holds rows of another stream")


def require_owner(owner: str) -> None:
    """Refuse an owner without a name: that is how a lease says that nobody holds it."""
    if not owner:
        raise Invalid("the owner of a lease needs a name")


def require_few(leases: Sequence[object]) -> None:
    """Refuse to take or give back more leases in one transaction than others should wait for."""
    if len(leases) > LEASES_MAX:
        raise Limited(f"{len(leases)} leases at once; at most {LEASES_MAX} fit")


def is_held(lease: Lease, *, owner: str, epoch: int, is_first: bool) -> bool:
    """Whether a lease is good for a run that the store says is held like this; its first append may begin one."""
    return (lease.owner, lease.epoch) == (owner, epoch) or (is_first and epoch == 0 and lease.epoch == 1)


def lease_lost(lease: Lease) -> HandrailError:
    """Why an append under a lease is refused."""
    return LeaseLost(f"{lease.run} is no longer held by {lease.owner!r} in epoch {lease.epoch}")


def require_erasure(stored: Record | None, record: Record) -> None:
    """Refuse to put `record` in place of the stored one unless it is that event without its words."""
    if stored is None:
        raise NotFound(f"there is no event {record.n} of {record.stream}")
    if stored.erased is not None:
        raise Conflict(f"event {record.n} of {record.stream} is erased already", hint="there is nothing left to erase")
    erased = body_digest(stored.salt, stored.body)
    if record != replace(stored, salt=record.salt, body=record.body, erased=erased):
        raise Invalid(f"what was to be left of event {record.n} of {record.stream} is not that event")


def refusal(end: Head, broken: Break) -> HandrailError:
    """Why an append does not follow `end`: someone was first, or its own events do not follow each other."""
    if broken.n == end.n + 1:
        return JournalConflict(f"{end.stream} ends with event {end.n}, and the append does not follow it")
    return Invalid(f"the events of an append to {end.stream} don't form a chain at {broken.n}: {broken.reason}")


def steps_without_run(stream: str) -> HandrailError:
    """Why steps can't be written: their run has no row."""
    return Invalid(f"a change of {stream} holds steps of a run that has no row")


def closed(name: str) -> HandrailError:
    """What every call gets after the store was closed."""
    return Unavailable(f"the store {name} is closed", hint="open it again")


def _require_lease_of(stream: str, lease: Lease) -> None:
    require_owner(lease.owner)
    if lease.run != stream:
        raise Invalid(f"an append to {stream} comes with a lease of {lease.run}")
