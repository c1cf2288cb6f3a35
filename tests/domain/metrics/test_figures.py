"""Figures that add up: buckets, bounds of labels, and the fold of events."""

from __future__ import annotations

from handrail.domain.definition.model import Category
from handrail.domain.journal.event import (
    AttemptFailed,
    AttemptStarted,
    Entry,
    Event,
    RetryScheduled,
    RunCompleted,
    RunStarted,
    StepCompleted,
)
from handrail.domain.metrics import catalog
from handrail.domain.metrics.catalog import LABEL_VALUES_MAX, METRICS, OTHER, MetricKind, age_label
from handrail.domain.metrics.event_figures import EventFigures, StepFacts
from handrail.domain.metrics.figures import Figures, Histogram

TOOL = StepFacts("tool", "git.tag", "git.untag")


def entry(event: Event, at: int) -> Entry:
    return Entry(stream="run_a", n=1, at=at, actor="handrail", event=event)


def test_a_value_on_a_bound_is_in_its_bucket() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 99.0):
        histogram.add(value)
    assert list(histogram.cumulative()) == [("1.0", 2), ("2.0", 4), ("+Inf", 5)]
    assert histogram.total == 104.0


def test_labels_beyond_the_bound_count_together() -> None:
    figures = Figures()
    for number in range(LABEL_VALUES_MAX + 5):
        figures.count(catalog.RETRIES, f"server.tool{number}")
    counts = figures.counts[catalog.RETRIES.name]
    assert len(counts) == LABEL_VALUES_MAX + 1
    assert counts[OTHER,] == 5
    figures.count(catalog.RETRIES, "server.tool0")  # who is known stays known
    assert counts["server.tool0",] == 2


def test_a_step_takes_as_long_as_all_of_its_attempts() -> None:
    figures = Figures()
    fold = EventFigures(figures)
    story: list[tuple[Event, int]] = [
        (RunStarted(definition="d", workflow="w"), 1_000),
        (AttemptStarted(step="tag", attempt=1), 1_000),
        (AttemptFailed(step="tag", attempt=1, category=Category.TIMEOUT, message="slow", took=2_000), 3_000),
        (RetryScheduled(step="tag", attempt=2, due=4_000), 3_000),
        (AttemptStarted(step="tag", attempt=2), 4_000),
        (StepCompleted(step="tag", took=500, evidence=({"rule": "x", "passed": True, "took": 20},)), 4_500),
        (RunCompleted(), 5_000),
    ]
    for event, at in story:
        fold.take(type(event).__name__, entry(event, at), TOOL)
    assert figures.counts[catalog.ATTEMPTS.name] == {("git.tag", "timeout"): 1, ("git.tag", "ok"): 1}
    assert figures.counts[catalog.RETRIES.name] == {("git.tag",): 1}
    assert figures.histograms[catalog.STEP_SECONDS.name]["tool",].total == 3.5
    assert figures.histograms[catalog.ATTEMPT_SECONDS.name]["git.tag",].total == 2.5
    assert figures.histograms[catalog.RUN_SECONDS.name]["completed",].total == 4.0
    assert figures.counts[catalog.CHECKS.name] == {("x", "passed"): 1}


def test_names_are_unique_and_follow_the_conventions_of_prometheus() -> None:
    names = [one.name for one in METRICS]
    assert len(set(names)) == len(names)
    for one in METRICS:
        assert one.name.startswith("handrail_")
        assert not one.name.endswith("_total")  # the exposition adds it to counters
        assert one.help.endswith(".")
        assert bool(one.buckets) == (one.kind is MetricKind.HISTOGRAM)
        assert not {"run", "step", "id", "project", "actor", "session"} & set(one.labels)


def test_ages_have_few_labels() -> None:
    assert [age_label(age_s) for age_s in (0, 300, 301, 3_600, 86_400, 604_800, 604_801)] == [
        "5m",
        "5m",
        "1h",
        "1h",
        "1d",
        "7d",
        "older",
    ]
