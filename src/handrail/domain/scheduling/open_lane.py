"""Open lanes: the lists of steps that are being executed, and the open rounds of loops.

Pure. When a lane opens, and the state of its steps, is decided in agenda.py; what a lane is, is defined in
step_path.py."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from handrail.domain.run.revisiting import is_revisited
from handrail.domain.run.step_path import Lane

StepRank: TypeAlias = tuple[int, int, tuple[int, ...]]
"""The order of ready steps across all lanes: priority, then critical path, then as written."""


class OpenLane:
    """A list of steps in execution: how many needs each still has, which are left, and which may still move."""

    def __init__(self, lane: Lane, order: tuple[int, ...], chain: int) -> None:
        self.lane = lane
        self.order = order
        self.chain = chain
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


def prefix_of(path: str) -> str:
    """The prefix of the lane that a step belongs to."""
    head, _, _ = path.rpartition(".")
    return f"{head}." if head else ""


def lane_at(lanes: Mapping[str, OpenLane], path: str) -> OpenLane | None:
    """The lane that a step belongs to, if it is open."""
    return lanes.get(prefix_of(path))


def rank_at(lanes: Mapping[str, OpenLane], path: str) -> StepRank:
    """The rank of a step in an open lane."""
    return lanes[prefix_of(path)].rank(path.rpartition(".")[2])


def is_lane_over(lanes: Mapping[str, OpenLane], prefix: str) -> bool:
    """Whether nothing is left to do in an open lane."""
    return prefix in lanes and not lanes[prefix].left


def stuck_in(lanes: Mapping[str, OpenLane], container: str) -> str | None:
    """The prefix of a stuck lane inside a container; None as long as any other lane inside can continue."""
    inside = [opened for opened in lanes.values() if opened.lane.parent == container]
    return inside[0].lane.prefix if inside and all(opened.is_stuck for opened in inside) else None
