"""The outlet: the only place where protocol lines are written, complete and in order, from any thread.

A client that doesn't read can block a thread here, but never the event loop. The lines are made in other modules."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

QUEUED_BYTES_MAX: Final = 8_000_000
"""How much may be queued for a slow client before senders have to wait."""


class Outlet:
    """Writes lines to a descriptor, from any thread."""

    def __init__(self, descriptor: int, on_broken: Callable[[], object]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._condition = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._queued = 0
        """Bytes that are not written yet, including those being written now."""
        self._is_writing = False
        self._is_broken = False
        self._writer: threading.Thread | None = None
        self._on_room: Callable[[], object] | None = None

    def send(self, line: bytes) -> None:
        """Write a line in this thread, unless another one is writing; wait while too much is queued."""
        with self._condition:
            self._condition.wait_for(lambda: self._queued < QUEUED_BYTES_MAX or self._is_broken)
            self._append(line)
        self._write_queued()

    def enqueue(self, line: bytes) -> None:
        """Leave a line to the writer thread; never waits, so the event loop may call it."""
        with self._condition:
            self._append(line)
            if self._writer is None:  # started late: a client that only lists tools never needs it
                self._writer = threading.Thread(target=self._write_forever, name="outlet", daemon=True)
                self._writer.start()
            self._condition.notify_all()

    def call_on_room(self, on_room: Callable[[], object]) -> None:
        """Have this called, from another thread, when there is room again."""
        self._on_room = on_room

    @property
    def has_room(self) -> bool:
        """Whether another line may be queued."""
        return self._queued < QUEUED_BYTES_MAX

    def flush(self, wait_s: float) -> None:
        """Wait until everything is written, the client is gone, or the time is up."""
        with self._condition:
            self._condition.wait_for(lambda: not self._queued or self._is_broken, wait_s)

    def _append(self, line: bytes) -> None:
        if not self._is_broken:
            self._lines.append(line)
            self._queued += len(line)

    def _write_forever(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(lambda: self._lines and not self._is_writing)
            self._write_queued()

    def _write_queued(self) -> None:
        """Write the queue, unless another thread is writing: that one will write these lines too."""
        while batch := self._take():
            self._finish(batch, is_written=_write_all(self._descriptor, batch))

    def _take(self) -> bytes:
        with self._condition:
            if self._is_writing or not self._lines:
                return b""
            self._is_writing = True
            batch = b"".join(self._lines)
            self._lines.clear()
            return batch

    def _finish(self, batch: bytes, *, is_written: bool) -> None:
        with self._condition:
            self._is_writing = False
            self._queued -= len(batch)
            if not is_written:
                self._is_broken, self._queued = True, 0
                self._lines.clear()
            self._condition.notify_all()
        if not is_written:  # outside the lock: the callbacks take locks of their own
            self._on_broken()
        if self._on_room is not None:
            self._on_room()


def _write_all(descriptor: int, data: bytes) -> bool:
    """Write everything; False if the client has closed its end."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except OSError:
            return False
    return True
