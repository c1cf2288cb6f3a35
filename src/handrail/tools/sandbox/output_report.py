"""Progress reports about a command's output: how much, not what, because the output may contain secrets."""

from __future__ import annotations

import asyncio
from typing import Final

from handrail.engine.tool import Progress

PAUSE_S: Final = 1.0


class OutputReport:
    """Reports the amount of output, at most once per pause."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._bytes = 0
        self._next_s = 0.0

    def add(self, size: int) -> None:
        """Count more output."""
        self._bytes += size
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._next_s:
            self._next_s = now_s + PAUSE_S
            self._progress(f"{self._bytes:,} bytes of output")
