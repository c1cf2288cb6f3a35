"""Texts in PostgreSQL: it keeps no NUL, so that one character stands for it. Pure.

Every text that comes from outside goes through here, in both directions; nearly all of them pass unchanged."""

from __future__ import annotations

from typing import Final

_ESCAPE: Final = "\x01"
_NUL: Final = "\x01\x03"
_ITSELF: Final = "\x01\x02"


def stored(text: str) -> str:
    """A string as it is stored."""
    if "\0" in text or _ESCAPE in text:
        return text.replace(_ESCAPE, _ITSELF).replace("\0", _NUL)
    return text


def stored_or_none(text: str | None) -> str | None:
    """The same for a string that may be missing."""
    return None if text is None else stored(text)


def read(text: str) -> str:
    """A stored text as it was given."""
    return text.replace(_NUL, "\0").replace(_ITSELF, _ESCAPE) if _ESCAPE in text else text


def read_or_none(text: str | None) -> str | None:
    """The same for a string that may be missing."""
    return None if text is None else read(text)
