"""Fitting: every answer stays within its limit, whatever was asked; what is left out says so, and where it is.

Pure. Lists that can be paged are paged by their handlers; this is for all else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

DATA_MAX: Final = 10_500
TEXT_MAX: Final = 8_500
"""Data and text of an answer, in characters; together below what any client cuts."""
EXCERPTS: Final = (4_000, 1_000, 250, 80)
ITEMS: Final = (200, 50, 20, 5)
KEPT: Final = frozenset({"run", "status", "receipt", "next", "code", "name", "hint", "cursor"})
"""What is never shortened: a call could not be repeated without it."""


def size_of(value: Any) -> int:
    """How many characters a value has as JSON."""
    return len(msgspec.json.encode(value).decode())


def fitted(data: Mapping[str, Any], *, most: int = DATA_MAX) -> Mapping[str, Any]:
    """Data that fits: long texts become excerpts and long lists their first items, as little as is needed."""
    if size_of(data) <= most:
        return data
    for excerpt, items in zip(EXCERPTS, ITEMS, strict=True):
        shorter = {key: value if key in KEPT else _shortened(value, excerpt, items) for key, value in data.items()}
        if size_of(shorter) <= most:
            return shorter
    return {key: value for key, value in shorter.items() if key in KEPT} | {"omitted": f"{size_of(data)} characters"}


def fitted_text(text: str, *, most: int = TEXT_MAX) -> str:
    """A text that fits, or its beginning."""
    return text if len(text) <= most else excerpt_of(text, most - 60)


def excerpt_of(text: str, length: int) -> str:
    """The beginning of a text, and how much is missing."""
    return text if len(text) <= length else f"{text[:length]}… [{len(text) - length} more characters]"


def _shortened(value: Any, excerpt: int, items: int) -> Any:
    match value:
        case str():
            return excerpt_of(value, excerpt)
        case Mapping():
            kept = dict(list(value.items())[: 2 * items])
            shorter = {key: one if key in KEPT else _shortened(one, excerpt, items) for key, one in kept.items()}
            return shorter if len(kept) == len(value) else {**shorter, "…": f"{len(value) - len(kept)} more"}
        case list() | tuple():
            shorter_list = [_shortened(one, excerpt, items) for one in value[:items]]
            return shorter_list if len(value) <= items else [*shorter_list, f"… {len(value) - items} more"]
        case _:
            return value
