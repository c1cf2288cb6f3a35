"""An alarm: one call at one time to come; setting it again replaces it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """At most one call that the event loop makes later."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether it was set, and not cleared since."""
        return self._handle is not None

    def set(self, delay_s: float, ring: Callable[[], None]) -> None:
        """Call after a while, and only then."""
        self.clear()
        self._handle = asyncio.get_running_loop().call_later(delay_s, ring)

    def clear(self) -> None:
        """Call nothing any more."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
