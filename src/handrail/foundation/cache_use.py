"""How often each cache of this process helped, and what a miss costs: counted where a cache is asked.

A miss is timed until the value is there, as its caller waits for it: what a hit saves is that time. Counters of the
process, not of a cache: a server has many of a kind, one for each project. Pure: the clock is passed in, by
`measure_with`; before that nothing is timed. Counting a hit costs 0.1 to 0.2 us (bench/caches.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar
from weakref import WeakSet

from msgspec import Struct

Cache = TypeVar("Cache", bound=Sized)


class CacheCount(Struct, frozen=True):
    """What was counted of one cache."""

    hits: int = 0
    misses: int = 0
    hit_s: float = 0.0
    """How long all hits took, where that is worth measuring."""
    miss_s: float = 0.0
    """How long it took to make what was missing."""
    made: int = 0
    """How many of the misses were timed."""

    def __add__(self, other: CacheCount) -> CacheCount:
        return CacheCount(
            self.hits + other.hits,
            self.misses + other.misses,
            self.hit_s + other.hit_s,
            self.miss_s + other.miss_s,
            self.made + other.made,
        )

    def __sub__(self, other: CacheCount) -> CacheCount:
        return CacheCount(
            self.hits - other.hits,
            self.misses - other.misses,
            self.hit_s - other.hit_s,
            self.miss_s - other.miss_s,
            self.made - other.made,
        )

    @property
    def rate(self) -> float | None:
        """The part of hits; None if it was never asked."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else None

    @property
    def gain_ms(self) -> float | None:
        """What a hit saves on average; None if no miss was timed."""
        if not self.made:
            return None
        return 1_000 * (self.miss_s / self.made - (self.hit_s / self.hits if self.hits else 0.0))


class Named(Protocol):
    """What names a cache: its card in the catalogue."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


class CacheInfo(Protocol):
    """What `lru_cache` says."""

    @property
    def hits(self) -> int:
        """How often it had the result."""
        ...

    @property
    def currsize(self) -> int:
        """How many results it has."""
        ...


class CachedFunction(Protocol):
    """A function with an `lru_cache`."""

    def cache_info(self) -> CacheInfo:
        """What it counted."""
        ...


class CacheUse:
    """Counts the use of one kind of cache in this process. Without a lock: an addition is one step for all threads."""

    def __init__(self) -> None:
        self.hits = self.misses = self.made = 0
        self.hit_s = self.miss_s = 0.0
        self._caches: WeakSet[Sized] = WeakSet()
        self._functions: list[CachedFunction] = []

    def keeps(self, cache: Cache) -> Cache:
        """Count the entries of this cache, too, as long as it lives."""
        self._caches.add(cache)
        return cache

    def reads(self, function: CachedFunction) -> None:
        """Count the hits and entries of a function with an `lru_cache`; its misses are counted in its body."""
        self._functions.append(function)

    def hit(self, *, times: int = 1, since: float | None = None) -> None:
        """It had what was asked for; `since` when that was looked for, by `now`, if it is worth measuring."""
        self.hits += times
        if since is not None:
            self.hit_s += now() - since

    def missed(self) -> None:
        """It did not, and how long it takes to make it is not known."""
        self.misses += 1

    @contextmanager
    def making(self) -> Iterator[None]:
        """It did not; the block makes it."""
        self.misses += 1
        started_s = now()
        yield
        if _clock is not None:  # not after an error: nothing was made
            self.miss_s += now() - started_s
            self.made += 1

    @contextmanager
    def reading(self) -> Iterator[None]:
        """It had it; the block does what is still to do, such as reading a file of the cache."""
        started_s = now()
        yield
        self.hit(since=started_s)

    def count(self) -> CacheCount:
        """What was counted so far."""
        hits = sum(one.cache_info().hits for one in self._functions)
        return CacheCount(self.hits + hits, self.misses, self.hit_s, self.miss_s, self.made)

    def entries(self) -> int:
        """How many entries there are now."""
        return sum(map(len, self._caches)) + sum(one.cache_info().currsize for one in self._functions)


_clock: Callable[[], float] | None = None


def measure_with(clock: Callable[[], float]) -> None:
    """Time what caches do with this clock, in seconds, from now on."""
    global _clock
    _clock = clock


def now() -> float:
    """The time on that clock; always 0 without one."""
    return _clock() if _clock is not None else 0.0


_uses: Final[dict[str, CacheUse]] = {}  # bounded: the cards are in one table


def use_of(card: Named) -> CacheUse:
    """The counter of a cache; there is one for each card."""
    return _uses.setdefault(card.name, CacheUse())


def counted() -> Mapping[str, tuple[CacheCount, int]]:
    """By name of the cache: what this process has counted, and how many entries it has."""
    return {name: (use.count(), use.entries()) for name, use in list(_uses.items())}
