"""Excerpts: one line of a source text with carets under a value, safe to print in a terminal.

Pure. finding_view.py reads the source and prints the excerpt."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from rich.cells import cell_len

TAB: Final = "    "
ELLIPSIS: Final = "..."
UNPRINTABLE: Final = "\N{REPLACEMENT CHARACTER}"
BEFORE_SHARE: Final = 3
"""In a line that is cut, a third of the width goes to the text before the value."""
CHARS_A_CELL: Final = 4
"""How many characters are read per cell: combining characters take no cell, so more may fit."""

# As editors and both parsers count lines; `str.splitlines` would also split at form feeds and U+2028.
_line_end = re.compile(r"\r\n|\n|\r")
# A quoted text, a name or number with its dots and dashes, or any one character.
_value = re.compile(r'"(?:[^"\\]|\\.)*"|' + r"'(?:[^']|'')*'|[\w$][\w.$-]*|.", re.DOTALL)


class Excerpt(Struct, frozen=True):
    """A line that fits the terminal, and the line of carets below it."""

    line: str
    carets: str


def lines_of(text: str) -> list[str]:
    """The lines of a string, without their ends."""
    return _line_end.split(text)


def excerpt_of(line: str, column: int, *, width: int, encoding: str = "utf-8") -> Excerpt:
    """The part of a line around a column (counted from 1) that fits `width` cells, with carets under the value."""
    start = min(max(column - 1, 0), len(line))
    # A line may have megabytes; only the part that could be shown is read, though some characters take no cell.
    reach = CHARS_A_CELL * width
    found = _value.match(line, start, start + reach)
    end = max(found.end() if found else start, start + 1)
    before = _parts(line[max(0, start - reach) : start], encoding)
    value = _parts(line[start:end], encoding)
    after = _parts(line[end : end + reach], encoding)
    if start > reach or _cells(before) + _cells(value) + _cells(after) > width:
        before = _tail(before, width // BEFORE_SHARE)
        value = _head(value, width - _cells(before))
        after = _head(after, width - _cells(before) - _cells(value))
    text = "".join([*before, *value, *after]).rstrip()
    return Excerpt(text, " " * _cells(before) + "^" * max(1, _cells(value)))


def printable(text: str, *, encoding: str = "utf-8") -> str:
    """A one-line text without control characters that the encoding can represent; tabs become spaces."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_printable_char(char, encoding) for char in text)


def _printable_char(char: str, encoding: str) -> str:
    if char == "\t":
        return TAB
    # Control characters start escape sequences; format characters (Cf) can reverse the reading direction.
    safe = char if char.isprintable() else UNPRINTABLE
    return safe.encode(encoding, "replace").decode(encoding)


def _parts(text: str, encoding: str) -> list[str]:
    return [printable(char, encoding=encoding) for char in text]


def _cells(parts: list[str]) -> int:
    return sum(map(cell_len, parts))


def _head(parts: list[str], width: int) -> list[str]:
    """As many of the first parts as fit, with an ellipsis if some do not."""
    if _cells(parts) <= width:
        return parts
    kept = _fitting(parts, width - len(ELLIPSIS))
    return [*kept, ELLIPSIS[: max(0, width)]]


def _tail(parts: list[str], width: int) -> list[str]:
    """As many of the last parts as fit, with an ellipsis if some do not."""
    if _cells(parts) <= width:
        return parts
    kept = _fitting(parts[::-1], width - len(ELLIPSIS))
    return [ELLIPSIS[: max(0, width)], *kept[::-1]]


def _fitting(parts: list[str], width: int) -> list[str]:
    used = 0
    for count, part in enumerate(parts):
        used += cell_len(part)
        if used > width:
            return parts[:count]
    return parts
