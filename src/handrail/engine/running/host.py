"""The port of hosts: who sees to it that some node conducts a run, and why a stretch of its work has ended.

A stretch is the work of one node on one run under one lease: `Conduct(run) -> Rest`. A host only places stretches; what
happened is in the journal, and the epoch of the lease refuses a node that is too late. So a host may call twice, late,
or not at all: the sweep (sweep.py) finds what it has lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

QUEUES_MAX: Final = 50
"""How many queues of runs that need something one node serves; of more, those that were asked for last."""

WAIT_MS_MIN: Final = 1_000
"""A host waits at least that long for a timer. A run only rests if its timer is further away than that, by the clock of
its node; a host whose clock is ahead would otherwise place it again and again until the node's clock is there, too."""


class Reason(StrEnum):
    """Reason a stretch of work has ended."""

    ENDED = "ended"
    """The run has ended, or has no work for handrail."""
    OTHERS = "others"
    """Nothing happens until an agent or a person acts."""
    TIMER = "timer"
    """Nothing happens before an instant, unless an agent or a person acts."""
    LABELS = "labels"
    """It goes on at a node that has what it needs; such a node sees that, and asks for it."""
    HANDED_OVER = "handed over"
    """This node gives the run up, before it had to rest: it must be placed again."""
    HELD = "held"
    """Another node that is alive has the run, and places it itself when it gives it up."""


class Rest(Struct, frozen=True, kw_only=True):
    """How a stretch of work ended."""

    run: str
    why: Reason
    n: int = 0
    """The last event that was seen."""
    until: int | None = None
    """With a timer: when the run goes on."""
    status: str = ""
    """Of the run, for people who look at the host."""


def wait_ms(until: int, now: int) -> int:
    """How long a host waits for a timer, by the clock of who says so: the host itself, or the node that rested."""
    return max(WAIT_MS_MIN, until - now)


Conduct: TypeAlias = Callable[[str], Awaitable[Rest]]
"""Execute a run until it rests, under a lease that is released when this returns."""

Room: TypeAlias = Callable[[], int | None]
"""How many more runs a node takes now; None: as many as come."""


class Wake(Struct, frozen=True, kw_only=True):
    """A run that needs a node."""

    run: str
    n: int
    """Its last event."""
    project: str = ""
    workflow: str = ""
    status: str = ""
    priority: int = 0
    needs: str = ""
    """What the node must have (domain/fleet/label.py): who asks has it."""
    again: int = 0
    """How often the sweep has asked for the run as of this event; 0 if it was not the sweep."""


class HostState(Struct, frozen=True, kw_only=True):
    """Whether a host answers, for people."""

    name: str
    """Where it is, without a password."""
    problem: str = ""
    """What is wrong; empty if it answers."""


class Host(Protocol):
    """Places stretches of work."""

    async def wake(self, wake: Wake) -> None:
        """See to it that some node conducts the run soon; returns once the host has noted that.

        Raises Unavailable if it can't. The same wake twice may be one stretch or two."""
        ...

    async def serve(self, conduct: Conduct, room: Room) -> None:
        """Conduct what is placed here, as far as there is room. Ends when cancelled, or when the host is closed."""
        ...

    def offer(self, needs: str) -> None:
        """Place runs here as well that need this, because this node has it; else only those that need nothing."""
        ...

    async def close(self) -> None:
        """Take nothing more, wait until the stretches that are under way here have ended, and release what is held."""
        ...
