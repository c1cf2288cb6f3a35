"""A cache never outgrows its bound, and forgets what was not used for longest."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.foundation.bounded_cache import BoundedCache
from handrail.foundation.locked_cache import LockedCache

Make = Callable[[int], BoundedCache[str, int] | LockedCache[str, int]]
both = pytest.mark.parametrize("make", [BoundedCache, LockedCache])


@both
def test_the_least_recently_used_goes_first(make: Make) -> None:
    cache = make(2)
    assert cache.put("a", 1) == 1
    cache.put("b", 2)
    assert cache.get("a") == 1  # used now
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


@both
def test_to_put_a_key_again_replaces_its_value_and_counts_as_use(make: Make) -> None:
    cache = make(2)
    for key, value in (("a", 1), ("b", 2), ("a", 10), ("c", 3)):
        cache.put(key, value)
    assert [cache.get(key) for key in "abc"] == [10, None, 3]
    assert len(cache) == 2


@both
def test_what_outweighs_the_whole_cache_is_not_kept(make: Make) -> None:
    cache = make(10)
    cache.put("small", 1, weight=4)
    assert cache.put("huge", 2, weight=11) == 2
    assert cache.get("huge") is None
    cache.put("large", 3, weight=10)
    assert [cache.get("small"), cache.get("large")] == [None, 3]


def test_what_weighs_nothing_is_counted_all_the_same() -> None:
    cache: BoundedCache[int, int] = BoundedCache(3)
    for number in range(9):
        cache.put(number, number, weight=0)
    assert len(cache) == 3


def test_a_popped_entry_gives_its_weight_back() -> None:
    cache: BoundedCache[str, int] = BoundedCache(10)
    cache.put("a", 1, weight=6)
    assert (cache.pop("a"), cache.pop("a")) == (1, None)
    assert ("a" in cache, len(cache), cache.weight) == (False, 0, 0)


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 7), st.sampled_from(["put", "pop", "get"]))))
def test_the_bound_holds_whatever_is_done(deeds: list[tuple[str, int, str]]) -> None:
    cache: BoundedCache[str, int] = BoundedCache(10)
    weights: dict[str, int] = {}
    for key, weight, deed in deeds:
        if deed == "put":
            cache.put(key, weight, weight=weight)
            weights[key] = weight
        elif deed == "pop":
            cache.pop(key)
        else:
            assert cache.get(key) in {None, weights.get(key)}
        assert cache.weight == sum(weights[one] for one in "abcdef" if one in cache) <= 10


def test_threads_may_share_a_locked_one() -> None:
    cache: LockedCache[int, int] = LockedCache(20)

    def work(start: int) -> None:
        for number in range(2_000):
            key = (start + number) % 40
            assert cache.get(key) in {None, key}
            cache.put(key, key, weight=1 + key % 3)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert cache._cache.weight == sum(cache._cache._entries[key][1] for key in cache._cache._entries) <= 20
