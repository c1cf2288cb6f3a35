"""The circuit breaker of a server, and the pace of a tool."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.facts import entries
from handrail.domain.definition.model import Category
from handrail.domain.errors import Invalid
from handrail.domain.journal.store_event import BreakerClosed, BreakerOpened, BreakerProbed
from handrail.domain.scheduling.breaker import (
    OPEN_MS_FIRST,
    OPEN_MS_MAX,
    TRIPS_AFTER,
    Breaker,
    BreakerStatus,
    after_answer,
    apply_to_breaker,
    replay_breaker,
)
from handrail.domain.scheduling.call_rate import Pace, pace_of, taken
from handrail.foundation.token_bucket import TokenBucket

CI = Breaker(server="ci")
OPENED = BreakerOpened(server="ci", failures=5, until=1_000, message="503")


@pytest.mark.parametrize("failures", range(TRIPS_AFTER))
def test_it_opens_after_so_many_failures_in_a_row(failures: int) -> None:
    breaker = Breaker(server="ci", failures=failures)
    events = after_answer(breaker, Category.TRANSIENT, "503", now=0)
    assert bool(events) == (failures + 1 >= TRIPS_AFTER)


@pytest.mark.parametrize("category", sorted(set(Category) - {Category.TRANSIENT, Category.TIMEOUT}))
def test_the_callers_own_faults_say_nothing_about_the_server(category: Category) -> None:
    assert after_answer(Breaker(server="ci", failures=99), category, "no", now=0) == []


def test_it_stays_open_longer_each_time_up_to_a_bound() -> None:
    breaker, waits = CI, []
    for _ in range(8):
        half_open = apply_to_breaker(breaker, BreakerProbed(server="ci"))
        (event,) = after_answer(half_open, Category.TIMEOUT, "silent", now=0)
        assert isinstance(event, BreakerOpened)
        waits.append(event.until)
        breaker = apply_to_breaker(half_open, event)
    assert waits[:3] == [OPEN_MS_FIRST, 2 * OPEN_MS_FIRST, 4 * OPEN_MS_FIRST]
    assert waits[-1] == OPEN_MS_MAX


def test_one_good_answer_to_the_probe_closes_it_and_all_is_forgotten() -> None:
    half_open = replay_breaker(entries([OPENED, BreakerProbed(server="ci")]), CI)
    assert half_open.status is BreakerStatus.HALF_OPEN
    assert after_answer(half_open, None, "", now=0) == [BreakerClosed(server="ci")]
    assert replay_breaker(entries([OPENED, BreakerClosed(server="ci")]), CI) == CI


def test_answers_to_calls_from_before_do_not_open_it_again() -> None:
    assert after_answer(apply_to_breaker(CI, OPENED), Category.TRANSIENT, "503", now=0) == []


@pytest.mark.parametrize(
    ("text", "pace"), [("10/s", Pace(10, 1_000)), ("100/m", Pace(100, 60_000)), ("1/h", Pace(1, 3_600_000))]
)
def test_a_pace_is_read_as_authors_write_it(text: str, pace: Pace) -> None:
    assert pace_of(text) == pace


@pytest.mark.parametrize("text", ["", "10", "0/s", "-1/s", "10/d", "1.5/s", "ten/s"])
def test_what_is_no_pace_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        pace_of(text)


@given(st.lists(st.integers(0, 900), min_size=1, max_size=60))
def test_in_no_second_do_more_calls_begin_than_the_pace_and_its_burst_allow(gaps: list[int]) -> None:
    pace, bucket, now = Pace(5, 1_000), None, 0
    begun: list[int] = []
    for gap in gaps:
        now += gap
        bucket, due = taken(pace, bucket, now)
        if due is None:
            begun.append(now)
        else:
            assert due > now
    for start in begun:
        assert len([at for at in begun if start <= at < start + 1_000]) <= 2 * pace.calls


def test_a_clock_that_was_set_back_grants_nothing() -> None:
    bucket, due = taken(Pace(1, 1_000), TokenBucket(0.0, 5_000), 1_000)
    assert due is not None
    assert bucket.at == 5_000
