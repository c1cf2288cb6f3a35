"""The SVG picture: a definition as one self-contained drawing, in light and dark, without scripts.

Pure. All text of the definition is escaped; there is no other markup than ours. svg_place.py computes positions,
svg_style.py has colours and fonts. Text is cut to an upper bound of its width (text_width.py) and also clipped to its
box, because no bound is right for every font."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import chain
from typing import Final

from handrail.domain.definition.model import Definition
from handrail.interfaces.pictures.caption import MEANING, WHO, Remark, facts_of, name_of, plain, subject_of
from handrail.interfaces.pictures.layout import placed
from handrail.interfaces.pictures.outline import Item, Outline, items_in, kinds_in, outlined, remarks_in
from handrail.interfaces.pictures.svg_card import (
    MARK_WIDTH,
    PAD,
    SMALL_LINE,
    SMALL_PX,
    TEXT_LEFT,
    TILE,
    TITLE_LINE,
    Card,
)
from handrail.interfaces.pictures.svg_place import Box, Curve, Sheet, px, sheet_of
from handrail.interfaces.pictures.svg_style import ICONS, SIGNS, style_sheet
from handrail.interfaces.pictures.text_width import shortened, text_width

ROOT: Final = (
    'xmlns="http://www.w3.org/2000/svg" class="handrail" role="img" aria-labelledby="handrail-title handrail-desc"'
)
TIP: Final = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse"'
MARGIN: Final = 28.0
HEADER: Final = 80.0
WIDTH_MIN: Final = 440.0
LEGEND_LINE: Final = 24.0
LEGEND_TILE: Final = 16.0
NAME_PX: Final = 18.0
LEGEND_GAP: Final = 22.0
BORDER: Final = 2.0
ID_GAP: Final = 12
DESCRIBED_MAX: Final = 100
NEEDS_NAMED_MAX: Final = 20


def svg_text(definition: Definition) -> str:
    """The definition as an SVG document."""
    outline = outlined(definition)
    sheet = sheet_of(placed(outline))
    inner = max(sheet.width, WIDTH_MIN)
    legend = _rows(list(_legend(outline)), inner)
    legend_top = HEADER + sheet.height + MARGIN
    width, height = inner + 2 * MARGIN, legend_top + len(legend) * LEGEND_LINE + MARGIN / 2
    lines = [
        f'<svg {ROOT} width="{px(width)}" height="{px(height)}" viewBox="0 0 {px(width)} {px(height)}">',
        f'<title id="handrail-title">{escape(name_of(definition))}</title>',
        f'<desc id="handrail-desc">{escape(_description(definition, outline))}</desc>',
        f"<style>{style_sheet()}</style>",
        f"<defs>{_tip('handrail-tip', 'tip')}{_tip('handrail-alarm', 'tip alarm')}</defs>",
        f'<rect class="page" x=".5" y=".5" width="{px(width - 1)}" height="{px(height - 1)}" rx="12"/>',
        *_moved(MARGIN, 0, _clipped(inner, HEADER, _header(definition, inner))),
        *_moved(MARGIN + (inner - sheet.width) / 2, HEADER, _drawn(sheet)),
        *_moved(MARGIN, legend_top, chain.from_iterable(legend)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _description(definition: Definition, outline: Outline) -> str:
    """The picture as text, for screen readers."""
    steps = [item for item in items_in(outline) if item.step]
    described = ". ".join(_sentence(item) for item in steps[:DESCRIBED_MAX])
    more = f". And {len(steps) - DESCRIBED_MAX} more" if len(steps) > DESCRIBED_MAX else ""
    about = plain(definition.description)
    return f"{about}{' ' * bool(about)}{', '.join(facts_of(definition))}. {described}{more}."


def _sentence(item: Item) -> str:
    if item.step is None:
        return ""
    after = f", after {', '.join(map(plain, item.needs[:NEEDS_NAMED_MAX]))}" if item.needs else ""
    return f"{plain(item.step.id)}: {item.step.kind.value}, {subject_of(item.step)}{after}"


def _header(definition: Definition, room: float) -> Iterator[str]:
    name = shortened(name_of(definition), NAME_PX, room)
    signature = " ".join(filter(None, (plain(definition.id), plain(definition.version))))
    left = shortened(signature, SMALL_PX, room, mono=True)
    rest_room = room - text_width(left, SMALL_PX, mono=True) - ID_GAP
    rest = shortened(" · ".join(facts_of(definition)), SMALL_PX, rest_room)
    yield f'<text class="name" y="38">{escape(name)}</text>'
    yield f'<text y="56">{_span("id", left)}{_span("soft", rest, gap=ID_GAP)}</text>'


def _drawn(sheet: Sheet) -> Iterator[str]:
    """Edges below, boxes above."""
    for curve in sheet.curves:
        yield _edge(curve)
    for box in sheet.boxes:
        yield from _box(box, box.card) if box.card else _meeting(box)


def _edge(curve: Curve) -> str:
    if curve.back:
        return f'<path class="back" d="{curve.path}" marker-end="url(#handrail-alarm)"/>'
    tip = ' marker-end="url(#handrail-tip)"' if curve.arrow else ""
    return f'<path class="edge" d="{curve.path}"{tip}/>'


def _meeting(box: Box) -> Iterator[str]:
    middle = f'cx="{px(box.x + box.width / 2)}" cy="{px(box.y + box.height / 2)}"'
    yield f'<circle class="meeting" {middle} r="{px(box.width / 2)}"/>'


def _box(box: Box, card: Card) -> Iterator[str]:
    item = box.node.item
    look = "bundle" if item.is_bundle else "frame" if box.inside else "card"
    area = f'width="{px(box.width)}" height="{px(box.height)}" rx="{12 if box.inside else 9}"'
    yield f'<g class="{card.kind.value if card.kind else "many"}" transform="translate({px(box.x)} {px(box.y)})">'
    if item.step:
        yield f"<title>{escape(f'{item.step.kind.value} {plain(item.step.id)}: {subject_of(item.step)}')}</title>"
    yield f'<rect class="{look}" {area}/>'
    # Cut off at the box in any case: the font of the reader may be wider than the one that was measured.
    yield from _clipped(box.width - BORDER, card.height, _words(card))
    yield "</g>"
    if box.inside:
        left = box.x + (box.width - box.inside.width) / 2
        yield from _moved(left, box.y + card.height, _drawn(box.inside))


def _words(card: Card) -> Iterator[str]:
    """The icon, the title, the kind with the id, and the remarks."""
    if card.kind is None:
        yield f'<text class="soft" x="{px(PAD)}" y="17">{escape(card.title[0])}</text>'
        return
    yield f'<rect class="tile" x="{px(PAD)}" y="{px(PAD)}" width="{px(TILE)}" height="{px(TILE)}" rx="7"/>'
    yield f'<g class="icon" transform="translate({px(PAD)} {px(PAD)})">{ICONS[card.kind]}</g>'
    y = PAD + 10.5
    for line in card.title:
        yield f'<text class="title" x="{px(TEXT_LEFT)}" y="{px(y)}">{escape(line)}</text>'
        y += TITLE_LINE
    y -= 1.5
    yield (
        f'<text x="{px(TEXT_LEFT)}" y="{px(y)}">{_span("kind", card.kind.value)}{_span("id", card.name, gap=6)}</text>'
    )
    for remark in card.remarks:
        y += SMALL_LINE
        yield from _remark(remark, TEXT_LEFT, y)


def _remark(remark: Remark, x: float, y: float) -> Iterator[str]:
    if remark.mark in SIGNS:
        place = f"translate({px(x)} {px(y - 9.5)})"
        yield f'<g class="sign {remark.mark.value}" transform="{place}">{SIGNS[remark.mark]}</g>'
        x += MARK_WIDTH
    yield f'<text class="soft" x="{px(x)}" y="{px(y)}">{escape(remark.text)}</text>'


def _legend(outline: Outline) -> Iterator[tuple[float, str]]:
    """The kinds and marks that occur, each with its width."""
    for kind in kinds_in(outline):
        words = f'<text x="22" y="12">{_span("kind", kind.value)}{_span("soft", WHO[kind], gap=5)}</text>'
        tile = f'<rect class="tile" width="{px(LEGEND_TILE)}" height="{px(LEGEND_TILE)}" rx="4"/>'
        icon = f'<g class="icon" transform="scale({LEGEND_TILE / TILE:.3f})">{ICONS[kind]}</g>'
        yield 22 + text_width(f"{kind.value} {WHO[kind]}", SMALL_PX), f'<g class="{kind.value}">{tile}{icon}{words}</g>'
    marks = {remark.mark for item in items_in(outline) for remark in remarks_in(item)}
    for mark in (mark for mark in MEANING if mark in marks):
        sign = f'<g class="sign {mark.value}" transform="translate(2 2.5)">{SIGNS[mark]}</g>'
        yield 18 + text_width(MEANING[mark], SMALL_PX), f'{sign}<text class="soft" x="18" y="12">{MEANING[mark]}</text>'


def _rows(entries: Sequence[tuple[float, str]], room: float) -> list[list[str]]:
    """The entries in rows and columns, as many columns as fit, each as wide as its widest entry."""
    for count in range(max(1, len(entries)), 0, -1):
        columns = [entries[place::count] for place in range(count)]
        widths = [max((width for width, _ in column), default=0.0) for column in columns]
        if sum(widths) + LEGEND_GAP * (count - 1) <= room:
            break
    lefts = [sum(widths[:place]) + LEGEND_GAP * place for place in range(count)]
    return [
        [
            part
            for left, width, (_, markup) in zip(lefts, widths, entries[start : start + count], strict=False)
            for part in _moved(left, start // count * LEGEND_LINE, _clipped(width, LEGEND_LINE, [markup]))
        ]
        for start in range(0, len(entries), count)
    ]


def _span(look: str, text: str, *, gap: int = 0) -> str:
    space = f' dx="{gap}"' if gap else ""
    return f'<tspan class="{look}"{space}>{escape(text)}</tspan>'


def _clipped(width: float, height: float, parts: Iterable[str]) -> Iterator[str]:
    """The parts in a viewport of this size, which clips them. Unlike a clip path, it needs no id."""
    yield f'<svg width="{px(width)}" height="{px(height)}">'
    yield from parts
    yield "</svg>"


def _moved(x: float, y: float, parts: Iterable[str]) -> Iterator[str]:
    yield f'<g transform="translate({px(x)} {px(y)})">'
    yield from parts
    yield "</g>"


def _tip(name: str, look: str) -> str:
    return f'<marker id="{name}" {TIP} orient="auto"><path class="{look}" d="M0 0L8 4L0 8L2 4z"/></marker>'
