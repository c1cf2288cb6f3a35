"""Splits a stream of bytes into lines, and keeps no more of a line in memory than is allowed.

Pure. A line that is too long is skipped: its first and last bytes are enough to find the message id. Imports little,
because the stdio front loads this before its first answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

EDGE_BYTES: Final = 1_024
"""How much of both ends of a line that is too long is kept."""


class Overlong(NamedTuple):
    """The kept ends of a line that is too long: reported once when it passes the limit, and once at its end."""

    head: bytes
    tail: bytes
    is_whole: bool


class LineCutter:
    """Takes bytes as they arrive, and returns whole lines."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: list[bytes] = []
        self._head = self._tail = b""
        self._is_over = False
        self.size = 0
        """The length of the unfinished line so far."""

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """The lines that end in this chunk, and a report when a line becomes too long."""
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield from self._grow(end)
            yield self.rest()
        yield from self._grow(rest)

    def rest(self) -> bytes | Overlong:
        """Whatever came after the last line end; the next line starts empty."""
        line = Overlong(self._head, self._tail, is_whole=True) if self._is_over else b"".join(self._pieces)
        self._pieces.clear()
        self._is_over, self.size = False, 0
        return line

    def _grow(self, piece: bytes) -> Iterator[Overlong]:
        self.size += len(piece)
        if self._is_over:
            self._tail = (self._tail + piece)[-EDGE_BYTES:]
            return
        self._pieces.append(piece)
        if self.size > self._bytes_max:
            held = b"".join(self._pieces)
            self._head, self._tail = held[:EDGE_BYTES], held[-EDGE_BYTES:]
            self._pieces.clear()
            self._is_over = True
            yield Overlong(self._head, b"", is_whole=False)
