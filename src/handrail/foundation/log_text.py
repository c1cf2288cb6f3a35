"""What is done to every text before it is logged: nothing, until somebody says what to leave out.

One for the whole process, like logging itself. The module that writes logs does not know what must be left out."""

from __future__ import annotations

from collections.abc import Callable


def _as_it_is(text: str) -> str:
    return text


_cleaners: list[Callable[[str], str]] = [_as_it_is]


def clean_logs_with(clean: Callable[[str], str] | None) -> None:
    """From now on, log every text as `clean` returns it; None: as it is."""
    _cleaners[0] = clean or _as_it_is


def clean_log_text(text: str) -> str:
    """A string as it may be logged."""
    return _cleaners[0](text)
