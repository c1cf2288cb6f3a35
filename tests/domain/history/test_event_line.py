"""Every event of a run has its words, once, for every place that shows it."""

from __future__ import annotations

from typing import get_args

import pytest

from domain.facts import entries
from handrail.domain.history.event_line import LINES, event_line
from handrail.domain.history.story import StoryFold
from handrail.domain.history.story_words import PATHS
from handrail.domain.journal.event import (
    AttemptStarted,
    Event,
    How,
    RunEvent,
    RunStarted,
    StepCompensated,
    StepEvent,
    StepSkipped,
)


def test_every_event_of_a_run_has_words() -> None:
    assert {*get_args(RunEvent), *get_args(StepEvent)} == set(LINES)


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (StepCompensated(step="send", how=How.EXECUTED), "send: undone"),
        (StepCompensated(step="send", how=How.BY_AGENT), "send: undone (by the agent)"),
        (StepCompensated(step="send", how=How.RECORDED), "send: undone (recorded, done elsewhere)"),
        (StepSkipped(step="{send}", reason="{no}"), "{send}: skipped: {no}"),
        (AttemptStarted(step="send", attempt=3), "send: started, try 3"),
    ],
)
def test_an_event_is_one_line(event: Event, line: str) -> None:
    (entry,) = entries([event])
    assert event_line(entry) == line


def test_the_latest_event_of_a_run_has_the_same_words() -> None:
    fold = StoryFold()
    start = RunStarted(definition="sha256:0", workflow="a-plan")
    for entry in entries([start, AttemptStarted(step="send", attempt=2)]):
        fold.take(entry)
    assert fold.latest(PATHS) == "“send”: started, try 2"
