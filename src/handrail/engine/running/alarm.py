"""An alarm: one callback at one future time; setting it again replaces it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Alarm:
    """At most one pending callback of the event loop."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    @property
    def is_set(self) -> bool:
        """Whether it was set and not cleared since."""
        return self._handle is not None

    def set(self, delay_s: float, ring: Callable[[], None]) -> None:
        """Call back after the delay, instead of at any earlier setting."""
        self.clear()
        self._handle = asyncio.get_running_loop().call_later(delay_s, ring)

    def clear(self) -> None:
        """Cancel the callback."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
