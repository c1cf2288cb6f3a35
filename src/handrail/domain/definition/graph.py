"""The dependency graph of one list of steps, given by `after`: cycles, order, waves, and ancestors.

Pure. Unknown names in `after`, and a step that names itself, are ignored here; analysis/ reports them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

from msgspec import Struct

from handrail.domain.definition.model import Step


class Ancestry(Struct, frozen=True):
    """The ancestors of each step. A set of steps is one integer with a bit per step, so that long chains stay small."""

    bits: Mapping[str, int]
    before: Mapping[str, int]

    def is_before(self, earlier: str, later: str) -> bool:
        """Whether `later` can only start after `earlier` has ended."""
        return bool(self.before.get(later, 0) & self.bits.get(earlier, 0))

    def of(self, name: str) -> frozenset[str]:
        """All steps before this one."""
        mask = self.before.get(name, 0)
        return frozenset(other for other, bit in self.bits.items() if mask & bit)


def cycle_in(steps: Sequence[Step]) -> tuple[str, ...]:
    """A cycle of steps that wait for each other, with the first step again at the end; () if there is none."""
    needs = needs_of(steps)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1][:-1]
        start = circle.index(next(filter(set(circle).__contains__, needs)))  # the first written
        return (*circle[start:], *circle[: start + 1])
    return ()


def order(steps: Sequence[Step]) -> list[str]:
    """All steps in an order that respects `after`, else as written; a cycle and the steps after it are left out."""
    needs = needs_of(steps)
    place = {name: index for index, name in enumerate(needs)}
    names = list(needs)
    missing = {name: len(before) for name, before in needs.items()}
    follows = followers(steps)
    ready = [place[name] for name, count in missing.items() if not count]
    heapify(ready)
    ordered: list[str] = []
    while ready:
        name = names[heappop(ready)]
        ordered.append(name)
        for follower in follows[name]:
            missing[follower] -= 1
            if not missing[follower]:
                heappush(ready, place[follower])
    return ordered


def waves(steps: Sequence[Step]) -> list[list[str]]:
    """The steps that could start together, wave by wave, each in written order."""
    needs = needs_of(steps)
    wave_of: dict[str, int] = {}
    for name in order(steps):
        wave_of[name] = max((wave_of[before] + 1 for before in needs[name]), default=0)
    found: list[list[str]] = [[] for _ in range(max(wave_of.values(), default=-1) + 1)]
    for name in needs:
        if name in wave_of:
            found[wave_of[name]].append(name)
    return found


def ancestors(steps: Sequence[Step]) -> Ancestry:
    """The ancestors of each step. A step in or after a cycle has every step as ancestor: no better answer exists."""
    needs = needs_of(steps)
    bits = {name: 1 << index for index, name in enumerate(needs)}
    before = dict.fromkeys(needs, (1 << len(needs)) - 1)
    for name in order(steps):
        mask = 0
        for earlier in needs[name]:
            mask |= before[earlier] | bits[earlier]
        before[name] = mask
    return Ancestry(bits=bits, before=before)


def chains_below(steps: Sequence[Step]) -> dict[str, int]:
    """The length of the longest chain after each step, so that a scheduler can start the longest chain first."""
    follows = followers(steps)
    lengths = dict.fromkeys(follows, 0)
    for name in reversed(order(steps)):
        lengths[name] = max((lengths[follower] + 1 for follower in follows[name]), default=0)
    return lengths


def needs_of(steps: Sequence[Step]) -> dict[str, tuple[str, ...]]:
    """The known steps that each step waits for, each once."""
    known = {step.id for step in steps}
    return {step.id: tuple(name for name in dict.fromkeys(step.after) if name in known) for step in steps}


def followers(steps: Sequence[Step]) -> dict[str, tuple[str, ...]]:
    """Which steps wait for each step, in written order."""
    needs = needs_of(steps)
    follows: dict[str, list[str]] = {name: [] for name in needs}
    for name, before in needs.items():
        for earlier in before:
            follows[earlier].append(name)
    return {name: tuple(later) for name, later in follows.items()}


def cycles_in(steps: Sequence[Step], *, most: int) -> Iterator[tuple[str, ...]]:
    """Cycles that share no step, at most `most`."""
    left = list(steps)
    for _ in range(most):
        cycle = cycle_in(left)
        if not cycle:
            return
        yield cycle
        left = [step for step in left if step.id not in cycle]
