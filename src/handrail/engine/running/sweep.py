"""The sweep: finds runs that need a node and have had none for a while, so that the host is asked for them again.

Pure but for its memory: the worker looks at the leases and tells the time. A host may be down, lose a wake, or never
have heard of one: nothing but time is lost by that. Each run is asked for at growing distances, because it may also
just be waiting in the host's queue, behind many others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from handrail.engine.running.lease import LeaseHolder

FIRST_S: Final = 1.0
"""How long a run may need a node before the host is asked again."""
GROWTH: Final = 4
"""By how much the distance grows: a run that only waits in a long queue must not make it longer."""
WAIT_S_MAX: Final = 600.0
NEEDS_WAIT_S_MAX: Final = 15.0
"""The same for a run that needs something: its place in the queue of a host is not permanent (hosts/)."""
FAILED_WAIT_S_MAX: Final = 15.0
"""The same for a run that the host could not be asked for: it is in no queue."""
WAKES_MAX: Final = 200
"""How many runs are asked for in one sweep."""


@dataclass
class Overdue:
    """Since when a run, as of one event, needs a node, and how often the host was asked for it."""

    n: int
    due_s: float
    wait_s: float
    again: int = 0


@dataclass
class Sweep:
    """Remembers which runs need a node."""

    first_s: float = FIRST_S
    _runs: dict[str, Overdue] = field(default_factory=dict)

    def overdue(self, free: Sequence[LeaseHolder], *, now_s: float) -> list[tuple[LeaseHolder, int]]:
        """Of all runs that need a node now, those to ask the host for, each with how many times it was asked for."""
        known, self._runs = self._runs, {}
        asked: list[tuple[LeaseHolder, int]] = []
        for one in free:
            seen = known.get(one.run)
            # An event since then: some node had it, so this is a new wait.
            if seen is None or seen.n != one.n:
                # Who looks has what the run needs: others do not ask for it.
                seen = Overdue(one.n, now_s if one.needs else now_s + self.first_s, self.first_s)
            if now_s >= seen.due_s and len(asked) < WAKES_MAX:
                seen.again += 1
                seen.wait_s = min(GROWTH * seen.wait_s, NEEDS_WAIT_S_MAX if one.needs else WAIT_S_MAX)
                seen.due_s = now_s + seen.wait_s
                asked.append((one, seen.again))
            self._runs[one.run] = seen
        return asked

    def failed(self, run: str, *, now_s: float) -> None:
        """The host could not be asked for a run: its distances grow no further."""
        if (seen := self._runs.get(run)) is not None:
            seen.wait_s = min(seen.wait_s, FAILED_WAIT_S_MAX)
            seen.due_s = min(seen.due_s, now_s + seen.wait_s)
