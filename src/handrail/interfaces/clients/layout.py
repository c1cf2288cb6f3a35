"""The layout of text: line ends and indentation, so that an addition looks like the rest. Pure."""

from __future__ import annotations

import re
from typing import Final

DEFAULT_INDENT: Final = "  "
_indented = re.compile(r"^([ \t]+)\S", re.MULTILINE)


def newline_of(text: str) -> str:
    """The line break that the text uses."""
    return "\r\n" if "\r\n" in text else "\n"


def indent_of(text: str) -> str:
    """One step of indentation, as the text's first indented line shows it."""
    found = _indented.search(text)
    return found[1] if found else DEFAULT_INDENT


def margin_at(text: str, at: int) -> str:
    """The indentation of the line at this position."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def line_end(text: str, at: int) -> int:
    """The end of the line at this position: before its line break, or at the end of the text."""
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end


def line_start(text: str, at: int) -> int:
    """The start of the line at this position."""
    return text.rfind("\n", 0, at) + 1


def after_line(text: str, at: int) -> int:
    """The start of the next line; the end of the text if there is none."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1
