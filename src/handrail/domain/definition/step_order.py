"""The course of a list of steps: each step by name, which steps it waits for, and its rank.

Pure. Computed once for each list and cached, because a run needs it at every step."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.domain.definition.graph import chains_below, followers, needs_of
from handrail.domain.definition.model import Step

COURSES_KEPT: Final = 2_000

Rank: TypeAlias = tuple[int, int, int]
"""The order of ready steps: highest priority, then the longest chain of steps behind it, then as written."""


class Course(Struct, frozen=True):
    """A list of steps, prepared for execution."""

    steps: tuple[Step, ...]
    named: Mapping[str, Step]
    needs: Mapping[str, tuple[str, ...]]
    followers: Mapping[str, tuple[str, ...]]
    ranks: Mapping[str, Rank]


# Not a BoundedCache: all threads of the process share this one, and each line below is thread-safe without a lock.
_courses: OrderedDict[int, Course] = OrderedDict()


def course_of(steps: tuple[Step, ...]) -> Course:
    """The course of these steps."""
    # By identity: the lists of a definition live as long as it does, and comparing them step by step would cost more
    # than it saves. The course keeps a reference to its list, so that no other list can get the same id meanwhile.
    known = _courses.get(id(steps))
    if known is None:
        known = _courses[id(steps)] = _course(steps)
        while len(_courses) > COURSES_KEPT:
            _courses.popitem(last=False)
    return known


def _course(steps: tuple[Step, ...]) -> Course:
    chains = chains_below(steps)
    return Course(
        steps=steps,
        named={step.id: step for step in steps},
        needs=needs_of(steps),
        followers=followers(steps),
        ranks={step.id: (-step.priority, -chains[step.id], index) for index, step in enumerate(steps)},
    )
