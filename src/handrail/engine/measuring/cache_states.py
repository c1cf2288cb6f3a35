"""What is known of the caches of a home, as it is shown: from counts and sizes to rates and gains. Pure.

Who has counted is decided in assembly/caching/levels.py, which also asks and measures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.metrics.cache_catalog import CHECK_RESULTS, SHARED_RESULTS, CacheCard, CacheLevel
from handrail.foundation.cache_use import CacheCount

Counts: TypeAlias = Mapping[str, tuple[CacheCount, int]]
"""By name of a cache: what one process counted, and how many entries it has."""


class CacheState(Struct, frozen=True, kw_only=True):
    """One cache, as it is shown."""

    name: str
    level: CacheLevel
    keeps: str
    bound: str
    entries: int | None = None
    """None if that is not known: in memory, of processes that can't be asked."""
    bytes: int | None = None
    hits: int = 0
    misses: int = 0
    hit_rate: float | None = None
    """None if it was never asked, as far as is known."""
    gain_ms: float | None = None
    """What a hit saved on average, in milliseconds; None if no miss was timed."""


class SharedState(Struct, frozen=True, kw_only=True):
    """The server of the shared level."""

    address: str
    answers: bool
    get_ms: float | None = None
    """The median of a few questions, asked now."""


class CacheReport(Struct, frozen=True, kw_only=True):
    """All caches of a home."""

    caches: tuple[CacheState, ...]
    shared: SharedState | None = None
    asked: tuple[str, ...] = ()
    """The addresses of running processes whose counts are in it."""
    ended_since: int | None = None
    """Since when the counts of ended processes are in it, in milliseconds since 1970; None if there are none."""


def added(ended: Mapping[str, CacheCount], running: Iterable[Counts]) -> dict[str, CacheCount]:
    """The counts of ended processes and of running ones, together."""
    counts = dict(ended)
    for one in running:
        for name, (count, _) in one.items():
            counts[name] = counts.get(name, CacheCount()) + count
    return counts


def state_of(card: CacheCard, counts: Mapping[str, CacheCount], size: tuple[int | None, int | None]) -> CacheState:
    """One cache, with its entries and bytes where they are known."""
    count = counts.get(card.name, CacheCount())
    if card is SHARED_RESULTS:  # without it, the rule would have been applied
        applied = counts.get(CHECK_RESULTS.name, CacheCount())
        count = replace(count, made=applied.made, miss_s=applied.miss_s)
    entries, in_bytes = size
    return CacheState(
        name=card.name,
        level=card.level,
        keeps=card.keeps,
        bound=card.bound,
        entries=entries,
        bytes=in_bytes,
        hits=count.hits,
        misses=count.misses,
        hit_rate=count.rate,
        gain_ms=count.gain_ms,
    )
