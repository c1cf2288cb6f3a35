"""Times in queries: RFC 3339, or an age such as 7d. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import Invalid
from handrail.domain.instant import instant_text


def instant_of(text: str, name: str, *, now: int, default: int) -> int:
    """The instant that a string means, in milliseconds; an age counts back from now."""
    if not text:
        return default
    if text[0].isdigit() and "-" not in text:
        try:
            return max(1, now - duration_ms(text))
        except Invalid as error:
            raise _invalid(text, name) from error
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise _invalid(text, name) from error
    return int((instant if instant.tzinfo else instant.replace(tzinfo=UTC)).timestamp() * 1_000)


def shown(milliseconds: int | None) -> str:
    """An instant as text; empty if there is none."""
    return instant_text(milliseconds) if milliseconds else ""


def _invalid(text: str, name: str) -> Invalid:
    return Invalid(f"{name} {text[:40]!r} is not a time", hint="write it as 2026-11-15T18:04:11Z, or as an age: 7d")
