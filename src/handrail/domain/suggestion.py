"""Suggestions: the name that was probably meant. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

NAMES_COMPARED_MAX: Final = 500


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint with the closest known name, or the known names; empty if there are none."""
    names = list(islice(known, NAMES_COMPARED_MAX))
    near = get_close_matches(name, names, n=1)
    if near:
        return f"did you mean `{near[0]}`?"
    return f"known: {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}" if names else ""
