"""Instants: milliseconds since 1970 in UTC, and how they are written. Pure; the clock is in engine/clock.py."""

from __future__ import annotations

from datetime import UTC, datetime

from handrail.domain.errors import Invalid


def instant_text(milliseconds: int) -> str:
    """An instant as RFC 3339 in UTC: `2026-11-15T18:04:11.250Z`."""
    instant = datetime.fromtimestamp(milliseconds // 1_000, UTC)
    fraction = f".{milliseconds % 1_000:03d}" if milliseconds % 1_000 else ""
    return f"{instant:%Y-%m-%dT%H:%M:%S}{fraction}Z"


def instant_from(text: str) -> int:
    """The instant in an RFC 3339 text with a time zone; Invalid if it is none."""
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid(f"{text!r} is not an instant", hint="write it like 2026-11-15T18:04:11Z") from error
    if instant.tzinfo is None:
        raise Invalid(f"{text!r} has no time zone", hint=f"write it like {text}Z, or with an offset: {text}+01:00")
    return round(instant.timestamp() * 1_000)
