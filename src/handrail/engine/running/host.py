"""The port of hosts: who sees to it that some node conducts a run, and why a stretch of its work has ended.

A stretch is the work of one node on one run under one lease: `Conduct(run) -> Rest`. A host only places stretches; what
happened is in the journal, and the epoch of the lease refuses a node that is too late. So a host may call twice, late,
or not at all: the sweep (sweep.py) finds what it has lost."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

LABELS_MAX: Final = 4
"""How many labels of one node hosts look at."""


class Reason(StrEnum):
    """Reason a stretch of work has ended."""

    ENDED = "ended"
    """The run has ended, or has no work for handrail."""
    OTHERS = "others"
    """Nothing happens until an agent or a person acts."""
    TIMER = "timer"
    """Nothing happens before an instant, unless an agent or a person acts."""
    LABELS = "labels"
    """It goes on at a node with other labels."""
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
    labels: tuple[str, ...] = ()
    """With labels: which ones the next node must have."""


Conduct: TypeAlias = Callable[[str], Awaitable[Rest]]
"""Execute a run until it rests, under a lease that is released when this returns."""


class Wake(Struct, frozen=True, kw_only=True):
    """A run that needs a node."""

    run: str
    n: int
    """Its last event."""
    project: str = ""
    workflow: str = ""
    status: str = ""
    priority: int = 0
    labels: tuple[str, ...] = ()
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

    async def serve(self, conduct: Conduct, labels: tuple[str, ...] = ()) -> None:
        """Conduct what is placed on a node with these labels. Ends when it is cancelled, or when the host is closed."""
        ...

    async def close(self) -> None:
        """Take nothing more, wait until the stretches that are under way here have ended, and let go."""
        ...


def label_sets(labels: tuple[str, ...]) -> list[tuple[str, ...]]:
    """What a run may ask for that a node with these labels has: nothing, any one of them, or any two."""
    known = sorted(set(labels))[:LABELS_MAX]
    pairs = [(one, other) for place, one in enumerate(known) for other in known[place + 1 :]]
    return [(), *((one,) for one in known), *pairs]
