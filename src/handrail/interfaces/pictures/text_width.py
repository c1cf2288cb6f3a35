"""Text widths: how wide a string may become in a browser's font, and text cut or wrapped to a width.

Pure. An SVG cannot measure its own text and does not know which font it will be drawn with, so a width here is an upper
bound: the widest of the common sans-serif fonts in bold, plus a margin. Drawing is in svg.py, which also clips."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from unicodedata import category, east_asian_width

# Advance widths of DejaVu Sans Bold 2.37 in em, rounded up. It is the default of many Linux systems and, with Verdana,
# whose shapes it shares, the widest font that a browser is likely to choose. `%` is Verdana's: wider by a quarter.
ADVANCES: Final[Mapping[float, str]] = {
    0.35: " 'ijl",
    0.40: ",./:;IJ\\|·",
    0.46: "!()-[]f",
    0.53: '"*_`rt',
    0.60: "?csz",
    0.65: "Lx",
    0.70: "$0123456789EFTaekovy",
    0.74: "CPSYZbdghnpqu{}",
    0.78: "ABKRVX",
    0.84: "#+<=>DGHNU^~→←",
    0.88: "&OQ",
    0.95: "w",
    1.01: "@M—…",
    1.05: "m",
    1.11: "Wæœŵŉфжшщюыљњ",
    1.33: "%ÆŒŴΉΎΜМЖФШЩЦЪЫЮЉЊ",
    1.42: "سشصضڪښڛڜڝڞ",
}
EM: Final[Mapping[str, float]] = {char: em for em, chars in ADVANCES.items() for char in chars}
# Other characters by their Unicode category: a table of all letters is not worth it.
CATEGORY_EM: Final[Mapping[str, float]] = {
    "Mn": 0.0,
    "Me": 0.0,
    "Ll": 0.87,
    "Lu": 0.94,
    "So": 1.3,
    "Sm": 1.3,
    "Sk": 1.3,
}
OTHER_EM: Final = 1.05
MONO_EM: Final = 0.62
MARGIN: Final = 1.05
"""For fonts that are still a little wider, and for browsers that round each letter to whole pixels."""


def text_width(text: str, px: float, *, mono: bool = False) -> float:
    """The most pixels that the text is wide at this font size."""
    return px * sum(_em(char, mono=mono) for char in text)


def shortened(text: str, px: float, room: float, *, mono: bool = False) -> str:
    """The text; if it is too wide, its start and an ellipsis; empty if not even an ellipsis fits."""
    if text_width(text, px, mono=mono) <= room:
        return text
    room -= text_width("…", px, mono=mono)
    return text[: _fitting(text, px, room, mono=mono)].rstrip() + "…" if room >= 0 else ""


def wrapped(text: str, px: float, room: float) -> tuple[str, ...]:
    """The text on one line or two, broken between words where it can be, the second cut with an ellipsis."""
    if text_width(text, px) <= room:
        return (text,)
    count = _fitting(text, px, room)
    if text[count] != " " and " " in text[:count]:
        count = text.rindex(" ", 0, count)
    return text[:count].rstrip(), shortened(text[count:].strip(), px, room)


def _fitting(text: str, px: float, room: float, *, mono: bool = False) -> int:
    """How many characters fit. A combining mark has no width, so a cut never separates it from its letter."""
    for count, char in enumerate(text):
        room -= px * _em(char, mono=mono)
        if room < 0:
            return count
    return len(text)


def _em(char: str, *, mono: bool) -> float:
    if mono and char.isascii():
        return MONO_EM * MARGIN
    return MARGIN * (EM[char] if char in EM else _em_by_category(char))


def _em_by_category(char: str) -> float:
    kind = category(char)
    if kind != "So" and east_asian_width(char) in "WF":
        return OTHER_EM
    return CATEGORY_EM.get(kind, OTHER_EM)
