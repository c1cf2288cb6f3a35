"""The outlet: the one place where protocol lines are written, whole and in order, whoever sends them.

A client that does not read may hold up a thread here, never the event loop. It knows nothing of what it writes."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

KEPT_BYTES_MAX: Final = 8_000_000
"""How much may wait for a client that reads slowly, before those who send have to wait too."""


class Outlet:
    """Writes lines to a descriptor, from any thread."""

    def __init__(self, descriptor: int, on_broken: Callable[[], object]) -> None:
        self._descriptor = descriptor
        self._on_broken = on_broken
        self._turn = threading.Condition()
        self._lines: deque[bytes] = deque()
        self._kept = 0
        self._is_writing = False
        self._is_broken = False
        self._writer: threading.Thread | None = None
        self._on_room: Callable[[], object] | None = None

    def send(self, line: bytes) -> None:
        """Write a line in this thread, if nobody else writes; wait while too much is kept."""
        with self._turn:
            self._turn.wait_for(lambda: self._kept < KEPT_BYTES_MAX or self._is_broken)
            self._keep(line)
        self._write_kept()

    def hand_in(self, line: bytes) -> None:
        """Leave a line to the writer's thread, at once."""
        with self._turn:
            self._keep(line)
            if self._writer is None:
                self._writer = threading.Thread(target=self._write_for_ever, name="outlet", daemon=True)
                self._writer.start()
            self._turn.notify_all()

    def call_on_room(self, on_room: Callable[[], object]) -> None:
        """Have this called, by another thread, when there is room again."""
        self._on_room = on_room

    @property
    def has_room(self) -> bool:
        """Whether a line may be handed in without keeping too much."""
        return self._kept < KEPT_BYTES_MAX

    def flush(self, wait_s: float) -> None:
        """Wait until all is written, or the client is gone, or the time is up."""
        with self._turn:
            self._turn.wait_for(lambda: not self._kept or self._is_broken, wait_s)

    def _keep(self, line: bytes) -> None:
        if not self._is_broken:
            self._lines.append(line)
            self._kept += len(line)

    def _write_for_ever(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._lines and not self._is_writing)
            self._write_kept()

    def _write_kept(self) -> None:
        """Write what is kept, unless another thread is at it, who will then write this too."""
        while batch := self._take():
            self._put_down(batch, is_written=_write_all(self._descriptor, batch))

    def _take(self) -> bytes:
        with self._turn:
            if self._is_writing or not self._lines:
                return b""
            self._is_writing = True
            batch = b"".join(self._lines)
            self._lines.clear()
            return batch

    def _put_down(self, batch: bytes, *, is_written: bool) -> None:
        with self._turn:
            self._is_writing = False
            self._kept -= len(batch)
            if not is_written:
                self._is_broken, self._kept = True, 0
                self._lines.clear()
            self._turn.notify_all()
        if not is_written:
            self._on_broken()
        if self._on_room is not None:
            self._on_room()


def _write_all(descriptor: int, data: bytes) -> bool:
    """Write it to the last byte; False: nobody reads any more."""
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except OSError:
            return False
    return True
