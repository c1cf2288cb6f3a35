"""Rules about texts: `contains`, `matches`, `length`. Pure; patterns take linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import Given
from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern
from handrail.domain.plural import plural
from handrail.rules.output.subject import MISSING, SHOWN_MAX, excerpt, finding, missing, subject_of, text_of, unfit

FLAGS: Final = frozenset("isgu")
"""`g` and `u` are common in other languages, and have no effect here."""
_UNITS: Final[Mapping[type, str]] = {list: "item", tuple: "item", dict: "member"}
PART: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?<[^>]*>|\(\?:|.", re.DOTALL)
RANGE: Final = re.compile(r"\\.|[a-z]-[a-z]|[A-Z]-[A-Z]|.", re.DOTALL)


def contains(parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """`text`, or each of `texts`, is in it."""
    value = subject_of(parameters, given)
    wanted = parameters.get("texts", [parameters["text"]] if "text" in parameters else [])
    if not isinstance(wanted, list | tuple) or not wanted or not all(isinstance(one, str) for one in wanted):
        yield unfit("contains", "text", "it has no `text` or `texts`")
    elif value is MISSING:
        yield missing("contains", parameters)
    else:
        text = text_of(value)
        for one in wanted:
            if one not in text:
                yield finding(
                    "contains", parameters, f"`{one[:SHOWN_MAX]}` is not in it", f"include `{one[:SHOWN_MAX]}`"
                )


def matches(parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """`pattern` matches somewhere in it; `flags: i` ignores case, `s` lets a dot match line ends."""
    value, pattern = subject_of(parameters, given), parameters.get("pattern")
    occurs = _compiled(pattern, str(parameters.get("flags", ""))) if isinstance(pattern, str) else None
    if occurs is None:
        yield unfit("matches", "pattern", f"{pattern!r} is not a usable pattern")
    elif value is MISSING:
        yield missing("matches", parameters)
    elif not occurs(text_of(value)):
        shown = excerpt(value)
        yield finding("matches", parameters, f"{shown} does not match `{pattern}`", "change it so that it matches")


def length(parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """It has at least `min` and at most `max` characters, items or members."""
    value = subject_of(parameters, given)
    least, most = parameters.get("min", 0), parameters.get("max", float("inf"))
    if isinstance(least, bool | str) or isinstance(most, bool | str) or not {"min", "max"} & set(parameters):
        yield unfit("length", "min", "`min` or `max` is not a number")
    elif value is MISSING:
        yield missing("length", parameters)
    else:
        size = len(value) if isinstance(value, str | list | tuple | Mapping) else len(text_of(value))
        of = _UNITS.get(type(value), "character")
        if size < least:
            message = f"it has {plural(size, of)}, at least {least} are needed"
            yield finding("length", parameters, message, f"add at least {least - size}")
        elif size > most:
            message = f"it has {plural(size, of)}, at most {most} are allowed"
            yield finding("length", parameters, message, f"leave out at least {size - most}")


@lru_cache(256)
def _compiled(pattern: str, flags: str) -> Callable[[str], bool] | None:
    if set(flags) - FLAGS:
        return None
    try:
        return linear_pattern(_spelled_out(pattern, any_case="i" in flags, dot_all="s" in flags))
    except Invalid:
        return None


def _spelled_out(pattern: str, *, any_case: bool, dot_all: bool) -> str:
    """An equivalent pattern without flags: the linear-time engine does not support them."""
    return "".join(_spelled(found[0], any_case=any_case, dot_all=dot_all) for found in PART.finditer(pattern))


def _spelled(part: str, *, any_case: bool, dot_all: bool) -> str:
    if part == "." and dot_all:
        return r"[\s\S]"
    if not any_case or part.startswith(("\\", "(")):
        return part
    if part.startswith("["):
        opening = "[^" if part.startswith("[^") else "["
        inside = RANGE.findall(part[len(opening) : -1])
        return opening + "".join(one if one.startswith("\\") else one + one.swapcase() for one in inside) + "]"
    return f"[{part}{part.swapcase()}]" if part.isalpha() and part.swapcase() != part else part
