"""What is counted of caches: hits, misses, what a miss costs, and how many entries there are."""

from __future__ import annotations

import gc
import itertools
from functools import lru_cache
from pathlib import Path

import pytest

from handrail.domain.metrics.cache_catalog import CACHES, RUN_STATES, CacheLevel
from handrail.foundation import cache_use
from handrail.foundation.bounded_cache import BoundedCache
from handrail.foundation.cache_use import CacheCount, CacheUse, counted, now, use_of


def test_a_cache_that_was_never_asked_has_no_rate_and_no_gain() -> None:
    assert (CacheUse().count().rate, CacheUse().count().gain_ms) == (None, None)


def test_a_gain_is_what_a_miss_takes_less_what_a_hit_takes() -> None:
    count = CacheCount(hits=4, misses=3, hit_s=0.004, miss_s=0.2, made=2)
    assert count.rate == pytest.approx(4 / 7)
    assert count.gain_ms == pytest.approx(99.0)


def test_what_could_not_be_made_is_a_miss_without_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count(100.0)
    monkeypatch.setattr(cache_use, "_clock", lambda: next(ticks))
    use = CacheUse()
    with pytest.raises(ZeroDivisionError), use.making():
        _ = 1 / 0
    use.missed()
    assert use.count() == CacheCount(misses=2)
    assert use.count().gain_ms is None
    with use.making():
        pass
    with use.reading():
        pass
    use.hit(times=3, since=now() - 1.5)
    found = use.count()
    assert (found.hits, found.misses, found.made) == (4, 3, 1)
    assert found.hit_s == pytest.approx(1.0 + 2.5)
    assert found.miss_s == pytest.approx(1.0)


def test_without_a_clock_nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_use, "_clock", None)
    use = CacheUse()
    with use.making():
        pass
    with use.reading():
        pass
    assert use.count() == CacheCount(hits=1, misses=1)


def test_counts_add_up_and_what_is_new_is_their_difference() -> None:
    one, more = CacheCount(1, 2, 0.5, 1.0, 1), CacheCount(3, 4, 0.25, 2.0, 2)
    assert one + more - one == more


def test_entries_are_those_of_the_caches_that_live() -> None:
    use = CacheUse()
    one: BoundedCache[str, int] = use.keeps(BoundedCache(2))
    other: BoundedCache[str, int] = use.keeps(BoundedCache(2))
    for name in "abc":
        one.put(name, 1)
    other.put("x", 1)
    assert use.entries() == 3
    del other
    gc.collect()
    assert use.entries() == 2

    @lru_cache(maxsize=2)
    def doubled(number: int) -> int:
        with use.making():
            return 2 * number

    use.reads(doubled)
    assert [doubled(1), doubled(2), doubled(1)] == [2, 4, 2]
    assert (use.count().hits, use.count().misses, use.entries()) == (1, 2, 4)


def test_each_cache_has_one_counter_and_a_name_of_its_own() -> None:
    assert use_of(RUN_STATES) is use_of(RUN_STATES)
    assert RUN_STATES.name in counted()
    assert set(counted()) <= {card.name for card in CACHES}
    assert len({card.name for card in CACHES}) == len(CACHES)
    assert all(bool(card.place) == (card.level is CacheLevel.DISK) for card in CACHES)


def test_the_page_lists_every_cache_as_the_catalogue_has_it() -> None:
    page = (Path(__file__).parents[2] / "docs" / "operations" / "caches.md").read_text(encoding="utf-8")
    for card in CACHES:
        if card.level is not CacheLevel.SHARED:
            assert f"| `{card.name}` | {card.keeps} | {card.bound} |" in page, card.name
