"""Recent: values kept for the next time, the least recently used dropped first once they weigh too much together.

Weight, not number, is the bound: a document of a megabyte takes a hundred times the memory of its text."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A bounded memory; safe to use from several threads."""

    def __init__(self, weight_max: int) -> None:
        self.weight_max = weight_max
        self.weight = 0
        self._kept: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Value | None:
        """What was kept under a key, if it still is."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: Hashable, value: Value, *, weight: int) -> Value:
        """Keeps a value, and answers it."""
        with self._lock:
            if key in self._kept:
                self.weight -= self._kept.pop(key)[1]
            self._kept[key] = (value, weight)
            self.weight += weight
            while self.weight > self.weight_max:
                self.weight -= self._kept.popitem(last=False)[1][1]
        return value
