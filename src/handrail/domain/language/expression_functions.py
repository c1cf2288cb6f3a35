"""The functions of expressions: which types they take, what they return, what they do.

Pure. Functions that need more than values (a path for `default` and `exists`, a pattern for `matches`) are in
expression_compiler.py; the filters of templates are in template_filters.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from handrail.domain.json import Json
from handrail.domain.language.expression_value import ExpressionRefused, Frame
from handrail.domain.language.shape import BOOLEAN, NUMBER, STRING, Shape, array_shape

TEXT: Final = frozenset({"string"})
LIST: Final = frozenset({"array"})
SIZED: Final = frozenset({"string", "array", "object"})
NUMERIC: Final = frozenset({"number"})
ANYTHING: Final = frozenset[str]()
WORDABLE: Final = frozenset({"string", "number", "boolean"})
DIGITS_BITS_MAX: Final = 1_024
TEXT_PARTS_MAX: Final = 6
TEXT_LENGTH_MAX: Final = 10_000


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


def _word(frame: Frame, value: Json) -> str:
    match value:
        case str():
            frame.spend(len(value))
            return value.strip().lower()
        case int() | float():
            return _number_word(value)
        case list() | tuple():
            frame.spend(len(value))
            return f"[{', '.join(_word(frame, item) for item in value if not isinstance(item, list | tuple))}]"
        case _:
            return ""


def _number_word(value: float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        # No JSON number of a journal is longer, and writing a huge one takes long.
        return str(value) if value.bit_length() <= DIGITS_BITS_MAX else ""
    return f"{value:.0f}" if value.is_integer() else repr(value)


def _is_number(_: Frame, value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(frame: Frame, *parts: str | float) -> str:
    text = "".join(part if isinstance(part, str) else _number_word(part) for part in parts)
    frame.spend(len(text))
    if len(text) > TEXT_LENGTH_MAX:
        raise ExpressionRefused(f"the text is longer than {TEXT_LENGTH_MAX:,} characters")
    return text


def _column(frame: Frame, items: list[Json], name: str) -> list[Json]:
    frame.spend(len(items))
    return [item[name] for item in items if isinstance(item, Mapping) and name in item]


FUNCTIONS: Final[Mapping[str, ExpressionFunction]] = {
    "len": ExpressionFunction(takes=(SIZED,), gives=always(NUMBER), apply=_length),
    "lower": text_function(str.lower),
    "upper": text_function(str.upper),
    "word": ExpressionFunction(takes=(ANYTHING,), gives=always(STRING), apply=_word),
    "text": ExpressionFunction(
        takes=(WORDABLE,) * TEXT_PARTS_MAX, gives=always(STRING), apply=_text, optional=TEXT_PARTS_MAX - 1
    ),
    "column": ExpressionFunction(takes=(LIST, TEXT), gives=always(array_shape(None)), apply=_column),
    "is_number": ExpressionFunction(takes=(ANYTHING,), gives=always(BOOLEAN), apply=_is_number),
    "starts_with": ExpressionFunction(takes=(TEXT, TEXT), gives=always(BOOLEAN), apply=_starts_with),
    "ends_with": ExpressionFunction(takes=(TEXT, TEXT), gives=always(BOOLEAN), apply=_ends_with),
}
