"""The horizontal position of each slot in a layered picture.

Pure. The order within a layer comes from layout.py and does not change; each slot moves towards its neighbours in the
layers above and below, as far as the boxes beside it allow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.interfaces.pictures.layout import Edge, Node, Picture

COLUMN_GAP: Final = 22.0
BEND_WIDTH: Final = 6.0
BEND_PULL: Final = 8.0
"""The weight of keeping a long edge straight, relative to that of centring a box."""
LOOSE_PULL: Final = 0.1
ROUNDS_MAX: Final = 16
SETTLING_MAX: Final = 12_000
"""Slots times rounds: a picture with many slots gets fewer rounds, to limit the time."""

Slot: TypeAlias = tuple[int, int]
"""A layer, and a row in it."""
Neighbours: TypeAlias = dict[Slot, list[Slot]]


class _Slots(Struct):
    """The slots of all layers while they move."""

    widths: list[list[float]]
    above: Neighbours
    below: Neighbours
    centres: list[list[float]]


def centres_of(picture: Picture, widths: Sequence[float]) -> list[list[float]]:
    """The middle of each slot, layer by layer, for nodes of these widths; the leftmost edge is at 0."""
    slots = _packed(picture, widths)
    rounds = min(ROUNDS_MAX, SETTLING_MAX // max(1, sum(map(len, slots.widths))))
    for number in range(rounds):
        # First one side at a time, then both together.
        _settle_all(slots, both=number > rounds // 2)
    left = min((row[0] - wide[0] / 2 for row, wide in zip(slots.centres, slots.widths, strict=True)), default=0.0)
    return [[centre - left for centre in row] for row in slots.centres]


def steps_of(edge: Edge, nodes: Sequence[Node]) -> Iterator[tuple[Slot, Slot]]:
    """The slots of neighbouring layers that an edge connects, from top to bottom; none if it leads back."""
    source, target = nodes[edge.source], nodes[edge.target]
    slots = [(source.layer, source.row), *enumerate(edge.bends, source.layer + 1), (target.layer, target.row)]
    return pairwise([] if edge.back else slots)


def _packed(picture: Picture, widths: Sequence[float]) -> _Slots:
    """All slots side by side, each layer around the middle."""
    slots = _Slots([[BEND_WIDTH] * count for count in picture.rows], {}, {}, [])
    for node, width in zip(picture.nodes, widths, strict=True):
        slots.widths[node.layer][node.row] = width
    for upper, lower in chain.from_iterable(steps_of(edge, picture.nodes) for edge in picture.edges):
        slots.below.setdefault(upper, []).append(lower)
        slots.above.setdefault(lower, []).append(upper)
    for layer in slots.widths:
        closest = _closest(layer)
        middle = (closest[-1] + layer[-1] / 2 - layer[0] / 2) / 2
        slots.centres.append([centre - middle for centre in closest])
    return slots


def _settle_all(slots: _Slots, *, both: bool) -> None:
    """Move all slots: one pass down, one pass up."""
    layers = range(len(slots.widths))
    for layer in layers:
        _settle(slots, layer, [slots.above, slots.below] if both else [slots.above])
    for layer in reversed(layers):
        _settle(slots, layer, [slots.below, slots.above] if both else [slots.below])


def _settle(slots: _Slots, layer: int, sides: Sequence[Neighbours]) -> None:
    wanted = [_wanted(slots, (layer, row), sides) for row in range(len(slots.centres[layer]))]
    slots.centres[layer] = _without_overlap(wanted, _closest(slots.widths[layer]))


def _wanted(slots: _Slots, slot: Slot, sides: Sequence[Neighbours]) -> tuple[float, float]:
    """The best position of a slot, between its neighbours, and its weight."""
    layer, row = slot
    is_bend = slots.widths[layer][row] == BEND_WIDTH
    pulled = pulls = 0.0
    for there, place in chain.from_iterable(side.get(slot, ()) for side in sides):
        pull = BEND_PULL if is_bend and slots.widths[there][place] == BEND_WIDTH else 1.0
        pulled, pulls = pulled + pull * slots.centres[there][place], pulls + pull
    if not pulls:
        return slots.centres[layer][row], LOOSE_PULL
    return pulled / pulls, BEND_PULL if is_bend else 1.0


def _closest(widths: Sequence[float]) -> list[float]:
    """The centres of slots that are packed as close as allowed."""
    found = [0.0]
    for left, right in pairwise(widths):
        gap = COLUMN_GAP / 2 if BEND_WIDTH in (left, right) else COLUMN_GAP
        found.append(found[-1] + (left + right) / 2 + gap)
    return found


def _without_overlap(wanted: Sequence[tuple[float, float]], closest: Sequence[float]) -> list[float]:
    """The positions nearest to the wanted ones without overlap: least squares, by pooling adjacent violators."""
    pools: list[tuple[float, float, int]] = []  # place, weight, how many
    for (target, heavy), start in zip(wanted, closest, strict=True):
        place, count = target - start, 1
        while pools and pools[-1][0] >= place:
            before, mass, many = pools.pop()
            place = (before * mass + place * heavy) / (mass + heavy)
            heavy, count = heavy + mass, count + many
        pools.append((place, heavy, count))
    places = [place for place, _, count in pools for _ in range(count)]
    return [place + start for place, start in zip(places, closest, strict=True)]
