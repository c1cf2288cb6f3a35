"""The log of one MCP server: what it writes to standard error, and handrail's own notes about it.

Limited in size (one old file is kept), in rate and in the length of a line. Secrets are removed from each line before
it is kept anywhere."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from handrail.tools.mcp.bucket import RateLimiter

LOG_BYTES_MAX: Final = 1_000_000
LINE_BYTES_MAX: Final = 4_000
LINES_PER_S_MAX: Final = 1_000
TAIL_LINES: Final = 8
TAIL_LINE_MAX: Final = 300
PRIVATE: Final = 0o600


def _as_it_is(text: str) -> str:
    return text


class ServerLog:
    """A log file with a size limit, and its last lines in memory."""

    def __init__(self, path: Path, scrub: Callable[[str], str] = _as_it_is) -> None:
        self.path = path
        self._scrub = scrub
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._unfinished = b""
        self._bucket = RateLimiter(LINES_PER_S_MAX)
        self._dropped = 0

    def take(self, chunk: bytes) -> None:
        """Add what the server wrote."""
        *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
        for line in lines:
            self._line(line)
        if len(self._unfinished) > LINE_BYTES_MAX:
            self._line(self._unfinished)
            self._unfinished = b""

    def end(self) -> None:
        """Add the unfinished last line: the server writes no more."""
        if self._unfinished:
            self._line(self._unfinished)
        self._unfinished = b""

    def note(self, words: str) -> None:
        """Add a line of handrail's own."""
        self._write(f"{_now()} handrail: {self._scrub(words)}\n")

    def begin(self) -> None:
        """Forget the last lines of an earlier start."""
        self._tail.clear()
        self._unfinished = b""

    @property
    def tail(self) -> str:
        """The last lines, for a message."""
        return "\n".join(self._tail)

    def _line(self, line: bytes) -> None:
        if not self._bucket.take():
            self._dropped += 1
            return
        if self._dropped:
            self.note(f"{self._dropped} lines were left out: more than {LINES_PER_S_MAX} a second")
            self._dropped = 0
        text = self._scrub(line[:LINE_BYTES_MAX].decode("utf-8", "replace").rstrip())
        if text:
            self._tail.append(text[:TAIL_LINE_MAX])
            self._write(f"{_now()} {text}\n")

    def _write(self, text: str) -> None:
        # A log that can't be written must not stop the work.
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self.path.exists() and self.path.stat().st_size > LOG_BYTES_MAX:
                self.path.replace(self.path.with_suffix(".old.log"))
            if not self.path.exists():
                self.path.touch(mode=PRIVATE)
            with self.path.open("a", encoding="utf-8", errors="replace") as file:
                file.write(text)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
