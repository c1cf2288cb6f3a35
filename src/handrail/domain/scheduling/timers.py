"""Timers: when each step of a run continues; at most one time for each step.

Pure: the time is passed in. What happens when a timer is due is decided in agenda.py."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush


class Timers:
    """The times that the steps of one run wait for."""

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        # Replaced times stay in the heap until they come up: searching for them would cost more.
        self._heap: list[tuple[int, str]] = []

    def set(self, path: str, due: int | None) -> None:
        """Set the one time at which a step continues; None removes it."""
        if due is None:
            self._due.pop(path, None)
        elif self._due.get(path) != due:
            # An equal time is not pushed again: a step that is reported often would fill the heap.
            self._due[path] = due
            heappush(self._heap, (due, path))

    def take_due(self, now: int) -> list[str]:
        """Remove and return the steps whose time has come, the earliest first."""
        come: list[str] = []
        while self._heap and (due := self.next_due()) is not None and due <= now:
            _, path = heappop(self._heap)
            del self._due[path]
            come.append(path)
        return come

    def next_due(self) -> int | None:
        """The earliest time that is set; None if there is none."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._due)
