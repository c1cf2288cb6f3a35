"""Places: a layered picture in pixels. Boxes get a size and a corner, edges become smooth paths.

Pure. Sizes come from the text (svg_card.py), positions in a layer from svg_settle.py. Groups are placed from the inside
out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from math import ceil, sqrt
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.interfaces.pictures.layout import Edge, Node, Picture
from handrail.interfaces.pictures.svg_card import HEADER_TEXT_WIDTH_MAX, Card, card_of
from handrail.interfaces.pictures.svg_settle import centres_of, steps_of

LAYER_GAP: Final = 34.0
LAYER_GAP_MORE: Final = 56.0
GRID_GAP: Final = 14.0
FRAME_PAD: Final = 16.0
MEETING_SIZE: Final = 8.0
ARRIVAL: Final = 7.0
"""The last part of every edge is vertical, so that its arrow head points down."""
SWING_MIN: Final = 10.0
BACK_ROOM: Final = 46.0
GRID_LOOK: Final = 1.5
"""The ratio of width to height that a bundle should have."""

Band: TypeAlias = tuple[float, float]
"""The top and the bottom of a layer."""


class Box(Struct, frozen=True, kw_only=True):
    """A node with its corner and size; a group with what is inside it, a meeting point without a card."""

    node: Node
    card: Card | None
    x: float
    y: float
    width: float
    height: float
    inside: Sheet | None = None


class Curve(Struct, frozen=True, kw_only=True):
    """The path of an edge, with an arrow head unless it ends in a meeting point."""

    path: str
    arrow: bool = True
    back: bool = False


class Sheet(Struct, frozen=True, kw_only=True):
    """Everything in one picture, placed."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    curves: tuple[Curve, ...]


class _Size(Struct, frozen=True):
    """The size and content of a node before it is placed."""

    width: float
    height: float
    card: Card | None = None
    inside: Sheet | None = None

    def at(self, node: Node, x: float, y: float) -> Box:
        """The node's box with its corner here."""
        return Box(node=node, card=self.card, x=x, y=y, width=self.width, height=self.height, inside=self.inside)


def sheet_of(picture: Picture) -> Sheet:
    """The picture placed in pixels, its top left corner at 0, 0."""
    sizes = _sizes(picture.nodes)
    centres = centres_of(picture, [size.width for size in sizes])
    bands = _bands(picture, sizes, centres)
    boxes = []
    for node, size in zip(picture.nodes, sizes, strict=True):
        top, bottom = bands[node.layer]
        boxes.append(size.at(node, centres[node.layer][node.row] - size.width / 2, (top + bottom - size.height) / 2))
    room = BACK_ROOM * any(edge.back for edge in picture.edges)
    return Sheet(
        width=max((box.x + box.width for box in boxes), default=0.0) + room,
        height=bands[-1][1] if bands else 0.0,
        boxes=tuple(boxes),
        curves=tuple(_curves(picture.edges, boxes, centres, bands)),
    )


def grid_of(picture: Picture) -> Sheet:
    """A bundle placed: its strands in columns and rows, each from top to bottom."""
    strands, sizes = _strands(picture), _sizes(picture.nodes)
    gap = GRID_GAP if len(strands) == len(sizes) else LAYER_GAP + GRID_GAP
    step = max(size.width for size in sizes) + GRID_GAP
    heights = [sum(sizes[index].height + LAYER_GAP for index in strand) - LAYER_GAP for strand in strands]
    columns = min(len(strands), ceil(sqrt(len(strands) * GRID_LOOK * (max(heights) + gap) / step)))
    boxes: dict[int, Box] = {}
    top = 0.0
    for start in range(0, len(strands), columns):
        for column, strand in enumerate(strands[start : start + columns]):
            boxes |= _stacked(strand, picture.nodes, sizes, (column + 0.5) * step - GRID_GAP / 2, top)
        top += max(heights[start : start + columns]) + gap
    return Sheet(
        width=columns * step - GRID_GAP,
        height=top - gap,
        boxes=tuple(boxes[index] for index in range(len(boxes))),
        curves=tuple(_straight(boxes[edge.source], boxes[edge.target]) for edge in picture.edges),
    )


def _stacked(
    strand: Sequence[int], nodes: Sequence[Node], sizes: Sequence[_Size], x: float, y: float
) -> dict[int, Box]:
    """The boxes of one chain, one below the other, centred on x."""
    boxes = {}
    for index in strand:
        boxes[index] = sizes[index].at(nodes[index], x - sizes[index].width / 2, y)
        y += sizes[index].height + LAYER_GAP
    return boxes


