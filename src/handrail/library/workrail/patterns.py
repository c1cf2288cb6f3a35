"""Converts JavaScript's regular expressions and flags to ours, which match in linear time."""

from __future__ import annotations

from typing import Final

from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern

SCOPED: Final = "ims"
"""Flags that have the same meaning in a group of ours."""
WITHOUT_EFFECT: Final = "gud"
"""Flags that make no difference for whether a pattern occurs."""
STICKY: Final = "y"


def pattern_of(source: str, flags: str = "") -> str:
    """The pattern with its flags; Invalid if it can't be matched in linear time."""
    if unknown := set(flags) - {*SCOPED, *WITHOUT_EFFECT, STICKY}:
        raise Invalid(f"unknown flag `{min(unknown)}`")
    scoped = "".join(flag for flag in SCOPED if flag in flags)
    pattern = f"(?{scoped}:{source})" if scoped else source
    pattern = f"^(?:{pattern})" if STICKY in flags else pattern
    linear_pattern(source)  # first without the group, which could close an open bracket in it
    linear_pattern(pattern)
    return pattern
