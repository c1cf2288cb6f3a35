"""Patterns: regular expressions that match any text in linear time.

Pure. The syntax is that of JSON Schema (ECMA 262), without look-around and back-references, which are not linear."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from handrail.domain.errors import Invalid

PATTERN_LENGTH_MAX: Final = 1_000
PATTERN_BYTES_MAX: Final = 1_000_000  # compiled; `(a{100}){100}` is a few hundred thousand

_UNSUPPORTED: Final = (
    (re.compile(r"\(\?<?[=!]"), "look-around is not supported; split it into two conditions"),
    (re.compile(r"\\[1-9]"), "a back-reference is not supported; compare the parts in a step of their own"),
    (re.compile(r"\(\?[a-zA-Z-]+[:)]"), "flags are not supported; write [aA], or match lower(...)"),
)


@lru_cache(maxsize=128)
def linear_pattern(source: str) -> Callable[[str], bool]:
    """A test whether the pattern occurs anywhere in a string."""
    if len(source) > PATTERN_LENGTH_MAX:
        raise Invalid(f"the pattern has {len(source):,} characters; at most {PATTERN_LENGTH_MAX:,} are allowed")
    # Imported here because it takes 47 ms, too long for every cold start.
    from jsonschema_rs import Draft7Validator, RegexOptions

    options = RegexOptions(size_limit=PATTERN_BYTES_MAX)
    try:
        is_valid = Draft7Validator({"pattern": source}, pattern_options=options).is_valid
    except ValueError:  # the engine's own message shows its schema, not the mistake
        raise Invalid(f"{source!r} is not a pattern: {_reason(source)}") from None
    return lambda text: is_valid(_encodable(text))


def _reason(source: str) -> str:
    for sign, reason in _UNSUPPORTED:
        if sign.search(source):
            return reason
    return "it can't be parsed, or repeats too much"


def _encodable(text: str) -> str:
    # JSON escapes can produce half a surrogate pair, which can't be encoded as UTF-8 for the engine.
    return text if text.isascii() else text.encode(errors="replace").decode()
