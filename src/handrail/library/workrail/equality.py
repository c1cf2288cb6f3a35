"""Equality and its kin: one variable asked about one value, as leniently as WorkRail does it, in our expressions.

Ours has types and theirs has none, so this rests on two things: a list that also holds null takes a value of any type
for `in`, and `exists` lets null itself out. A variable that is only ever compared with words is asked by `lower`, which
refuses other types; others are compared with a word in its usual spellings."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import Any, Final, TypeGuard

from msgspec import Struct

from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.library.schema_words import described
from handrail.library.workrail.literals import list_literal, number_literal, text_literal
from handrail.library.workrail.patterns import pattern_of

TRUE_WORDS: Final = ("true", "yes", "1")
FALSE_WORDS: Final = ("false", "no", "0")

_number = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")


class Subject(Struct, frozen=True):
    """The variable that is asked about: where it is, and whether it is only ever compared with words."""

    path: str
    is_text: bool = True


def equal(subject: Subject, value: Json) -> str:
    """Whether a variable has this value."""
    path = subject.path
    if value is None:
        return f"not exists({path})"
    if subject.is_text and is_word(value):
        return f'lower(default({path}, "")) == {text_literal(value.strip().lower())}'
    likes = _likes(value)
    return f"exists({path}) and {path} in {list_literal([*likes, None])}" if likes else "false"


def different(subject: Subject, value: Json) -> str:
    """Whether a variable has another value, or none."""
    if value is None:
        return f"exists({subject.path})"
    if subject.is_text and is_word(value):
        return f'lower(default({subject.path}, "")) != {text_literal(value.strip().lower())}'
    return f"not ({equal(subject, value)})"


def among(subject: Subject, value: Json) -> str:
    """Whether a variable has one of these values."""
    if not isinstance(value, list | tuple):
        raise Invalid(f"`in` needs a list, not {described(value)}")
    if value and subject.is_text:
        return f'lower(default({subject.path}, "")) in {list_literal(str(word).strip().lower() for word in value)}'
    return " or ".join(f"({equal(subject, item)})" for item in value) or "false"


def ordered(sign: str) -> Callable[[Subject, Json], str]:
    """Whether a variable is a number on this side of another."""

    def ask(subject: Subject, value: Json) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Invalid(f"a number is expected here, not {described(value)}")
        return f"exists({subject.path}) and {subject.path} {sign} {number_literal(value)}"

    return ask


def contained(subject: Subject, value: Json) -> str:
    """Whether a text, or a list of texts, holds a word."""
    word = _text(value)
    if not word:
        return "true"
    return " or ".join(f'contains(default({subject.path}, ""), {text_literal(one)})' for one in _spellings(word))


def worded(function: str) -> Callable[[Subject, Json], str]:
    """What a function of texts says of a variable and a word, whatever their case."""
    return lambda subject, value: (
        f'{function}(lower(default({subject.path}, "")), {text_literal(_text(value).lower())})'
    )


def matched(subject: Subject, value: Json) -> str:
    """Whether a text has this pattern, whatever its case."""
    return f'matches(default({subject.path}, ""), {text_literal(pattern_of(_text(value), "i"))})'


def truthy(subject: Subject) -> str:
    """Whether a variable is set, and neither false nor zero nor empty."""
    path = subject.path
    return f'exists({path}) and not ({path} in [false, 0, "", null])'


def counted(operator: str | None, value: Json, ahead: int) -> str:
    """What is asked of a loop's counter; theirs is `ahead` of our `index`."""
    if operator is None:
        return f"index != {number_literal(-ahead)}"
    if operator in _COUNTED:
        return _COUNTED[operator](_numbers(value), ahead)
    raise Invalid(f"`{operator}` can't be asked of a loop's counter")


def _of_numbers(sign: str, word: str) -> Callable[[list[float], int], str]:
    def ask(numbers: list[float], ahead: int) -> str:
        if len(numbers) == 1:
            return f"index {sign} {number_literal(numbers[0] - ahead)}"
        return f"index {word} {list_literal(number - ahead for number in numbers)}"

    return ask


def _of_order(sign: str, whole: Callable[[float], int]) -> Callable[[list[float], int], str]:
    return lambda numbers, ahead: f"index {sign} {number_literal(whole(numbers[0]) - ahead)}" if numbers else "false"


_COUNTED: Final[Mapping[str, Callable[[list[float], int], str]]] = {
    "equals": _of_numbers("==", "in"),
    "not_equals": _of_numbers("!=", "not in"),
    "in": _of_numbers("==", "in"),
    "gt": _of_order(">", floor),
    "gte": _of_order(">=", ceil),
    "lt": _of_order("<", ceil),
    "lte": _of_order("<=", floor),
}


def _numbers(value: Any) -> list[float]:
    items = value if isinstance(value, list | tuple) else [value]
    return [number for item in items if (number := _number_of(item)) is not None]


def _number_of(value: Json) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if isinstance(value, str) and _number.fullmatch(value.strip()):
        number = float(value)
        return int(number) if number == int(number) else number
    return None


def is_word(value: Json) -> TypeGuard[str]:
    """Whether a text is nothing but a text: no number, no yes or no, not empty."""
    if not isinstance(value, str):
        return False
    word = value.strip().lower()
    return bool(word) and word not in (*TRUE_WORDS, *FALSE_WORDS) and _number_of(word) is None


def _likes(value: Json) -> list[Json]:
    """All that WorkRail takes for equal to a value, a word in its usual spellings."""
    if isinstance(value, bool):
        words = TRUE_WORDS if value else FALSE_WORDS
        return [value, *(one for word in words for one in _spellings(word))]
    if isinstance(value, int | float):
        return [value, number_literal(value)]
    # Objects and lists are never equal to anything there.
    return _text_likes(value) if isinstance(value, str) else []


def _text_likes(value: str) -> list[Json]:
    word = value.strip().lower()
    likes: list[Json] = [*_spellings(value.strip())]
    likes += [True] if word in TRUE_WORDS else [False] if word in FALSE_WORDS else []
    number = 0 if not word else _number_of(word)
    return likes if number is None else [*likes, number]


def _spellings(word: str) -> list[str]:
    return list(dict.fromkeys((word, word.lower(), word.capitalize(), word.upper())))


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise Invalid(f"a text is expected here, not {described(value)}")
    return value.strip()
