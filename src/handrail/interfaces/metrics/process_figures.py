"""What this process measures of itself: transactions, waits of calls, HTTP requests, tool calls over MCP, loop lag.

Kept as plain figures; exposition.py writes them for Prometheus. Each metric is written by one thread only (transactions
by that of the SQLite store), so that adding needs no lock."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from handrail.domain.metrics import catalog
from handrail.domain.metrics.figures import Figures

LAG_S: Final = 0.5
UNKNOWN: Final = "unknown"
"""The outcome of a call of a tool that there is not."""
PARTS: Final = {
    **{name: name for name in ("mcp", "api", "metrics")},
    **dict.fromkeys(("livez", "readyz", "healthz"), "health"),
}
CONSOLE: Final = "console"
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class ProcessFigures:
    """Takes the measurements of one process."""

    def __init__(self) -> None:
        self.figures = Figures()

    def committed(self, appends: int, seconds: float) -> None:
        """A transaction was synced."""
        self.figures.count(catalog.COMMITS)
        self.figures.observe(catalog.COMMIT_APPENDS, appends)
        self.figures.observe(catalog.COMMIT_SECONDS, seconds)

    def waited(self, seconds: float) -> None:
        """A call started after a wait."""
        self.figures.observe(catalog.CALL_WAIT, seconds)

    def answered(self, path: str, method: str, code: int, seconds: float | None) -> None:
        """An HTTP request ended; without a duration if it was an endless stream."""
        part = PARTS.get(path.split("/", 2)[1] if path.startswith("/") else "", CONSOLE)
        known = method if method in METHODS else catalog.OTHER
        self.figures.count(catalog.HTTP_REQUESTS, part, known, str(code))
        if seconds is not None:
            self.figures.observe(catalog.HTTP_SECONDS, seconds, part)

    def called(self, tool: str, outcome: str, seconds: float) -> None:
        """A tool call of an agent ended."""
        known = catalog.OTHER if outcome == UNKNOWN else tool  # a caller can make up any number of names
        self.figures.count(catalog.MCP_REQUESTS, known, outcome)
        self.figures.observe(catalog.MCP_SECONDS, seconds, known)

    async def watch_loop(self) -> None:
        """Measure how late the event loop is, until cancelled."""
        while True:
            due_s = time.perf_counter() + LAG_S
            await asyncio.sleep(LAG_S)
            self.figures.observe(catalog.LOOP_LAG, max(0.0, time.perf_counter() - due_s))
