"""Durations as authors write them: `250ms`, `30s`, `5m`, `2h`, `1d`. Pure."""

from __future__ import annotations

import re
from typing import Final

from handrail.domain.errors import Invalid

DURATION_PATTERN: Final = r"^(0|[1-9][0-9]{0,8})(ms|s|m|h|d)$"
UNIT_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}

_duration = re.compile(DURATION_PATTERN)


def duration_ms(text: str) -> int:
    """The length of a written duration in milliseconds."""
    found = _duration.match(text)
    if found is None:
        raise Invalid(f"{text!r} is not a duration", hint="write a whole number and a unit: 250ms, 30s, 5m, 2h, 1d")
    return int(found[1]) * UNIT_MS[found[2]]


def duration_text(milliseconds: int) -> str:
    """The shortest exact way to write a length of time."""
    unit = next(unit for unit in reversed(UNIT_MS) if milliseconds % UNIT_MS[unit] == 0)
    return f"{milliseconds // UNIT_MS[unit]}{unit}" if milliseconds else "0s"
