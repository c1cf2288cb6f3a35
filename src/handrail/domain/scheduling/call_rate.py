"""Rate limits: how many calls of a tool may start per unit of time, as a token bucket. Pure; the time is passed in."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from handrail.domain.errors import Invalid
from handrail.foundation import token_bucket
from handrail.foundation.token_bucket import TokenBucket

RATE_PATTERN: Final = r"^([1-9][0-9]{0,5})/(s|m|h)$"
UNIT_MS: Final = {"s": 1_000, "m": 60_000, "h": 3_600_000}

_rate = re.compile(RATE_PATTERN)


class Pace(Struct, frozen=True):
    """A rate: `calls` per `per_ms` milliseconds."""

    calls: int
    per_ms: int


def pace_of(text: str) -> Pace:
    """A rate as authors write it: `10/s`, `100/m`."""
    found = _rate.match(text)
    if found is None:
        raise Invalid(f"{text!r} is not a rate", hint="write calls and a time: 10/s, 100/m, 1000/h")
    return Pace(int(found[1]), UNIT_MS[found[2]])


def taken(pace: Pace, bucket: TokenBucket | None, now: int) -> tuple[TokenBucket, int | None]:
    """The bucket after one more call; or the unchanged bucket and when the next call may start."""
    after, wait_ms = token_bucket.take_token(bucket, now, amount=pace.calls, period=pace.per_ms)
    return after, None if wait_ms is None else now + int(wait_ms) + 1
