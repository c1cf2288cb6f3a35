"""Cards: the text in a box of the SVG picture, broken into lines and measured.

Pure. A card is placed in svg_place.py and painted in svg.py; text_width.py measures text."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from handrail.domain.definition.model import Kind
from handrail.interfaces.pictures.caption import Remark, Sign, plain, subject_of
from handrail.interfaces.pictures.outline import Item, bundle_text, remarks_in
from handrail.interfaces.pictures.text_width import shortened, text_width, wrapped

TITLE_PX: Final = 13.5
SMALL_PX: Final = 11.0
TITLE_LINE: Final = 18.0
SMALL_LINE: Final = 16.0
PAD: Final = 11.0
TILE: Final = 28.0
TEXT_LEFT: Final = PAD + TILE + 10
MARK_WIDTH: Final = 15.0
TEXT_WIDTH_MIN: Final = 96.0
TEXT_WIDTH_MAX: Final = 250.0
HEADER_TEXT_WIDTH_MAX: Final = 420.0


class Card(Struct, frozen=True, kw_only=True):
    """A box's lines and the room they take."""

    kind: Kind | None
    name: str
    title: tuple[str, ...]
    remarks: tuple[Remark, ...]
    width: float
    height: float


def card_of(item: Item, *, text_width_max: float = TEXT_WIDTH_MAX) -> Card:
    """The card of a step or a bundle, as wide as its lines need."""
    if item.step is None:
        words = bundle_text(item)
        width = 2 * PAD + text_width(words, SMALL_PX)
        return Card(kind=None, name="", title=(words,), remarks=(), width=width, height=SMALL_LINE + PAD)
    kind = item.step.kind
    title = wrapped(subject_of(item.step) or plain(item.step.id), TITLE_PX, text_width_max)
    room = text_width_max - text_width(f"{kind.value}  ", SMALL_PX)
    name = shortened(plain(item.step.id), SMALL_PX, room, mono=True)
    remarks = _remark_lines(item, text_width_max)
    second = text_width(f"{kind.value}  ", SMALL_PX) + text_width(name, SMALL_PX, mono=True)
    lines = [text_width(line, TITLE_PX) for line in title] + [second]
    lines += [MARK_WIDTH * _is_marked(remark) + text_width(remark.text, SMALL_PX) for remark in remarks]
    return Card(
        kind=kind,
        name=name,
        title=title,
        remarks=remarks,
        width=TEXT_LEFT + max(TEXT_WIDTH_MIN, *lines) + PAD,
        height=2 * PAD + TITLE_LINE * len(title) + SMALL_LINE * (1 + len(remarks)) - 4,
    )


def _remark_lines(item: Item, room: float) -> tuple[Remark, ...]:
    """First those without a mark, as many on a line as fit, then the marked ones on a line each."""
    found = remarks_in(item)
    lines: list[Remark] = []
    for remark in sorted(found, key=_is_marked):
        joined = f"{lines[-1].text} · {remark.text}" if lines else ""
        if joined and not _is_marked(remark) and text_width(joined, SMALL_PX) <= room:
            lines[-1] = Remark(Sign.PLAIN, joined)
        else:
            lines.append(remark)
    return tuple(
        Remark(remark.mark, shortened(remark.text, SMALL_PX, room - MARK_WIDTH * _is_marked(remark)))
        for remark in lines
    )


def _is_marked(remark: Remark) -> bool:
    return remark.mark not in (Sign.PLAIN, Sign.AFTER)
