"""Open lanes: the lists of steps that are being executed, and the open rounds of loops.

Pure. When a lane opens, and the state of its steps, is decided in agenda.py; what a lane is, is defined in
step_path.py."""

from __future__ import annotations

from typing import TypeAlias

from handrail.domain.definition.model import Each, Repeat
from handrail.domain.run.revisiting import is_revisited
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_path import UNDO, Lane, Located
from handrail.domain.run.step_state import StepState

StepRank: TypeAlias = tuple[int, int, tuple[int, ...]]
"""The order of ready steps across all lanes: priority, then critical path, then as written."""


class OpenLane:
    """A list of steps in execution: how many needs each still has, which are left, and which may still move."""

    def __init__(self, lane: Lane, order: tuple[int, ...], chain: int) -> None:
        self.lane = lane
        self.order = order
        self.chain = chain
        # Counted down as steps end, so that a step becomes ready without looking at all that it needs.
        self.missing = {name: len(needs) for name, needs in lane.course.needs.items()}
        self.left = set(lane.course.named)
        self.moving: set[str] = set()
        self.is_revisited = is_revisited(lane)
        self.offered: tuple[str, ...] = ()
        """In a list whose steps are looked at again: those that were offered last."""

    def rank(self, name: str) -> StepRank:
        """The rank of one of its steps."""
        priority, chain, place = self.lane.course.ranks[name]
        return (priority, chain + self.chain, (*self.order, place))

    @property
    def is_stuck(self) -> bool:
        """Whether steps are left and none of them can ever move."""
        return bool(self.left) and not self.moving


class OpenRounds:
    """The open rounds of a loop, and the number of the next one."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.next = 0


class OpenLanes:
    """All open lanes of one run, by their prefix, and the rounds of its loops, by the path of the loop."""

    def __init__(self) -> None:
        self.by_prefix: dict[str, OpenLane] = {}
        self.rounds: dict[str, OpenRounds] = {}

    def at(self, path: str) -> OpenLane | None:
        """The lane that a step belongs to, if it is open."""
        return self.by_prefix.get(prefix_of(path))

    def rank_at(self, path: str) -> StepRank:
        """The rank of a step in an open lane."""
        return self.by_prefix[prefix_of(path)].rank(path.rpartition(".")[2])

    def is_over(self, prefix: str) -> bool:
        """Whether a lane is open and nothing is left to do in it."""
        opened = self.by_prefix.get(prefix)
        return opened is not None and not opened.left

    def is_round_over(self, found: Located, state: StepState) -> bool:
        """Whether nothing is left to do in the current round of a container; in all rounds if they are parallel."""
        container = found.prefix + found.step.id
        if state.status is StepStatus.COMPENSATING:
            return self.is_over(f"{container}{UNDO}.")
        match found.step.work:
            case Each():
                rounds = self.rounds.get(container, OpenRounds())
                return not rounds.open and rounds.next >= (state.rounds or 0)
            case Repeat():
                return state.round < 0 or self.is_over(f"{container}[{state.round}].")
            case _:
                return self.is_over(f"{container}.")

    def stuck_in(self, container: str) -> str | None:
        """The prefix of a stuck lane inside a container; None as long as any other lane inside can continue."""
        inside = [opened for opened in self.by_prefix.values() if opened.lane.parent == container]
        return inside[0].lane.prefix if inside and all(opened.is_stuck for opened in inside) else None

    def close_inside(self, container: str) -> list[str]:
        """Close all lanes inside a container, at any depth; returns the paths of their steps."""
        self.rounds.pop(container, None)
        # With the sign after its name: `load` must not close the lanes of `load_all`.
        prefixes = [prefix for prefix in self.by_prefix if prefix.startswith((f"{container}.", f"{container}["))]
        paths = [prefix + name for prefix in prefixes for name in self.by_prefix.pop(prefix).lane.course.named]
        for path in paths:
            self.rounds.pop(path, None)
        return paths

    def close_ended_rounds(self, container: str) -> OpenRounds:
        """Close the rounds of a loop in which nothing is left to do; returns those that are still open."""
        going = self.rounds.setdefault(container, OpenRounds())
        for number in [number for number in going.open if self.is_over(f"{container}[{number}].")]:
            del self.by_prefix[f"{container}[{number}]."]
            going.open.remove(number)
        return going


def prefix_of(path: str) -> str:
    """The prefix of the lane that a step belongs to."""
    head, _, _ = path.rpartition(".")
    return f"{head}." if head else ""
