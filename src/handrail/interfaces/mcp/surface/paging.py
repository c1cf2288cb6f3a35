"""Paging: one page of a list, and the cursor of the next. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from handrail.domain.errors import Invalid
from handrail.interfaces.mcp.surface.fitting import size_of

CURSOR_DIGITS_MAX: Final = 18
PAGE_MAX: Final = 9_000
"""The limit of a page, in characters. Items cut later (fitting.py) would be on no page, so pages stay below that."""

T = TypeVar("T")


def page_of(every: Sequence[T], limit: int, cursor: str, *, show: Callable[[T], Any]) -> tuple[Sequence[T], str]:
    """One page of a list, and the cursor of the next; the cursor is empty after the last page."""
    start = place_of(cursor) or 0
    end, room = start, PAGE_MAX
    for one in every[start : start + limit]:
        room -= size_of(show(one))
        if room < 0 and end > start:  # at least one item, or the next page would start here again
            break
        end += 1
    return every[start:end], str(end) if end < len(every) else ""


def place_of(cursor: str) -> int | None:
    """The place that a cursor means; None without a cursor."""
    if not cursor:
        return None
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= CURSOR_DIGITS_MAX):
        raise Invalid(f"{cursor[:40]!r} is not a cursor", hint="leave it out, or pass the cursor of the last answer")
    return int(cursor)
