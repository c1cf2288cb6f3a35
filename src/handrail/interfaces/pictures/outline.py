"""The outline: the items in a picture of a definition, and their order, without positions.

Pure. It simplifies the picture: an edge that others imply is left out; many parallel steps become one bundle; if all
steps of a set come before all of another, their edges meet in one point. A definition may be invalid: unknown names are
ignored, a cycle is cut at the edge that leads back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, filterfalse
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.definition.model import Call, Definition, Kind, Step, walk
from handrail.interfaces.pictures.caption import Remark, Sign, remarks_on, waits_for

BUNDLE_MIN: Final = 7
INLINED_STEPS_MAX: Final = 2_000
NESTED_MAX: Final = 40
"""Deeper steps are left out: the picture would be unreadable."""

Links: TypeAlias = list[list[int]]


class Item(Struct, frozen=True, kw_only=True):
    """One item to draw. With a step: that step. Only with an inside: a bundle. With neither: a meeting point."""

    key: str
    step: Step | None = None
    needs: tuple[str, ...] = ()
    """The ids that the step waits for, without those that others imply."""
    cycle: tuple[str, ...] = ()
    """The ids that the step waits for although they come after it."""
    inside: Outline | None = None

    @property
    def is_shown(self) -> bool:
        """Whether it is a step or a bundle, not only a meeting point."""
        return self.step is not None or self.inside is not None

    @property
    def is_bundle(self) -> bool:
        """Whether it represents many parallel steps."""
        return self.step is None and self.inside is not None


class Outline(Struct, frozen=True, kw_only=True):
    """The items of one list of steps, and which follow each; `back` are the cut edges of cycles."""

    items: tuple[Item, ...]
    follows: tuple[tuple[int, ...], ...]
    back: tuple[tuple[int, int], ...] = ()

    @property
    def needs(self) -> list[list[int]]:
        """The items directly before each item."""
        return _reversed(self.follows)

    @property
    def strands(self) -> list[list[int]]:
        """The items in chains that no edge joins or leaves in between."""
        return list(_strands(self.needs, list(map(list, self.follows))))


class _Inlining(Struct):
    """The workflows that may be inlined, and how many more steps fit."""

    pinned: Mapping[str, Definition]
    room: list[int]
    open: frozenset[str] = frozenset()


def outlined(definition: Definition) -> Outline:
    """The outline of a definition."""
    return _outline(definition.steps, _Inlining(definition.pinned, [INLINED_STEPS_MAX]), "")


def levels(outline: Outline, *, meeting: int = 1) -> list[int]:
    """The length of the longest path to each item; a meeting point counts as `meeting`."""
    needs = outline.needs
    found = [0] * len(needs)
    for index in _order(needs, outline.follows):
        height = 1 if outline.items[index].is_shown else meeting
        found[index] = max((found[need] for need in needs[index]), default=-height) + height
    return found


def kinds_in(outline: Outline) -> list[Kind]:
    """The kinds of step in the outline, in their usual order."""
    found = {item.step.kind for item in items_in(outline) if item.step}
    return [kind for kind in Kind if kind in found]


def items_in(outline: Outline) -> Iterator[Item]:
    """Every item, each followed by those inside it."""
    for item in outline.items:
        yield item
        if item.inside:
            yield from items_in(item.inside)


def remarks_in(item: Item, *, named: bool = False) -> list[Remark]:
    """What is special about the item; `named`: also what it waits for."""
    found = remarks_on(item.step) if item.step else []
    if named and item.needs:
        found.append(Remark(Sign.AFTER, f"after {waits_for(item.needs)}"))
    if item.cycle:
        found.append(Remark(Sign.CYCLE, f"cycle: waits for {waits_for(item.cycle)}"))
    return found


def bundle_text(item: Item) -> str:
    """How many steps are in a bundle."""
    inside = item.inside
    strands = len(inside.strands) if inside else 0
    what = "steps" if inside and strands == len(inside.items) else "chains"
    return f"{strands} {what} in parallel"


def _outline(steps: Sequence[Step], inlining: _Inlining, prefix: str) -> Outline:
    wanted = _named_needs(steps)
    back = _leading_back(wanted)
    needs = _reduced([[need for need in row if (need, index) not in back] for index, row in enumerate(wanted)])
    items = [
        Item(
            key=f"{prefix}{index + 1}",
            step=step,
            needs=tuple(steps[need].id for need in needs[index]),
            cycle=tuple(steps[need].id for need in wanted[index] if (need, index) in back),
            inside=_inside(step, inlining, f"{prefix}{index + 1}_"),
        )
        for index, step in enumerate(steps)
    ]
    return _with_meetings(_with_bundles(items, needs, back))


def _named_needs(steps: Sequence[Step]) -> Links:
    place: dict[str, int] = {}
    for index, step in enumerate(steps):
        place.setdefault(step.id, index)
    return [[place[name] for name in dict.fromkeys(step.after) if name in place] for step in steps]


def _inside(step: Step, inlining: _Inlining, prefix: str) -> Outline | None:
    if prefix.count("_") > NESTED_MAX:
        return None
    if step.body:
        return _outline(step.body, inlining, prefix)
    return _inlined(step.work, inlining, prefix) if isinstance(step.work, Call) else None


def _inlined(call: Call, inlining: _Inlining, prefix: str) -> Outline | None:
    """The outline of a pinned workflow; None if it would contain itself, or if there are too many steps."""
    inner = inlining.pinned.get(call.workflow)
    if inner is None or not inner.steps or call.workflow in inlining.open:
        return None
    inlining.room[0] -= sum(1 for _ in walk(inner.steps))
    if inlining.room[0] < 0:
        return None
    deeper = replace(inlining, pinned={**inlining.pinned, **inner.pinned}, open=inlining.open | {call.workflow})
    return _outline(inner.steps, deeper, prefix)


def _leading_back(needs: Links) -> set[tuple[int, int]]:
    """The edges that lead back to a step on the current path of a depth-first search; the rest has no cycle."""
    follows = _reversed(needs)
    back: set[tuple[int, int]] = set()
    state = [0] * len(needs)  # 0 unseen, 1 on the current path, 2 done
    for root in sorted(range(len(needs)), key=lambda index: (bool(needs[index]), index)):
        trail = [(root, iter(follows[root]))] if not state[root] else []
        state[root] = state[root] or 1
        while trail:
            here, rest = trail[-1]
            there = next(rest, None)
            if there is None:
                state[here] = 2
                trail.pop()
            elif state[there] == 1:
                back.add((here, there))
            elif not state[there]:
                state[there] = 1
                trail.append((there, iter(follows[there])))
    return back


def _reduced(needs: Links) -> Links:
    """The links without those that others imply. Sets of steps are integers with a bit for each: fast for thousands."""
    before = [0] * len(needs)
    found: Links = [[] for _ in needs]
    for index in _order(needs, _reversed(needs)):
        implied = 0
        for need in needs[index]:
            implied |= before[need]
        found[index] = [need for need in needs[index] if not implied >> need & 1]
        before[index] = implied | sum(1 << need for need in found[index])
    return found


def _with_bundles(items: list[Item], needs: Links, back: set[tuple[int, int]]) -> Outline:
    """The outline in which many chains with the same needs and the same followers become one item."""
    follows = _reversed(needs)
    in_cycle = set(chain.from_iterable(back))
    alike: dict[tuple[tuple[int, ...], tuple[int, ...]], list[list[int]]] = defaultdict(list)
    for strand in _strands(needs, follows):
        if in_cycle.isdisjoint(strand):
            alike[tuple(needs[strand[0]]), tuple(follows[strand[-1]])].append(strand)
    head = list(range(len(items)))
    for strands in filter(lambda strands: len(strands) >= BUNDLE_MIN, alike.values()):
        for index in chain.from_iterable(strands):
            head[index] = strands[0][0]
    return _merged(items, follows, back, head)


def _strands(needs: Links, follows: Links) -> Iterator[list[int]]:
    """The chains: an item and its follower are in one chain if neither has another neighbour in that direction."""
    starts = [index for index, row in enumerate(needs) if len(row) != 1 or len(follows[row[0]]) != 1]
    for start in starts:
        strand = [start]
        while len(follows[strand[-1]]) == 1 and len(needs[follows[strand[-1]][0]]) == 1:
            strand.append(follows[strand[-1]][0])
        yield strand


def _merged(items: list[Item], follows: Links, back: set[tuple[int, int]], head: list[int]) -> Outline:
    """The outline in which every item is part of the item of its head."""
    members: dict[int, list[int]] = defaultdict(list)
    for index, first in enumerate(head):
        members[first].append(index)
    groups = list(members.values())
    place = {index: number for number, group in enumerate(groups) for index in group}
    merged: list[dict[int, None]] = [{} for _ in groups]
    for index, row in enumerate(follows):
        merged[place[index]] |= {place[later]: None for later in row if place[later] != place[index]}
    return Outline(
        items=tuple(_bundle(group, items, follows) for group in groups),
        follows=tuple(map(tuple, merged)),
        back=tuple(sorted((place[source], place[target]) for source, target in back)),
    )


def _bundle(group: list[int], items: list[Item], follows: Links) -> Item:
    """The one item of the group, or all of them in one."""
    first = items[group[0]]
    if len(group) == 1:
        return first
    place = {index: number for number, index in enumerate(group)}
    rows = tuple(tuple(place[later] for later in follows[index] if later in place) for index in group)
    inside = Outline(items=tuple(items[index] for index in group), follows=rows)
    return Item(key=f"{first.key}x", needs=first.needs, inside=inside)


def _with_meetings(outline: Outline) -> Outline:
    """The outline with a meeting point before each group of items that share two or more needs."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, row in enumerate(outline.needs):
        alike[tuple(row)].append(index)
    items, follows = list(outline.items), list(map(list, outline.follows))
    for sources, targets in alike.items():
        if min(len(sources), len(targets)) < 2:
            continue
        for source in sources:
            follows[source] = [*filterfalse(set(targets).__contains__, follows[source]), len(items)]
        follows.append(targets)
        items.append(Item(key=f"{items[targets[0]].key}m"))
    return replace(outline, items=tuple(items), follows=tuple(map(tuple, follows)))


def _reversed(links: Sequence[Sequence[int]]) -> Links:
    """The same edges, from the other end."""
    found: Links = [[] for _ in links]
    for index, row in enumerate(links):
        for other in row:
            found[other].append(index)
    return found


def _order(needs: Sequence[Sequence[int]], follows: Sequence[Sequence[int]]) -> list[int]:
    """Every item after all that it needs."""
    missing = [len(row) for row in needs]
    found = [index for index, count in enumerate(missing) if not count]
    for index in found:  # grows during the loop
        for later in follows[index]:
            missing[later] -= 1
            if not missing[later]:
                found.append(later)
    return found
