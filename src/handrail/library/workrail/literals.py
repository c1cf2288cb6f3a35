"""Writes JSON values as literals of an expression."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from handrail.domain.json import Json

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def text_literal(text: str) -> str:
    """A string in quotes."""
    return '"' + "".join(_ESCAPES.get(sign) or _printable(sign) for sign in text) + '"'


def number_literal(number: float) -> str:
    """A number, without a fraction if it is whole."""
    return str(int(number)) if number == int(number) else repr(number)


def list_literal(items: Iterable[Json]) -> str:
    """A list of plain values, each once."""
    return f"[{', '.join(dict.fromkeys(map(literal, items)))}]"


def literal(value: Json) -> str:
    """A plain value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return number_literal(value)
        case str():
            return text_literal(value)
        case _:
            return "null"


def _printable(sign: str) -> str:
    return f"\\u{ord(sign):04x}" if ord(sign) < ord(" ") else sign
