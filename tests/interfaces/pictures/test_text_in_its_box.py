"""Text in the SVG stays in its box, measured with the widest fonts that a browser is likely to choose.

The advance widths below are in 1/2048 em. They were read with fontTools from the `hmtx` tables of DejaVu Sans 2.37 and
DejaVu Sans Bold 2.37 (ASCII from the space on, then the other letters used here, in bold); an ideograph is one em in
Noto Sans CJK, and an emoji 2550 in Noto Color Emoji 2.042. DejaVu Sans Mono has 1233 for every letter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple
from unicodedata import category, east_asian_width
from xml.etree import ElementTree

import pytest

from handrail.domain.definition.authoring import definition_from
from handrail.interfaces.pictures.svg import svg_text
from handrail.interfaces.pictures.text_width import shortened, text_width, wrapped

REGULAR = """
651 821 942 1716 1303 1946 1597 563 799 799 1024 1716 651 739 651 690 1303 1303 1303 1303 1303 1303 1303 1303
1303 1303 690 690 1716 1716 1716 1087 2048 1401 1405 1430 1577 1294 1178 1587 1540 604 604 1343 1141 1767 1532
1612 1235 1612 1423 1300 1251 1499 1401 2025 1403 1251 1403 799 690 799 1716 1024 1024 1255 1300 1126 1300 1260
721 1300 1298 569 569 1186 569 1995 1298 1253 1300 1300 842 1067 803 1298 1212 1675 1212 1212 1075 1303 690 1303
1716
"""
BOLD = """
713 934 1067 1716 1425 2052 1786 627 936 936 1071 1716 778 850 778 748 1425 1425 1425 1425 1425 1425 1425 1425
1425 1425 819 819 1716 1716 1716 1188 2048 1585 1561 1503 1700 1399 1399 1681 1714 762 762 1587 1305 2038 1714
1741 1501 1741 1577 1475 1397 1663 1585 2259 1579 1483 1485 936 748 936 1716 1024 1024 1382 1466 1214 1466 1389
891 1466 1458 702 702 1362 702 2134 1458 1407 1466 1466 1010 1219 979 1458 1335 1892 1321 1335 1192 1458 748
1458 1716
"""
OTHER = """
2222 2146 702 2390 2241 2507 2530 2715 2404 1382 1389 2038 1435 1390 1407 1466 1335 2175 2264 1315 1491 1204 1407 703
820 1160 1239 1426 1482 1364 1233 1553 1399 2826 2826 2755 2755 2048 2048 778 1716
"""
LETTERS = "ÆæíŒœ" + "ЖШЩЮаежикорушщя" + "אדהוזכלםמערשת" + "سشصض" + "—…·→"
OTHERS = dict(zip(LETTERS, map(int, OTHER.split()), strict=True))
ASCII = [chr(code) for code in range(32, 127)]
FONTS = {name: dict(zip(ASCII, map(int, table.split()), strict=True)) for name, table in (("", REGULAR), ("b", BOLD))}
EMOJI, MONO, IDEOGRAPH = 2550, 1233, 2048

LOOKS = {"name": (18.0, "b"), "title": (13.5, "b"), "kind": (11.0, "b"), "soft": (11.0, ""), "id": (11.0, "mono")}
BOXES = {"page", "card", "frame", "bundle"}
SVG = "{http://www.w3.org/2000/svg}"
TITLES = {
    "400 letters": "Release notes and everything that has to be written before they are published. " * 5,
    "no spaces": "x" * 400,
    "wide letters": "W" * 400,
    "wide signs": "%@mM" * 100,
    "ideographs": "日本語のとても長い題名" * 36,
    "emoji": "🚀👩⚠️" * 100,
    "hebrew": "שלום עולם זה כותרת ארוכה מאוד " * 14,
    "arabic": "ششش سسس صصض " * 33,
    "cyrillic": "Широкая Щука ЖЖЖ шшш ЮЮЮ " * 16,
    "ligatures": "ÆæŒœ — … · → " * 30,
    "combining": "e\u0301\u0316\u0301" * 100,
    "short": "Tag",
}


class Span(NamedTuple):
    """A piece of text from left to right, the viewport that clips it and the box that it belongs to."""

    text: str
    left: float
    right: float
    clip: tuple[float, float] | None
    box: tuple[float, float]


def hostile(text: str) -> str:
    special = {"title": text, "when": text, "undo": {"tool": text}, "on_failure": "continue"}
    name = f"s{text[:90]}"
    many = [{"id": f"m{number}", "tool": text, "after": []} for number in range(9)]
    steps: list[dict[str, Any]] = [
        {"id": name, "prompt": text, "confirm": True, "checks": [{"rule": "x"}], **special},
        {"id": "person", "approve": text, "by": [text, text], "expires": text, "after": [name]},
        {"id": "loop", "each": text, "as": "x", "after": ["person"], "steps": [{"id": "in", "tool": text}, *many]},
        {"id": "again", "repeat": {"until": text}, "steps": [{"id": "call", "workflow": text}], "after": []},
        {"id": "cycle", "tool": text, "after": ["cycle", name]},
    ]
    return svg_text(definition_from({"id": text[:90], "name": text, "version": text, "deadline": text, "steps": steps}))


def spans(svg: str) -> Iterator[Span]:
    """Every piece of text in the picture."""
    root = ElementTree.fromstring(svg)
    return inside(root, 0.0, None, (0.0, float(root.get("width", 0))))


def inside(
    element: ElementTree.Element, left: float, clip: tuple[float, float] | None, box: tuple[float, float]
) -> Iterator[Span]:
    for child in element.findall(f"{SVG}rect"):
        if child.get("class") in BOXES:
            box = left, left + float(child.get("width", 0))
    for child in element:
        at = left
        if child.get("transform", "").startswith("translate("):
            at += float(child.get("transform", "").removeprefix("translate(").split()[0])
        if child.tag == f"{SVG}text":
            yield from pieces(child, at, clip, box)
        elif child.tag == f"{SVG}svg":
            yield from inside(child, at, (at, at + float(child.get("width", 0))), box)
        else:
            yield from inside(child, at, clip, box)


def pieces(
    element: ElementTree.Element, left: float, clip: tuple[float, float] | None, box: tuple[float, float]
) -> Iterator[Span]:
    at = left + float(element.get("x", 0))
    for part in element.findall(f"{SVG}tspan") or [element]:
        at += float(part.get("dx", 0))
        wide = drawn_width(part.text or "", part.get("class", ""))
        yield Span(part.text or "", at, at + wide, clip, box)
        at += wide


def drawn_width(text: str, look: str) -> float:
    px, font = LOOKS[look]
    return px / 2048 * sum(advance(char, font) for char in text)


def advance(char: str, font: str) -> int:
    if category(char) == "Mn":
        return 0
    if font == "mono" and char.isascii():
        return MONO
    if char.isascii():
        return FONTS[font][char]
    if category(char) == "So":
        return EMOJI
    return IDEOGRAPH if east_asian_width(char) == "W" else OTHERS[char]


@pytest.mark.parametrize("title", TITLES)
def test_whatever_an_author_writes_ends_before_the_edge_of_its_box(title: str) -> None:
    found = list(spans(hostile(TITLES[title])))
    assert len(found) > 40
    for span in found:
        assert span.box[0] < span.left, span
        assert span.right <= span.box[1] - 2, span


@pytest.mark.parametrize("title", TITLES)
def test_a_text_that_is_wider_than_any_font_foresees_is_clipped_inside_its_box(title: str) -> None:
    for span in spans(hostile(TITLES[title])):
        assert span.clip is not None, span
        assert span.box[0] <= span.clip[0] <= span.left, span
        assert span.right <= span.clip[1] < span.box[1], span


@pytest.mark.parametrize("char", [*ASCII, *OTHERS])
def test_a_letter_is_expected_to_be_as_wide_as_in_the_widest_font(char: str) -> None:
    assert text_width(char, 2048) >= max(advance(char, "b"), advance(char, ""))
    assert text_width(char, 2048, mono=True) >= advance(char, "mono")


def test_a_page_that_the_picture_is_pasted_into_does_not_change_how_wide_its_text_is() -> None:
    style = svg_text(definition_from({"id": "x", "steps": []}))
    for rule in ("direction:ltr", "text-anchor:start", "letter-spacing:0", "word-spacing:0", "text-transform:none"):
        assert rule in style
    assert ".handrail svg{overflow:hidden}" in style


def test_where_not_even_an_ellipsis_fits_nothing_is_drawn() -> None:
    assert shortened("text", 10, 9) == ""
    assert shortened("text", 10, 15) == "…"
    assert shortened("text", 10, 17) == "t…"
    assert shortened("text", 10, 100) == "text"


def test_a_line_breaks_between_words_and_a_long_word_within() -> None:
    assert wrapped("one two three", 10, 60) == ("one two", "three")
    assert wrapped("one two", 10, 80) == ("one two",)
    assert wrapped("onetwothree", 10, 60) == ("onetwoth", "ree")
    assert wrapped("one two three four five six", 10, 60) == ("one two", "three f…")


def test_a_cut_does_not_part_a_mark_from_its_letter() -> None:
    first, second = wrapped("e\u0301" * 20, 10, 60)
    assert (first[0], first[-1]) == ("e", "\u0301")
    assert second.startswith("e\u0301")
    assert second.endswith("\u0301…")
