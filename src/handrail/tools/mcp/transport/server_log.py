"""The log of one MCP server: what it writes to standard error, and handrail's own notes about it.

Limited in size (one old file is kept), in rate and in the length of a line. Secrets are removed from each line before
it is kept anywhere."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from handrail.foundation.atomic_file import make_private_folder
from handrail.foundation.private_append import open_to_append
from handrail.tools.mcp.bucket import RateLimiter

LOG_BYTES_MAX: Final = 1_000_000
LINE_BYTES_MAX: Final = 4_000
WITHHELD_MAX: Final = 64_000
"""Longer than any secret is in any spelling that is searched for."""
LINES_PER_S_MAX: Final = 1_000
CUT: Final = " [cut: the line is too long]"
TAIL_LINES: Final = 8
TAIL_LINE_MAX: Final = 300


def _as_it_is(text: str) -> str:
    return text


class ServerLog:
    """A log file with a size limit, and its last lines in memory."""

    def __init__(self, path: Path, scrub: Callable[[str], str] = _as_it_is) -> None:
        self.path = path
        self._scrub = scrub
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)
        self._unfinished = bytearray()
        self._is_skipping = False
        """Whether the rest of a line that is too long is left out."""
        self._bucket = RateLimiter(LINES_PER_S_MAX)
        self._dropped = 0

    def take(self, chunk: bytes) -> None:
        """Add what the server wrote."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            self._unfinished += end
            self.end()
        if self._is_skipping:
            return
        self._unfinished += rest
        if len(self._unfinished) > LINE_BYTES_MAX + WITHHELD_MAX:
            # What comes next may complete a secret that has started: the end of what is known can't be shown.
            self._line(bytes(self._unfinished), withheld=WITHHELD_MAX)
            self._unfinished.clear()
            self._is_skipping = True

    def end(self) -> None:
        """Add the line as it is: it ends here, or the server writes no more."""
        if self._unfinished and not self._is_skipping:
            self._line(bytes(self._unfinished))
        self._unfinished.clear()
        self._is_skipping = False

    def note(self, words: str) -> None:
        """Add a line of handrail's own."""
        self._write(f"{_now()} handrail: {self._scrub(words)}\n")

    def begin(self) -> None:
        """Forget the last lines of an earlier start."""
        self._tail.clear()
        self._unfinished.clear()
        self._is_skipping = False

    @property
    def tail(self) -> str:
        """The last lines, for a message."""
        return "\n".join(self._tail)

    def _line(self, line: bytes, *, withheld: int = 0) -> None:
        if not self._bucket.take():
            self._dropped += 1
            return
        if self._dropped:
            self.note(f"{self._dropped} lines were left out: more than {LINES_PER_S_MAX} a second")
            self._dropped = 0
        # Before it is cut: a part of a secret would not be recognised.
        text = self._scrub(line.decode("utf-8", "replace").rstrip())
        if withheld:
            text = text[:-withheld] + CUT
        text = text[:LINE_BYTES_MAX]
        if text:
            self._tail.append(text[:TAIL_LINE_MAX])
            self._write(f"{_now()} {text}\n")

    def _write(self, text: str) -> None:
        # A log that can't be written must not stop the work.
        with contextlib.suppress(OSError):
            make_private_folder(self.path.parent)
            if self.path.exists() and self.path.stat().st_size > LOG_BYTES_MAX:
                self.path.replace(self.path.with_suffix(".old.log"))
            with os.fdopen(open_to_append(self.path), "ab") as file:
                file.write(text.encode("utf-8", "replace"))


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
