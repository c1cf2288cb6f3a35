"""A bucket lets a burst pass, then as many as it is filled with; whatever the clock does."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.foundation.token_bucket import TokenBucket, take_token


def test_a_burst_passes_and_the_next_one_waits_for_its_token() -> None:
    bucket = None
    for _ in range(3):
        bucket, wait = take_token(bucket, 100, amount=3, period=60)
        assert wait is None
    bucket, wait = take_token(bucket, 100, amount=3, period=60)
    assert wait == 20
    assert take_token(bucket, 120, amount=3, period=60)[1] is None


def test_a_clock_that_was_set_back_grants_nothing() -> None:
    bucket, wait = take_token(TokenBucket(0.5, 1_000), 10, amount=1, period=10)
    assert (bucket, wait) == (TokenBucket(0.5, 1_000), 5)


@given(st.lists(st.integers(0, 300), min_size=1, max_size=60), st.integers(1, 5))
def test_no_window_lets_more_pass_than_a_burst_and_what_was_filled(gaps: list[int], amount: int) -> None:
    bucket, now, passed = None, 0, list[int]()
    for gap in gaps:
        now += gap
        bucket, wait = take_token(bucket, now, amount=amount, period=1_000)
        if wait is None:
            passed.append(now)
    for index, start in enumerate(passed):
        for end in range(index, len(passed)):
            filled = (passed[end] - start) * amount / 1_000
            assert end - index + 1 <= amount + filled + 1e-6
