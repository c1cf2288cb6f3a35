"""The layout: layers from top to bottom, and an order within each layer in which few edges cross.

Pure, and without units: svg_place.py gives layers their heights and rows their widths. An edge that passes layers takes
a slot in each of them, like a node, so that it does not run through boxes."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.interfaces.pictures.outline import Item, Outline, levels

SWEEPS_MAX: Final = 4
LINKS_SWEPT_MAX: Final = 5_000
"""With more links between layers, fewer crossings would not make the picture readable."""

Neighbours: TypeAlias = list[list[int]]


class Node(Struct, frozen=True, kw_only=True):
    """An item with its layer and its row within the layer; a group has its own picture inside."""

    item: Item
    layer: int
    row: int
    inside: Picture | None = None


class Edge(Struct, frozen=True, kw_only=True):
    """A line from one node to another, by index, and its rows in the layers between."""

    source: int
    target: int
    bends: tuple[int, ...] = ()
    back: bool = False
    """Whether it closes a cycle: it goes up, and takes no rows."""


class Picture(Struct, frozen=True, kw_only=True):
    """The nodes and edges of one list of steps, and how many rows each layer has."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    rows: tuple[int, ...]


class _Mesh(Struct):
    """The slots of all layers: items first, then bends; and the neighbours above and below each slot."""

    layers: list[list[int]]
    above: Neighbours
    below: Neighbours
    bends: list[tuple[int, int, list[int]]]

    def crossings(self) -> int:
        """How often edges cross between neighbouring layers."""
        return sum(_inversions(self.below, upper, lower) for upper, lower in pairwise(self.layers))


def placed(outline: Outline) -> Picture:
    """The positions of an outline's items, and of those inside groups."""
    level = levels(outline)
    mesh = _mesh(outline, level)
    _sweep(mesh)
    row = {slot: place for layer in mesh.layers for place, slot in enumerate(layer)}
    nodes = [
        Node(item=item, layer=level[index], row=row[index], inside=placed(item.inside) if item.inside else None)
        for index, item in enumerate(outline.items)
    ]
    edges = [
        Edge(source=source, target=target, bends=tuple(map(row.__getitem__, slots)))
        for source, target, slots in mesh.bends
    ]
    edges += [Edge(source=source, target=target, back=True) for source, target in outline.back]
    return Picture(nodes=tuple(nodes), edges=tuple(edges), rows=tuple(map(len, mesh.layers)))


def _mesh(outline: Outline, level: Sequence[int]) -> _Mesh:
    mesh = _Mesh([[] for _ in range(max(level, default=-1) + 1)], [], [], [])
    for layer in level:
        _new_slot(mesh, layer)
    for source, row in enumerate(outline.follows):
        for target in row:
            slots = [_new_slot(mesh, layer) for layer in range(level[source] + 1, level[target])]
            mesh.bends.append((source, target, slots))
            for upper, lower in pairwise([source, *slots, target]):
                mesh.below[upper].append(lower)
                mesh.above[lower].append(upper)
    return mesh


def _new_slot(mesh: _Mesh, layer: int) -> int:
    slot = len(mesh.above)
    mesh.above.append([])
    mesh.below.append([])
    mesh.layers[layer].append(slot)
    return slot


def _sweep(mesh: _Mesh) -> None:
    """Order each layer by the mean place of its neighbours, downwards and upwards in turn, and keep the best."""
    if sum(map(len, mesh.below)) > LINKS_SWEPT_MAX:
        return
    best, fewest = list(map(list, mesh.layers)), mesh.crossings()
    ways = [(mesh.layers, mesh.above), (mesh.layers[::-1], mesh.below)]
    for layers, beside in ways * SWEEPS_MAX:
        if not fewest:
            break
        _sweep_once(layers, beside)
        crossings = mesh.crossings()
        if crossings < fewest:
            best, fewest = list(map(list, mesh.layers)), crossings
    mesh.layers[:] = best


def _sweep_once(layers: Sequence[list[int]], beside: Neighbours) -> None:
    for fixed, moved in pairwise(layers):
        place = {slot: number for number, slot in enumerate(fixed)}
        stretch = len(fixed) / len(moved)
        means = {
            slot: sum(place[other] for other in beside[slot]) / len(beside[slot]) if beside[slot] else number * stretch
            for number, slot in enumerate(moved)
        }
        moved.sort(key=means.__getitem__)


def _inversions(below: Neighbours, upper: Sequence[int], lower: Sequence[int]) -> int:
    place = {slot: number for number, slot in enumerate(lower)}
    seen: list[int] = []
    found = 0
    for slot in upper:
        ends = [place[other] for other in below[slot]]
        found += sum(len(seen) - bisect(seen, end) for end in ends)
        for end in ends:
            insort(seen, end)
    return found
