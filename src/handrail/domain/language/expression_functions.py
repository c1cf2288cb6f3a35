"""The functions of expressions: which types they take, what they return, what they do.

Pure. Functions that need more than values (a path for `default` and `exists`, a pattern for `matches`) are in
expression_compiler.py; the filters of templates are in template_filters.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from handrail.domain.json import Json
from handrail.domain.language.expression_value import Frame
from handrail.domain.language.shape import BOOLEAN, NUMBER, STRING, Shape

TEXT: Final = frozenset({"string"})
LIST: Final = frozenset({"array"})
SIZED: Final = frozenset({"string", "array", "object"})
NUMERIC: Final = frozenset({"number"})
ANYTHING: Final = frozenset[str]()


class ExpressionFunction(Struct, frozen=True):
    """A function of values; the last `optional` arguments may be left out."""

    takes: tuple[frozenset[str], ...]
    gives: Callable[[Shape], Shape]
    """The shape of the result, from that of the first argument."""
    apply: Callable[..., Json]
    """Called with the frame and the values, which have the types that it takes."""
    optional: int = 0


def always(shape: Shape) -> Callable[[Shape], Shape]:
    """A result whose shape does not depend on the argument."""
    return lambda _: shape


def text_function(change: Callable[[str], str]) -> ExpressionFunction:
    """A function from one string to another of about the same length."""

    def apply(frame: Frame, text: str) -> str:
        frame.spend(len(text))
        return change(text)

    return ExpressionFunction(takes=(TEXT,), gives=always(STRING), apply=apply)


def _length(_: Frame, value: str) -> int:
    return len(value)


def _starts_with(frame: Frame, text: str, start: str) -> bool:
    frame.spend(len(start))
    return text.startswith(start)


def _ends_with(frame: Frame, text: str, end: str) -> bool:
    frame.spend(len(end))
    return text.endswith(end)


FUNCTIONS: Final[Mapping[str, ExpressionFunction]] = {
    "len": ExpressionFunction(takes=(SIZED,), gives=always(NUMBER), apply=_length),
    "lower": text_function(str.lower),
    "upper": text_function(str.upper),
    "starts_with": ExpressionFunction(takes=(TEXT, TEXT), gives=always(BOOLEAN), apply=_starts_with),
    "ends_with": ExpressionFunction(takes=(TEXT, TEXT), gives=always(BOOLEAN), apply=_ends_with),
}
