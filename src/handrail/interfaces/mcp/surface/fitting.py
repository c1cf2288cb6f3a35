"""Shortens answers to their size limit; the result says how much was left out.

Pure. Lists are paged first (paging.py, ledger_page.py); this is the limit for everything else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

DATA_MAX: Final = 10_500
TEXT_MAX: Final = 8_500
"""Limits of an answer's data and text in characters: together below the size at which clients truncate."""
EXCERPTS: Final = (4_000, 1_000, 250, 80)
ITEMS: Final = (200, 50, 20, 5)
KEPT: Final = frozenset({"run", "status", "receipt", "next", "code", "name", "hint", "cursor", "command", "console"})
"""Never shortened: the next call needs these values exactly."""


def size_of(value: Any) -> int:
    """The length of a value as JSON, in characters."""
    return len(msgspec.json.encode(value).decode())


def fitted(data: Mapping[str, Any], *, most: int = DATA_MAX) -> Mapping[str, Any]:
    """The data within the limit: long texts and lists are shortened, no more than needed."""
    if size_of(data) <= most:
        return data
    for excerpt, items in zip(EXCERPTS, ITEMS, strict=True):
        shorter = {key: value if key in KEPT else _shortened(value, excerpt, items) for key, value in data.items()}
        if size_of(shorter) <= most:
            return shorter
    return {key: value for key, value in shorter.items() if key in KEPT} | {"omitted": f"{size_of(data)} characters"}


def fitted_text(text: str, *, most: int = TEXT_MAX) -> str:
    """The text, cut to the limit."""
    return text if len(text) <= most else excerpt_of(text, most - 60)  # 60: room for the note on what is missing


def excerpt_of(text: str, length: int) -> str:
    """The start of a string, and how much is missing."""
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
