"""A bounded cache: once it is full, the least recently used entry is dropped first.

Pure, and for one thread at a time; locked_cache.py has the version for several threads."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BoundedCache(Generic[Key, Value]):
    """Keeps entries of at most `weight_max` in all; an entry weighs 1 unless its caller says otherwise."""

    def __init__(self, weight_max: int) -> None:
        self.weight_max = weight_max
        self.weight = 0
        self._entries: OrderedDict[Key, tuple[Value, int]] = OrderedDict()

    def get(self, key: Key) -> Value | None:
        """The value under a key, if it is still kept; it counts as used now."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: Key, value: Value, *, weight: int = 1) -> Value:
        """Keep a value, and return it; one that outweighs the whole cache is not kept at all."""
        weight = max(1, weight)  # entries of weight 0 could be added without limit
        self.pop(key)  # setting a key again would leave it at its old position in the order of use
        self._entries[key] = (value, weight)
        self.weight += weight
        while self.weight > self.weight_max:
            _, (_, freed) = self._entries.popitem(last=False)
            self.weight -= freed
        return value

    def pop(self, key: Key) -> Value | None:
        """Remove an entry and return its value, if there was one."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self.weight -= entry[1]
        return entry[0]

    def __contains__(self, key: Key) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
