"""Lines: cuts what a client sends into lines, and keeps no more of a line than is allowed.

Pure. Reading the bytes (reading.py) and understanding a line (envelope.py) happen elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

LINE_BYTES_MAX: Final = 4 * 1024 * 1024
EDGE_BYTES: Final = 1_024
"""How much of both ends of a line that is too long is kept, to find out whom to answer."""


class TooLong(NamedTuple):
    """A line that was skipped, with its two ends."""

    head: bytes
    tail: bytes


class LineCutter:
    """Takes bytes as they come, and gives whole lines."""

    def __init__(self, limit: int = LINE_BYTES_MAX) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._skipped: TooLong | None = None

    def feed(self, data: bytes) -> Iterator[bytes | TooLong]:
        """The lines that these bytes complete."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._take()
        self._add(rest)

    def rest(self) -> bytes | TooLong:
        """What stands after the last line end, when nothing more will come."""
        return self._take()

    def _add(self, part: bytes) -> None:
        if self._skipped is not None:
            self._skipped = TooLong(self._skipped.head, (self._skipped.tail + part)[-EDGE_BYTES:])
            return
        self._parts.append(part)
        self._size += len(part)
        if self._size > self._limit:
            line = b"".join(self._parts)
            self._parts.clear()
            self._skipped = TooLong(line[:EDGE_BYTES], line[-EDGE_BYTES:])

    def _take(self) -> bytes | TooLong:
        line = b"".join(self._parts) if self._skipped is None else self._skipped
        self._parts.clear()
        self._size, self._skipped = 0, None
        return line
