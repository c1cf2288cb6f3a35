"""A token bucket: how many of something may pass in a time. Pure; the time is passed in, in any unit."""

from __future__ import annotations

from typing import NamedTuple


class TokenBucket(NamedTuple):
    """How many may pass at once, as of an instant."""

    tokens: float
    at: float


def taken(bucket: TokenBucket | None, now: float, *, amount: float, period: float) -> tuple[TokenBucket, float | None]:
    """The bucket after one more has passed; or as it was, and how long the next one has to wait.

    It holds `amount` at most and is filled with as many in each `period`; None is a full one."""
    if bucket is None:
        return TokenBucket(amount - 1, now), None
    passed = max(0, now - bucket.at)  # a clock that was set back grants nothing
    tokens = min(float(amount), bucket.tokens + passed * amount / period)
    if tokens >= 1:
        return TokenBucket(tokens - 1, now), None
    return TokenBucket(tokens, max(now, bucket.at)), (1 - tokens) * period / amount
