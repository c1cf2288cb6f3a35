"""What a soak calls flat, and what it does not."""

from __future__ import annotations

import random

from interfaces.soak.verdict import LIMITS, SAMPLES_MIN, grown, growth


def test_what_moves_around_a_level_is_flat() -> None:
    draw = random.Random(7)
    level = {"memory MB": 120.0, "descriptors": 60.0, "WAL MB": 4.0, "p50 / bare": 2.0, "p95 / bare": 9.0}
    samples = {name: [one * draw.uniform(0.9, 1.1) for _ in range(60)] for name, one in level.items()}
    assert set(samples) == set(LIMITS)
    assert grown(samples) == {}


def test_what_rises_slowly_is_found() -> None:
    assert set(grown({"p50 / bare": [2 + 0.2 * minute for minute in range(60)]})) == {"p50 / bare"}
    assert set(grown({"memory MB": [100 + minute for minute in range(60)]})) == {"memory MB"}
    assert set(grown({"descriptors": [50 + minute for minute in range(60)]})) == {"descriptors"}
    assert set(grown({"WAL MB": [0.5 * minute for minute in range(60)]})) == {"WAL MB"}


def test_warming_up_and_one_slow_moment_are_no_growth() -> None:
    assert grown({"memory MB": [60, 80, 95, 100, *[120] * 40]}) == {}
    assert grown({"p95 / bare": [*[4] * 38, 400, 4]}) == {}


def test_too_few_samples_say_nothing() -> None:
    assert growth([1.0] * (SAMPLES_MIN - 1)) is None
    assert grown({"memory MB": [1.0, 1_000.0]}) == {}
