"""Signals: the first one asks the server to end, the second one does not ask."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def heed_signals(on_first: Callable[[], object]) -> None:
    """Call this, in the main thread, when the process is told to end."""
    seen: list[int] = []

    def heed(number: int, _frame: object) -> None:
        seen.append(number)
        if len(seen) > 1:
            os._exit(128 + number)
        on_first()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, heed)
