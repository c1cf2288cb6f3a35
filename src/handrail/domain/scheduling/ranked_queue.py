"""A queue ordered by rank, the most urgent first. Iterating does not remove anything.

Pure. A heap would be faster to fill, but can't be read in order without being emptied, and the readers of a run share
the queue with its conductor."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

Rank = TypeVar("Rank", int, tuple[int, int, tuple[int, ...]])


class RankedQueue(Generic[Rank]):
    """Paths of steps, each once, ordered by rank."""

    def __init__(self) -> None:
        self._ranks: dict[str, Rank] = {}
        self._order: list[tuple[Rank, str]] = []

    def add(self, path: str, rank: Rank) -> None:
        """Insert a step at its place; one that is already in the queue stays where it is."""
        if path not in self._ranks:
            self._ranks[path] = rank
            insort(self._order, (rank, path))

    def discard(self, path: str) -> None:
        """Remove a step, if it is in the queue."""
        rank = self._ranks.pop(path, None)
        if rank is not None:
            del self._order[bisect_left(self._order, (rank, path))]

    def clear(self) -> None:
        """Remove all steps."""
        self._ranks.clear()
        self._order.clear()

    def __iter__(self) -> Iterator[str]:
        return (path for _, path in self._order)

    def __contains__(self, path: object) -> bool:
        return path in self._ranks

    def __len__(self) -> int:
        return len(self._order)
