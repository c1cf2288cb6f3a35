"""A token bucket: limits how many calls may pass in a period. Pure; the time is passed in, in any unit."""

from __future__ import annotations

from typing import NamedTuple


class TokenBucket(NamedTuple):
    """How many tokens are left at an instant."""

    tokens: float
    at: float


def take_token(
    bucket: TokenBucket | None, now: float, *, amount: float, period: float
) -> tuple[TokenBucket, float | None]:
    """The bucket after one token was taken; or the bucket as it was, and how long the next caller has to wait.

    It holds at most `amount` tokens and gets as many new ones in each `period`; None stands for a full bucket."""
    if bucket is None:
        return TokenBucket(amount - 1, now), None
    passed = max(0, now - bucket.at)  # a clock that was set back grants nothing
    tokens = min(float(amount), bucket.tokens + passed * amount / period)
    if tokens >= 1:
        return TokenBucket(tokens - 1, now), None
    return TokenBucket(tokens, max(now, bucket.at)), (1 - tokens) * period / amount
