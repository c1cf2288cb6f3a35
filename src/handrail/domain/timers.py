"""Timers: at which time which step goes on; at most one time for each step.

Pure: the time is passed in. What happens when a time has come is decided in agenda.py."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush


class Timers:
    """The times that the steps of one run wait for."""

    def __init__(self) -> None:
        self._due: dict[str, int] = {}
        # Times that were replaced stay in the heap until they come up: to search for them would cost more.
        self._heap: list[tuple[int, str]] = []

    def set(self, path: str, due: int | None) -> None:
        """Let a step go on at this time, and at no other; None for no time at all."""
        if due is None:
            self._due.pop(path, None)
        elif self._due.get(path) != due:
            self._due[path] = due
            heappush(self._heap, (due, path))

    def take_due(self, now: int) -> list[str]:
        """The steps whose time has come, the earliest first; they wait for no time any more."""
        come: list[str] = []
        while self._heap and (due := self.next_due()) is not None and due <= now:
            _, path = heappop(self._heap)
            del self._due[path]
            come.append(path)
        return come

    def next_due(self) -> int | None:
        """When the next step's time comes."""
        while self._heap and self._due.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._due)
