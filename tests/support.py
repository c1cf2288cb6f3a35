"""Time and chance for tests: a clock that ticks when it is read, and entropy that repeats itself."""

from __future__ import annotations

import hashlib
import itertools

from handrail.engine.clock import Clock, Entropy
from handrail.engine.record_writer import RecordWriter

START = 1_763_230_000_000


def ticking_clock(start: int = START) -> Clock:
    ticks = itertools.count(start)
    return lambda: next(ticks)


def seeded_entropy(seed: int = 0) -> Entropy:
    draws = itertools.count()

    def draw(size: int) -> bytes:
        return hashlib.shake_128(f"{seed}:{next(draws)}".encode()).digest(size)

    return draw


def record_writer(seed: int = 0) -> RecordWriter:
    return RecordWriter(ticking_clock(), seeded_entropy(seed))
