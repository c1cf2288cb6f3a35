"""The filters of templates, and how a value is written in text.

Pure. A filter is a function of the value before the `|`. `default` needs the path, not its value: it is in
expression_compiler.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Final

import msgspec

from handrail.domain.json import Json
from handrail.domain.language.expression_functions import (
    ANYTHING,
    FUNCTIONS,
    LIST,
    NUMERIC,
    TEXT,
    ExpressionFunction,
    always,
    text_function,
)
from handrail.domain.language.expression_value import ExpressionRefused, Frame
from handrail.domain.language.shape import ANY, NULL, NUMBER, STRING, Shape, either

DIGITS_MAX: Final = 10

_WORD: Final = re.compile(r"[^-\s({\[<]+")


def text_of(value: Json) -> str:
    """A value as text: strings as they are, everything else as compact JSON; null is refused."""
    if isinstance(value, str):
        return value
    if value is None:
        raise ExpressionRefused("is null: use default(...)")  # an empty gap in a string would go unnoticed
    return json_text(value)


def json_text(value: Json) -> str:
    """Compact JSON."""
    if isinstance(value, float) and not isfinite(value):
        raise ExpressionRefused("is not a finite number")
    try:
        return msgspec.json.encode(value).decode()
    except (ValueError, RecursionError):  # half a character, thousands of digits, thousands of levels
        raise ExpressionRefused("can't be written as JSON") from None


def _title(text: str) -> str:
    return _WORD.sub(lambda word: word[0].capitalize(), text)


def _item_shape(shape: Shape) -> Shape:
    return either(shape.items or ANY, NULL)


def _first(_: Frame, items: Sequence[Json]) -> Json:
    return items[0] if items else None


def _last(_: Frame, items: Sequence[Json]) -> Json:
    return items[-1] if items else None


def _join(frame: Frame, items: Sequence[Json], separator: str = "") -> str:
    texts: list[str] = []
    for index, item in enumerate(items):
        try:
            text = text_of(item)
        except ExpressionRefused as refused:
            raise ExpressionRefused(f"item [{index}] {refused.reason}") from None
        frame.spend(1 + len(text) + len(separator))
        texts.append(text)
    return separator.join(texts)


def _lines(frame: Frame, items: Sequence[Json]) -> str:
    return _join(frame, items, "\n")


def _json(frame: Frame, value: Json) -> str:
    try:
        text = json_text(value)
    except ExpressionRefused as refused:
        raise ExpressionRefused(f"the value {refused.reason}") from None
    frame.spend(len(text))
    return text


def _round(_: Frame, number: float, digits: float = 0) -> Json:
    if not (isinstance(digits, int) and 0 <= digits <= DIGITS_MAX):
        raise ExpressionRefused(f"the digits must be a whole number from 0 to {DIGITS_MAX}")
    if isinstance(number, float) and not isfinite(number):
        raise ExpressionRefused("the number is not finite")
    return round(number, digits) if digits else round(number)


FILTERS: Final[Mapping[str, ExpressionFunction]] = {
    "upper": FUNCTIONS["upper"],
    "lower": FUNCTIONS["lower"],
    "title": text_function(_title),
    "trim": text_function(str.strip),
    "length": FUNCTIONS["len"],
    "first": ExpressionFunction(takes=(LIST,), gives=_item_shape, apply=_first),
    "last": ExpressionFunction(takes=(LIST,), gives=_item_shape, apply=_last),
    "join": ExpressionFunction(takes=(LIST, TEXT), gives=always(STRING), apply=_join, optional=1),
    "lines": ExpressionFunction(takes=(LIST,), gives=always(STRING), apply=_lines),
    "json": ExpressionFunction(takes=(ANYTHING,), gives=always(STRING), apply=_json),
    "round": ExpressionFunction(takes=(NUMERIC, NUMERIC), gives=always(NUMBER), apply=_round, optional=1),
}
