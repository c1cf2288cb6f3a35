"""Values during evaluation: their types, the frame they are read from, and their names in messages.

Pure. Values are read, compared and changed in expression_path.py, expression_comparison.py and
expression_functions.py."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Final

from handrail.domain.json import Json, json_type
from handrail.domain.language.shape import Shape

WORK_MAX: Final = 2_000_000

_KINDS: Final[Mapping[type, str]] = {
    NoneType: "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_SPOKEN: Final = {
    "null": "null",
    "boolean": "a boolean",
    "number": "a number",
    "string": "a string",
    "array": "a list",
    "object": "an object",
}


class ExpressionRefused(Exception):
    """Something that an expression is not allowed to do: why, and at which column (from 1; 0 if not known yet).

    It becomes an ExpressionError or a TemplateError where the source is known."""

    def __init__(self, reason: str, column: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.column = column


class Frame:
    """One evaluation: the values it reads, and how much work it may still do.

    A unit of work is one evaluated part of an expression, or one character or item read. Each operation is linear;
    the limit bounds what loops in a template can add up to."""

    __slots__ = ("values", "work_left")

    def __init__(self, values: Mapping[str, Json]) -> None:
        self.values = values
        self.work_left = WORK_MAX

    def spend(self, units: int) -> None:
        """Count work before it is done; refused if the limit is used up."""
        if self.work_left < 0:
            raise ExpressionRefused("this needs too much work; make the lists or strings smaller")
        self.work_left -= units


def kind(value: Json) -> str:
    """The JSON type of a value, fast for the usual Python types."""
    return _KINDS.get(type(value)) or json_type(value)


def spoken(*kinds: str) -> str:
    """JSON types as messages name them."""
    words = [_SPOKEN[name] for name in _SPOKEN if name in kinds]
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else "".join(words)


def spoken_shape(shape: Shape) -> str:
    """The types that a shape allows, as messages name them."""
    return spoken(*shape.types) or "anything"
