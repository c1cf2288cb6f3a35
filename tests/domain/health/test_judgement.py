"""From what on something is unhealthy."""

from __future__ import annotations

import pytest

from handrail.domain.errors import Unavailable
from handrail.domain.health.check import CheckLevel, HealthCheck, HealthStatus, fail, ok, overall, warn
from handrail.domain.health.judgement import (
    EARLIEST_MS,
    FREE_BYTES_FAIL,
    FREE_BYTES_WARN,
    STALLED_MS,
    checkpoint_check,
    clock_check,
    disk_check,
    server_check,
    store_check,
    worker_check,
)
from handrail.domain.scheduling.breaker import Breaker, BreakerStatus

NOW = EARLIEST_MS + 10**9
PROBLEM = Unavailable("the disk is full", hint="free some space")


def test_the_worst_check_decides() -> None:
    fine, odd, bad = ok("a", "x"), warn("b", "x", "y"), fail("c", "x", "y")
    assert overall([]) is HealthStatus.OK
    assert overall([fine]) is HealthStatus.OK
    assert overall([fine, odd]) is HealthStatus.DEGRADED
    assert overall([bad, odd, fine]) is HealthStatus.FAILED


@pytest.mark.parametrize(
    ("check", "level", "words"),
    [
        (disk_check(FREE_BYTES_WARN), CheckLevel.OK, "1.0 GB free"),
        (disk_check(FREE_BYTES_WARN - 1), CheckLevel.WARN, "free"),
        (disk_check(FREE_BYTES_FAIL - 1), CheckLevel.FAIL, "free"),
        (clock_check(now=EARLIEST_MS - 1, jump_ms=0, last_event=None), CheckLevel.FAIL, "in the past"),
        (clock_check(now=NOW, jump_ms=-2_500, last_event=None), CheckLevel.WARN, "jumped by -2.5 s"),
        (clock_check(now=NOW, jump_ms=0, last_event=NOW + 5_001), CheckLevel.WARN, "in the future"),
        (clock_check(now=NOW, jump_ms=1_000, last_event=NOW + 5_000), CheckLevel.OK, "steady"),
        (store_check(3, None, age_ms=1), CheckLevel.OK, "3 events"),
        (store_check(3, PROBLEM, age_ms=1), CheckLevel.FAIL, "nothing can be written: the disk is full"),
        (worker_check(None, age_ms=STALLED_MS), CheckLevel.OK, "looks for work"),
        (worker_check(None, age_ms=STALLED_MS + 1), CheckLevel.FAIL, "has not looked for work for 30 s"),
        (worker_check(PROBLEM, age_ms=0), CheckLevel.WARN, "the disk is full"),
        (checkpoint_check(None, unsigned=0, signed=None, now=NOW), CheckLevel.OK, "nothing is signed yet"),
        (checkpoint_check(None, unsigned=2, signed=NOW - 7, now=NOW), CheckLevel.OK, "2 events since then"),
        (checkpoint_check(PROBLEM, unsigned=2, signed=NOW, now=NOW), CheckLevel.WARN, "2 events are not signed"),
        (server_check(Breaker(server="git")), CheckLevel.OK, "no call to it is held back"),
        (
            server_check(Breaker(server="git", status=BreakerStatus.OPEN, failures=5, message="it hangs")),
            CheckLevel.WARN,
            "5 times in a row, so that its steps wait: it hangs",
        ),
        (server_check(Breaker(server="git", status=BreakerStatus.HALF_OPEN)), CheckLevel.WARN, "in a row"),
    ],
)
def test_each_level_has_its_words_and_whatever_is_wrong_its_fix(
    check: HealthCheck, level: CheckLevel, words: str
) -> None:
    assert check.level is level
    assert words in check.message
    assert bool(check.fix) == (level is not CheckLevel.OK)


def test_a_problem_keeps_its_age() -> None:
    assert store_check(0, PROBLEM, age_ms=4_000).age_ms == 4_000
    assert checkpoint_check(PROBLEM, unsigned=0, signed=NOW - 9, now=NOW).age_ms == 9
