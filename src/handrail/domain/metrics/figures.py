"""Figures that add up: counters and histograms by label, with a bound on the number of label values.

Pure. A value that would be one too many counts under `_OTHER`, so that a stranger's names can't fill the memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from handrail.domain.metrics.catalog import LABEL_VALUES_MAX, METRICS, OTHER, Metric, MetricKind


@dataclass(slots=True)
class Histogram:
    """How often values fell into each bucket, and their sum."""

    buckets: tuple[float, ...]
    counts: list[int] = field(default_factory=list)
    """One for each bucket, and one for what is larger than all."""
    total: float = 0.0

    def __post_init__(self) -> None:
        self.counts = [0] * (len(self.buckets) + 1)

    def add(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.buckets, value)] += 1
        self.total += value

    def cumulative(self) -> Iterator[tuple[str, int]]:
        """By upper bound: how many values were at most that; the last bound is infinite."""
        count = 0
        for bound, own in zip((*map(str, self.buckets), "+Inf"), self.counts, strict=True):
            count += own
            yield bound, count


class Figures:
    """All counters and histograms, as they add up."""

    def __init__(self) -> None:
        self.counts: dict[str, Counter[tuple[str, ...]]] = {
            one.name: Counter() for one in METRICS if one.kind is MetricKind.COUNTER
        }
        self.histograms: dict[str, dict[tuple[str, ...], Histogram]] = {
            one.name: {} for one in METRICS if one.kind is MetricKind.HISTOGRAM
        }
        self._values: dict[tuple[str, int], set[str]] = {}

    def count(self, metric: Metric, *labels: str, by: int = 1) -> None:
        """Add to a counter."""
        self.counts[metric.name][self._bounded(metric, labels)] += by

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Add a value to a histogram."""
        kept = self._bounded(metric, labels)
        histograms = self.histograms[metric.name]
        histogram = histograms.get(kept)
        if histogram is None:
            histogram = histograms[kept] = Histogram(metric.buckets)
        histogram.add(value)

    def _bounded(self, metric: Metric, labels: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._kept(metric.name, place, value) for place, value in enumerate(labels))

    def _kept(self, name: str, place: int, value: str) -> str:
        known = self._values.setdefault((name, place), set())
        if value in known:
            return value
        if len(known) >= LABEL_VALUES_MAX:
            return OTHER
        known.add(value)
        return value
