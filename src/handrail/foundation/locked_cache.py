"""A bounded cache that several threads can share. The bound is enforced in bounded_cache.py."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Generic

from handrail.foundation.bounded_cache import BoundedCache, Key, Value


class LockedCache(Generic[Key, Value]):
    """A BoundedCache behind a lock; not in bounded_cache.py because the domain may not import threads."""

    def __init__(self, weight_max: int) -> None:
        self._cache: BoundedCache[Key, Value] = BoundedCache(weight_max)
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """The value under a key, if it is still kept."""
        with self._lock:
            return self._cache.get(key)

    def some(self, keys: Iterable[Key]) -> list[Value | None]:
        """The values under many keys, in order, each if it is still kept."""
        with self._lock:
            return [self._cache.get(key) for key in keys]

    def put(self, key: Key, value: Value, *, weight: int = 1) -> Value:
        """Keep a value, and return it."""
        with self._lock:
            return self._cache.put(key, value, weight=weight)

    def __len__(self) -> int:
        with self._lock:
            return len(self._cache)
