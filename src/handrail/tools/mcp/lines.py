"""Lines of a tool server's output: cut within a bound, and what can be told of one without understanding it.

Pure. A line that is too long is not held: its first and last bytes are enough to find whose answer it was. What lines
mean to a conversation is in pipe.py."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Struct

EDGE_BYTES: Final = 1_024
PARTS_MAX: Final = 500_000
"""Values in one line: many small ones cost far more than their bytes say."""
PARTS_LOOKED_AT: Final = 1_000_000
"""Shorter lines can't hold so many that it matters."""

_id = re.compile(rb'"id"\s*:\s*(?:(\d{1,15})|"(\w[\w-]{0,99})")')
_progress = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"method"\s*:\s*"notifications/progress"')


class Overlong(Struct, frozen=True):
    """A line that was too long, as far as it is kept; told once when it passes the bound, and once at its end."""

    head: bytes
    tail: bytes
    is_whole: bool


class Lines:
    """Cuts chunks into lines."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: list[bytes] = []
        self._head = self._tail = b""
        self._is_over = False
        self.size = 0
        """How long the line under way is by now."""

    def feed(self, chunk: bytes) -> Iterator[bytes | Overlong]:
        """The lines that end in this chunk, and the news of one that has become too long."""
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            if news := self._grown(chunk[start:end]):
                yield news
            yield self._ended()
            start = end + 1
        if start < len(chunk) and (news := self._grown(chunk[start:])):
            yield news

    def _grown(self, piece: bytes) -> Overlong | None:
        self.size += len(piece)
        if self._is_over:
            self._tail = (self._tail + piece)[-EDGE_BYTES:]
            return None
        self._pieces.append(piece)
        if self.size <= self._bytes_max:
            return None
        held = b"".join(self._pieces)
        self._head, self._tail = held[:EDGE_BYTES], held[-EDGE_BYTES:]
        self._pieces.clear()
        self._is_over = True
        return Overlong(self._head, b"", is_whole=False)

    def _ended(self) -> bytes | Overlong:
        line = Overlong(self._head, self._tail, is_whole=True) if self._is_over else b"".join(self._pieces)
        self._pieces.clear()
        self._is_over, self.size = False, 0
        return line


def named_ids(text: bytes) -> Iterator[int | str]:
    """The JSON-RPC ids that a broken message may be about: those at its beginning first."""
    for edge in (text[:EDGE_BYTES], text[-EDGE_BYTES:]):
        for found in _id.finditer(edge):
            yield plain_id(found[1].decode() if found[1] else found[2].decode())


def plain_id(identifier: int | str) -> int | str:
    """An id as it was sent: some servers give numbers back as text."""
    return int(identifier) if isinstance(identifier, str) and identifier.isdecimal() else identifier


def is_progress(line: bytes) -> bool:
    """Whether a line says how far a call is, told without parsing it."""
    return _progress.match(line) is not None


def is_broken_message(line: bytes) -> bool:
    """Whether a line that is no valid message was meant as one; a log line on the wrong stream was not."""
    if not line.lstrip().startswith(b"{"):
        return False
    if b'"jsonrpc"' in line[:EDGE_BYTES] or b'"jsonrpc"' in line[-EDGE_BYTES:]:
        return True
    try:
        msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return True
    return False


def has_too_many_parts(line: bytes) -> bool:
    """Whether a line holds more values than anybody could want to look at."""
    return len(line) > PARTS_LOOKED_AT and sum(line.count(mark) for mark in (b",", b"[", b"{")) > PARTS_MAX
