"""Patterns: JavaScript's regular expressions with their flags, as ours, which match in linear time."""

from __future__ import annotations

from typing import Final

from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern

SCOPED: Final = "ims"
"""Flags that mean the same for a group in ours."""
QUIET: Final = "gud"
"""Flags that change nothing when one only asks whether a pattern occurs."""
STICKY: Final = "y"


def pattern_of(source: str, flags: str = "") -> str:
    """The pattern with its flags worked in; Invalid if it can't be matched in linear time."""
    if unknown := set(flags) - {*SCOPED, *QUIET, STICKY}:
        raise Invalid(f"unknown flag `{min(unknown)}`")
    scoped = "".join(flag for flag in SCOPED if flag in flags)
    pattern = f"(?{scoped}:{source})" if scoped else source
    pattern = f"^(?:{pattern})" if STICKY in flags else pattern
    linear_pattern(source)  # alone first: a group around it must not close what it leaves open
    linear_pattern(pattern)
    return pattern
