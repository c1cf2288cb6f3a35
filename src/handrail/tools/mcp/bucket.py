"""A rate limiter: a token bucket with the clock of this process. Nothing waits here; what is too much is refused."""

from __future__ import annotations

import time

from handrail.foundation import token_bucket


class RateLimiter:
    """Allows `per_s` at once, and as many per second after that."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._bucket: token_bucket.TokenBucket | None = None

    def take(self) -> bool:
        """Whether one more is allowed now."""
        self._bucket, wait_s = token_bucket.take_token(self._bucket, time.monotonic(), amount=self._per_s, period=1)
        return wait_s is None
