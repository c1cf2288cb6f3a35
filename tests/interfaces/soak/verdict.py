"""Whether a series of samples is flat: its last quarter is compared with its second, after everything has warmed up.

Pure. Medians, so that one slow moment of the machine decides nothing. Latency is judged by what a bare process takes at
that time: what else the machine does hits both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

SAMPLES_MIN = 8


@dataclass(frozen=True)
class Allowed:
    """How much more the last quarter may have than the second: a part of it, and so much besides."""

    part: float
    more: float


LIMITS: Mapping[str, Allowed] = {
    "memory MB": Allowed(0.10, 12),
    "descriptors": Allowed(0.10, 6),
    "WAL MB": Allowed(0.50, 8),
    "p50 / bare": Allowed(0.75, 1),
    "p95 / bare": Allowed(0.75, 4),
}


def growth(values: Sequence[float]) -> tuple[float, float] | None:
    """The median of the second quarter, and of the last; None if there are too few samples to say."""
    if len(values) < SAMPLES_MIN:
        return None
    quarter = len(values) // 4
    return median(values[quarter : 2 * quarter]), median(values[-quarter:])


def grown(samples: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, float]]:
    """What is not flat, with its median before and in the end."""
    found: dict[str, tuple[float, float]] = {}
    for name, allowed in LIMITS.items():
        both = growth(samples.get(name, ()))
        if both is not None and both[1] > both[0] * (1 + allowed.part) + allowed.more:
            found[name] = both
    return found
