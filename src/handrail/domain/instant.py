"""Instants: milliseconds since 1970 in UTC, and how they are written. Pure; the clock is in engine/clock.py."""

from __future__ import annotations

from datetime import UTC, datetime


def instant_text(milliseconds: int) -> str:
    """An instant as RFC 3339 in UTC: `2026-11-15T18:04:11.250Z`."""
    instant = datetime.fromtimestamp(milliseconds // 1_000, UTC)
    fraction = f".{milliseconds % 1_000:03d}" if milliseconds % 1_000 else ""
    return f"{instant:%Y-%m-%dT%H:%M:%S}{fraction}Z"
