"""Comparisons of one variable with one value, as lenient as WorkRail's, as expressions.

Our expressions have types and WorkRail's have none. So `word` makes a word of any value, and two tricks are used for
others: `in` accepts a value of any type if the list also has null, and `exists` excludes null itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import Any, Final, TypeGuard

from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.library.schemas.schema_words import described
from handrail.library.workrail.literals import list_literal, number_literal, text_literal
from handrail.library.workrail.patterns import pattern_of

TRUE_WORDS: Final = ("true", "yes", "1")
FALSE_WORDS: Final = ("false", "no", "0")

_number = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?")


def equal(path: str, value: Json) -> str:
    """Whether the variable at a path has this value."""
    if value is None:
        return f"not exists({path})"
    if is_word(value):
        return f"{_word(path)} == {text_literal(value.strip().lower())}"
    likes = _likes(value)
    return f"exists({path}) and {path} in {list_literal([*likes, None])}" if likes else "false"


def different(path: str, value: Json) -> str:
    """Whether a variable has another value, or none."""
    if value is None:
        return f"exists({path})"
    if is_word(value):
        return f"{_word(path)} != {text_literal(value.strip().lower())}"
    return f"not ({equal(path, value)})"


def among(path: str, value: Json) -> str:
    """Whether a variable has one of these values."""
    if not isinstance(value, list | tuple):
        raise Invalid(f"`in` needs a list, not {described(value)}")
    if value and all(map(is_word, value)):
        return f"{_word(path)} in {list_literal(str(word).strip().lower() for word in value)}"
    return " or ".join(f"({equal(path, item)})" for item in value) or "false"


def ordered(sign: str) -> Callable[[str, Json], str]:
    """Whether a variable is a number that compares like this with another."""

    def ask(path: str, value: Json) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise Invalid(f"a number is expected here, not {described(value)}")
        return f"exists({path}) and is_number({path}) and {path} {sign} {number_literal(value)}"

    return ask


def worded(function: str) -> Callable[[str, Json], str]:
    """The result of a string function for a variable and a word, ignoring case."""
    return lambda path, value: f"{function}({_word(path)}, {text_literal(_text(value).lower())})"


def matched(path: str, value: Json) -> str:
    """Whether a variable, as text, matches this pattern, ignoring case."""
    return f"matches({_word(path)}, {text_literal(pattern_of(_text(value), 'i'))})"


def truthy(path: str) -> str:
    """Whether a variable is set, and neither false nor zero nor empty."""
    return f'exists({path}) and not ({path} in [false, 0, "", null])'


def counted(operator: str | None, value: Json, ahead: int) -> str:
    """A condition on a loop's counter; WorkRail's is our `index` plus `ahead`."""
    if operator is None:
        return f"index != {number_literal(-ahead)}"
    if operator in _COUNTED:
        return _COUNTED[operator](_numbers(value), ahead)
    raise Invalid(f"`{operator}` can't be used with a loop's counter")


def _word(path: str) -> str:
    return f'word(default({path}, ""))'


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
    """Whether a string is a plain word: not a number, not yes or no, not empty."""
    if not isinstance(value, str):
        return False
    word = value.strip().lower()
    return bool(word) and word not in (*TRUE_WORDS, *FALSE_WORDS) and _number_of(word) is None


def _likes(value: Json) -> list[Json]:
    """All values that WorkRail treats as equal to a value; a word in its usual spellings."""
    if isinstance(value, bool):
        words = TRUE_WORDS if value else FALSE_WORDS
        return [value, *(one for word in words for one in _spellings(word))]
    if isinstance(value, int | float):
        return [value, number_literal(value)]
    # In WorkRail, objects and lists are never equal to anything.
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
        raise Invalid(f"a string is expected here, not {described(value)}")
    return value.strip()
