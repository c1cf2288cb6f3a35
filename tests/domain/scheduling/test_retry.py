"""Retry: whether there is another try, and when; policies add up key by key."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.definition.model import Category, Retry
from handrail.domain.scheduling.retry import DEFAULT, WAIT_MS_MAX, Policy, backoff_ms, due_of, policy_of

CHANCE = st.floats(0, 1, exclude_max=True)


def test_the_default_is_three_tries_for_what_time_may_heal() -> None:
    assert policy_of(None, None) == DEFAULT
    assert (DEFAULT.attempts, DEFAULT.jitter) == (3, True)
    assert DEFAULT.on == {Category.TRANSIENT, Category.TIMEOUT, Category.RATE_LIMITED}


def test_the_first_policy_wins_key_by_key() -> None:
    step = Retry(attempts=5, on=(Category.CONFLICT,))
    tool = Retry(attempts=9, first="250ms", max="2s")
    server = Retry(first="9s", factor=3.0, jitter=False)
    expected = Policy(
        attempts=5, first_ms=250, factor=3.0, max_ms=2_000, jitter=False, on=frozenset({Category.CONFLICT})
    )
    assert policy_of(step, tool, server) == expected


@given(st.integers(1, 50), CHANCE, st.sampled_from(Category))
def test_never_more_tries_than_the_policy_and_only_for_its_categories(
    failures: int, chance: float, category: Category
) -> None:
    due = due_of(DEFAULT, failures, category, now=1_000, random=chance)
    assert (due is None) == (failures >= 3 or category not in DEFAULT.on)


@given(st.integers(1, 2), CHANCE)
def test_full_jitter_draws_from_nothing_to_the_whole_backoff(failures: int, chance: float) -> None:
    due = due_of(DEFAULT, failures, Category.TRANSIENT, now=1_000, random=chance)
    assert due is not None
    assert 0 <= due - 1_000 <= backoff_ms(DEFAULT, failures)


def test_without_jitter_the_wait_doubles_up_to_its_bound() -> None:
    policy = Policy(attempts=99, first_ms=1_000, factor=2, max_ms=5_000, jitter=False)
    waits = [due_of(policy, n, Category.TRANSIENT, now=0, random=0.5) for n in (1, 2, 3, 4, 90)]
    assert waits == [1_000, 2_000, 4_000, 5_000, 5_000]


@pytest.mark.parametrize(("asked", "waited"), [(30_000, 30_000), (10**12, WAIT_MS_MAX), (0, 0)])
def test_a_server_is_given_the_time_it_asks_for_up_to_a_day(asked: int, waited: int) -> None:
    due = due_of(DEFAULT, 1, Category.RATE_LIMITED, now=0, random=0.0, retry_after_ms=asked)
    assert due == waited


def test_a_steep_policy_never_overflows() -> None:
    policy = Policy(attempts=10_000, factor=100.0, max_ms=60_000)
    assert backoff_ms(policy, 9_999) == 60_000
