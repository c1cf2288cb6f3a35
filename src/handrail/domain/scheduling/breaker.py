"""The circuit breaker of a tool server: closed, open, half-open. Its transitions are events in the server's own stream.

Pure. A server that keeps failing is not called for a while, longer each time; then one call tests whether it has
recovered. Failures caused by the caller (invalid input, no permission) do not count against the server."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, assert_never

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.definition.model import Category
from handrail.domain.journal.event import Entry
from handrail.domain.journal.store_event import BreakerClosed, BreakerOpened, BreakerProbed, ServerEvent

TRIPS_AFTER: Final = 5
"""How many failures in a row open the breaker."""
OPEN_MS_FIRST: Final = 5_000
OPEN_MS_MAX: Final = 20_000
"""Short, so that a recovered server is used again within half a minute, however long it was down."""
SERVERS_FAULT: Final = frozenset({Category.TRANSIENT, Category.TIMEOUT})


class BreakerStatus(StrEnum):
    """Whether calls go through."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker(Struct, frozen=True, kw_only=True):
    """The state of one tool server's breaker."""

    server: str
    status: BreakerStatus = BreakerStatus.CLOSED
    failures: int = 0
    """How many calls failed in a row."""
    opened: int = 0
    """How often it has opened since the server last worked."""
    until: int = 0
    message: str = ""


def replay_breaker(entries: Iterable[Entry], start: Breaker) -> Breaker:
    """The breaker after these entries."""
    breaker = start
    for entry in entries:
        if isinstance(entry.event, ServerEvent):
            breaker = apply_to_breaker(breaker, entry.event)
    return breaker


def apply_to_breaker(breaker: Breaker, event: ServerEvent) -> Breaker:
    """The breaker after an event."""
    match event:
        case BreakerOpened():
            opened = replace(breaker, status=BreakerStatus.OPEN, failures=event.failures, opened=breaker.opened + 1)
            return replace(opened, until=event.until, message=event.message)
        case BreakerProbed():
            return replace(breaker, status=BreakerStatus.HALF_OPEN)
        case BreakerClosed():
            return Breaker(server=breaker.server)
        case _:
            assert_never(event)


def after_answer(breaker: Breaker, category: Category | None, message: str, *, now: int) -> list[ServerEvent]:
    """The events that a call's outcome causes; a category of None is a success."""
    # An answer that blames the caller shows that the server works.
    if category not in SERVERS_FAULT:
        return [] if breaker.status is BreakerStatus.CLOSED else [BreakerClosed(server=breaker.server)]
    failures = breaker.failures + 1
    if breaker.status is BreakerStatus.CLOSED and failures < TRIPS_AFTER:
        return []
    if breaker.status is BreakerStatus.OPEN:
        return []  # this call started before the breaker opened: it says nothing new
    # Without jitter: one probe at a time goes out, so there is no herd to spread.
    until = now + min(OPEN_MS_FIRST * 2**breaker.opened, OPEN_MS_MAX)
    return [BreakerOpened(server=breaker.server, failures=failures, until=until, message=message)]
