"""What is told of a command's output while it comes: how much, not what, for that may be secret."""

from __future__ import annotations

import asyncio
from typing import Final

from handrail.engine.tool import Progress

PAUSE_S: Final = 1.0


class OutputReport:
    """Says now and then that something is coming."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bytes = 0
        self._next_s = 0.0

    def add(self, size: int) -> None:
        """Count what has come."""
        self._bytes += size
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._next_s:
            self._next_s = now_s + PAUSE_S
            self._progress(f"{self._bytes:,} bytes of output")
