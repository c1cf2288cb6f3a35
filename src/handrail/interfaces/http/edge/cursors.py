"""Cursors: where a list goes on, as a string that clients pass back and don't read. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from handrail.domain.errors import Invalid

CURSOR_LENGTH_MAX: Final = 500

Item = TypeVar("Item")


def cursor_of(*place: str | int) -> str:
    """The cursor of a place."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def place_in(cursor: str, *kinds: type[str] | type[int]) -> tuple[str | int, ...] | None:
    """The place that a cursor means, of these types; None without a cursor, Invalid if it is none of ours."""
    if not cursor:
        return None
    try:
        padded = cursor[:CURSOR_LENGTH_MAX] + "=" * (-len(cursor) % 4)
        place = msgspec.json.decode(base64.b64decode(padded, altchars=b"-_", validate=True), type=list[str | int])
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise _none_of_ours() from error
    if [type(one) for one in place] != list(kinds) or any(isinstance(one, int) and one < 0 for one in place):
        raise _none_of_ours()
    return tuple(place)


def number_in(cursor: str) -> int | None:
    """The number in a cursor; None without a cursor."""
    place = place_in(cursor, int)
    return int(place[0]) if place is not None else None


def page_of(every: Sequence[Item], limit: int, cursor: str) -> tuple[tuple[Item, ...], str]:
    """One page of a list, and the cursor of the next; the cursor is empty after the last page."""
    start = number_in(cursor) or 0
    end = start + limit
    return tuple(every[start:end]), cursor_of(end) if end < len(every) else ""


def _none_of_ours() -> Invalid:
    return Invalid("this is not a cursor", hint="leave it out, or pass the cursor of the last answer")
