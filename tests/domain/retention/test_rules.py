"""The rules of retention: which ended run is archived when, and what happens with an open one that nobody works on."""

from __future__ import annotations

import pytest

from handrail.domain.journal.projection import RunRow
from handrail.domain.retention.rules import (
    Abandonment,
    RetentionRule,
    RetentionRules,
    abandonment_of,
    archive_after_ms,
    is_due,
)

DAY = 86_400_000
RULES = RetentionRules(
    archive_after="90d",
    rules=(
        RetentionRule(workflow="audit-*", archive_after="never"),
        RetentionRule(workflow="nightly-*", outcome=("completed",), archive_after="7d"),
    ),
    abandoned_after="14d",
    answer_within="3d",
)


def row(workflow: str = "ship@1.0.0", status: str = "completed", ended: int | None = 0) -> RunRow:
    return RunRow(
        id="run_a",
        workflow=workflow,
        definition="",
        mode="run",
        status=status,
        goal="",
        started=0,
        updated=0,
        ended=ended,
        done=0,
        n=1,
        head=b"",
    )


@pytest.mark.parametrize(
    ("workflow", "status", "days"),
    [
        ("ship@1.0.0", "completed", 90),
        ("nightly-build", "completed", 7),
        ("nightly-build@2.0.0", "failed", 90),
        ("audit-2026", "completed", None),
        ("my-nightly-build", "completed", 90),
    ],
)
def test_the_first_rule_that_is_about_a_run_counts(workflow: str, status: str, days: int | None) -> None:
    assert archive_after_ms(RULES, row(workflow, status)) == (None if days is None else days * DAY)


def test_a_run_is_due_once_it_ended_long_enough_ago() -> None:
    assert not is_due(RULES, row(), now=90 * DAY - 1)
    assert is_due(RULES, row(), now=90 * DAY)
    assert not is_due(RULES, row(ended=None), now=900 * DAY)
    assert not is_due(RetentionRules(), row(), now=900 * DAY)


@pytest.mark.parametrize(
    ("days", "waits", "asked", "ending"),
    [
        (13, True, False, Abandonment.STAY),
        (14, True, False, Abandonment.ASK),
        (400, False, False, Abandonment.STAY),
        (2, False, True, Abandonment.STAY),
        (3, False, True, Abandonment.END),
    ],
)
def test_an_abandoned_run_is_asked_about_before_it_ends(
    days: int, waits: bool, asked: bool, ending: Abandonment
) -> None:
    open_run = row(status="running", ended=None)
    assert abandonment_of(RULES, open_run, now=days * DAY, waits_for_agent=waits, was_asked=asked) is ending
    assert (
        abandonment_of(RetentionRules(), open_run, now=days * DAY, waits_for_agent=waits, was_asked=asked)
        is Abandonment.STAY
    )
