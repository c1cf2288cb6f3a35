"""Times for people: relative, or a short local time; exact with `--utc`.

Not used for `--json`: data has exact times (engine/clock.py)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, TypeAlias

import click
from msgspec import Struct

from handrail.domain.instant import instant_text
from handrail.domain.plural import plural
from handrail.engine.clock import system_clock

Instant: TypeAlias = int | str
"""Milliseconds since 1970, as in events, or RFC 3339 text, as in views; empty: unknown."""
DAYS_RELATIVE_MAX: Final = 14
"""Beyond this, the date is shown: it says more than `34 days ago`."""


class TimeFormat(Struct, frozen=True, kw_only=True):
    """How a command prints times."""

    now: int
    is_utc: bool = False
    zone: tzinfo | None = None
    """None: the machine's own."""

    def at(self, instant: Instant) -> str:
        """A short local time: `14:03` today, `Nov 12 14:03` this year, else the date."""
        if not instant or self.is_utc:
            return _exact(instant)
        local, today = self._local(_ms(instant)), self._local(self.now)
        if local.date() == today.date():
            return f"{local:%H:%M}"
        if local.year == today.year:
            return f"{local:%b} {local.day} {local:%H:%M}"
        return f"{local:%Y-%m-%d}"

    def ago(self, instant: Instant) -> str:
        """How far away it is: `3 min ago`, `in 2 h`."""
        if not instant or self.is_utc:
            return _exact(instant)
        seconds = (self.now - _ms(instant)) / 1_000
        if abs(seconds) < 0.5:
            return "now"
        if not (span := _span(abs(seconds))):
            return self.at(instant)
        return f"{span} ago" if seconds > 0 else f"in {span}"

    def is_over(self, instant: Instant) -> bool:
        """Whether it has passed."""
        return bool(instant) and _ms(instant) <= self.now

    def _local(self, milliseconds: int) -> datetime:
        return datetime.fromtimestamp(milliseconds / 1_000, UTC).astimezone(self.zone)


def time_format(*, is_utc: bool = False) -> TimeFormat:
    """The format for a command that runs now."""
    return TimeFormat(now=system_clock(), is_utc=is_utc)


def expiry_words(instant: Instant, shown: TimeFormat) -> str:
    """When a question expires, or that it has."""
    return "expired" if shown.is_over(instant) else shown.ago(instant)


def utc_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command `--utc`."""
    return click.option("--utc", "is_utc", is_flag=True, help="Show exact times in UTC (RFC 3339).")(command)


def _span(seconds: float) -> str:
    """A duration in its largest unit; empty if it is so long that a date is better."""
    minutes, hours, days = (round(seconds / unit) for unit in (60, 3_600, 86_400))
    if seconds < 59.5:
        return f"{round(seconds)} s"
    if minutes < 60:
        return f"{minutes} min"
    if hours < 48:
        return f"{hours} h"
    return plural(days, "day") if days <= DAYS_RELATIVE_MAX else ""


def _exact(instant: Instant) -> str:
    return instant_text(instant) if instant and isinstance(instant, int) else str(instant or "")


def _ms(instant: Instant) -> int:
    if isinstance(instant, int):
        return instant
    return round(datetime.fromisoformat(instant).timestamp() * 1_000)
