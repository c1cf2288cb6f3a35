"""A notice: one thing that somebody is notified of, the same for every channel and every try. Pure values."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from handrail.foundation.visible_text import visible_line

ID_DIGITS: Final = 32
TEXT_LENGTH_MAX: Final = 500
HOME: Final = "home"
"""The subject of notices that are about no run and no server."""


class Notice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is reported."""

    id: str
    """The same for every try, so that a receiver knows what it has already."""
    when: str
    """The rule that is met."""
    at: int
    """When it happened."""
    subject: str
    """What it is about: notices about one run arrive in their order."""
    text: str
    """One line for people."""
    source: str
    data: Mapping[str, Any] = field(default_factory=dict)


class Message(Struct, frozen=True, kw_only=True):
    """A notice on its way to one channel."""

    number: int
    notice: Notice
    due: int = 0
    """When it is tried next."""
    attempts: int = 0
    tried: int = 0
    """When it was tried first; 0 if it never was."""
    error: str = ""
    is_dead: bool = False
    """Whether no more is tried, unless somebody sends it again."""


def notice_id(*parts: object) -> str:
    """The id of a notice: the same whenever it is made from the same."""
    text = "\n".join(map(str, parts))
    return f"ntc_{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:ID_DIGITS]}"


def line(text: str) -> str:
    """A text as one visible line that is not too long."""
    short = visible_line(text)
    return short if len(short) <= TEXT_LENGTH_MAX else f"{short[: TEXT_LENGTH_MAX - 3]}..."
