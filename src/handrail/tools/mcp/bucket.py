"""A token bucket: how many of something may pass in a time. Nothing waits here; what is too much is told so."""

from __future__ import annotations

import time


class Bucket:
    """Lets `burst` pass at once and `rate` a second after that."""

    def __init__(self, *, rate: float, burst: float) -> None:
        self._rate, self._burst = rate, burst
        self._level, self._at = burst, time.monotonic()

    def take(self) -> bool:
        """Whether one more may pass now."""
        now = time.monotonic()
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1:
            return False
        self._level -= 1
        return True