def _sizes(nodes: Sequence[Node]) -> list[_Size]:
    """The size of every node; all steps without an inside get the width of the widest, which looks tidier."""
    found = [_size(node) for node in nodes]
    wide = max((size.width for size in found if size.card and not size.inside), default=0.0)
    return [_Size(wide, size.height, size.card) if size.card and not size.inside else size for size in found]


def _size(node: Node) -> _Size:
    if not node.item.is_shown:
        return _Size(MEETING_SIZE, MEETING_SIZE)
    if node.inside is None:
        card = card_of(node.item)
        return _Size(card.width, card.height, card)
    inside = grid_of(node.inside) if node.item.is_bundle else sheet_of(node.inside)
    card = card_of(node.item, text_width_max=HEADER_TEXT_WIDTH_MAX)
    width = max(card.width, inside.width + 2 * FRAME_PAD)
    return _Size(width, card.height + inside.height + FRAME_PAD, card, inside)


def _strands(picture: Picture) -> list[list[int]]:
    """The nodes of a bundle in rows."""
    after = {edge.source: edge.target for edge in picture.edges}
    strands = [[index] for index in sorted(set(range(len(picture.nodes))) - set(after.values()))]
    for strand in strands:
        while strand[-1] in after:
            strand.append(after[strand[-1]])
    return strands


def _bands(picture: Picture, sizes: Sequence[_Size], centres: list[list[float]]) -> list[Band]:
    """The top and bottom of each layer; the further edges move sideways between two layers, the larger the gap."""
    heights = [0.0] * len(picture.rows)
    for node, size in zip(picture.nodes, sizes, strict=True):
        heights[node.layer] = max(heights[node.layer], size.height)
    swings = [0.0] * len(picture.rows)
    for (layer, row), (below, place) in chain.from_iterable(steps_of(edge, picture.nodes) for edge in picture.edges):
        swings[layer] = max(swings[layer], abs(centres[layer][row] - centres[below][place]))
    bands, top = [], 0.0
    for height, swing in zip(heights, swings, strict=True):
        bands.append((top, top + height))
        top += height + LAYER_GAP + min(LAYER_GAP_MORE, swing * 0.07)
    return bands


def _curves(
    edges: Sequence[Edge], boxes: Sequence[Box], centres: list[list[float]], bands: list[Band]
) -> Iterator[Curve]:
    leaving = Counter(edge.source for edge in edges)
    for edge in edges:
        source, target = boxes[edge.source], boxes[edge.target]
        if edge.back:
            yield _back(source, target)
            continue
        rows = enumerate([source.node.row, *edge.bends, target.node.row], source.node.layer)
        # The only line out of a box may start a little beside the middle.
        loose = leaving[edge.source] == 1 and source.card is not None
        yield _curve(source, target, _straightened([centres[layer][row] for layer, row in rows], loose=loose), bands)


def _straightened(xs: list[float], *, loose: bool) -> list[float]:
    """The positions without small sideways moves; the last one is kept, and the first unless it is loose."""
    for place in reversed(range(0 if loose else 1, len(xs) - 1)):
        if abs(xs[place] - xs[place + 1]) < SWING_MIN:
            xs[place] = xs[place + 1]
    return xs


def _curve(source: Box, target: Box, xs: list[float], bands: list[Band]) -> Curve:
    """A line through these positions, one per layer: straight beside boxes, curved between layers."""
    parts = [f"M{px(xs[0])} {px(source.y + source.height)}"]
    for layer, (x, there) in enumerate(pairwise(xs), source.node.layer):
        high, low = bands[layer][1], bands[layer + 1][0] - ARRIVAL
        half = px((high + low) / 2)
        if x != there:
            parts.append(f"V{px(high)}C{px(x)} {half} {px(there)} {half} {px(there)} {px(low)}")
    parts.append(f"V{px(target.y)}")
    return Curve(path="".join(parts), arrow=target.card is not None)


def _straight(upper: Box, lower: Box) -> Curve:
    return Curve(path=f"M{px(upper.x + upper.width / 2)} {px(upper.y + upper.height)}V{px(lower.y)}")


def _back(source: Box, target: Box) -> Curve:
    """A line that leads back upwards, around the right side of the boxes; to itself: a small loop."""
    right, end_right = source.x + source.width, target.x + target.width
    out = px(max(right, end_right) + BACK_ROOM - 6)
    start, end = px(source.y + source.height * 0.6), px(target.y + target.height * 0.4)
    return Curve(path=f"M{px(right)} {start}C{out} {start} {out} {end} {px(end_right)} {end}", back=True)


def px(value: float) -> str:
    """A coordinate with one digit at most."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")  # plus zero turns -0.0 into 0.0
