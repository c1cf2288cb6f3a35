"""SIGINT and SIGTERM: the first one shuts the server down cleanly, the second one exits at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable


def handle_signals(on_first: Callable[[], object]) -> None:
    """Call this, in the main thread, on the first signal that asks the process to end."""
    seen: list[int] = []

    def handle(number: int, _frame: object) -> None:
        seen.append(number)
        if len(seen) > 1:
            os._exit(128 + number)  # not sys.exit: cleanup may be what hangs
        on_first()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
