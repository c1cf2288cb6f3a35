"""Which notice an event is worth, by which rule."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from handrail.domain.journal.chain import Record
from handrail.domain.journal.codec import KIND_OF, encode_body
from handrail.domain.journal.event import (
    Event,
    RunCompensated,
    RunCompensationFailed,
    RunCompleted,
    RunFailed,
    StepFailed,
)
from handrail.domain.journal.projection import RunRow
from handrail.domain.journal.store_event import BreakerOpened
from handrail.domain.notify.event_notices import event_notices
from handrail.domain.notify.notice import Notice
from handrail.domain.notify.rules import NotifyRule, NotifyWhen

RUN = RunRow(
    id="run_a",
    workflow="ship@1.2.0",
    definition="d",
    mode="run",
    status="failed",
    goal="",
    started=1,
    updated=2,
    ended=2,
    done=0,
    n=9,
    head=b"",
    project="prj_1",
)
ALL = tuple(NotifyRule(when=one, to=("ops",)) for one in NotifyWhen)


def record(event: Event, stream: str = "run_a") -> Record:
    step = getattr(event, "step", None) or None
    return Record(stream, 9, 500, KIND_OF[type(event)], "agent:a", step, None, 1, b"", encode_body(event), b"\x0f")


def notices(event: Event, *rules: NotifyRule, stream: str = "run_a", run: RunRow | None = RUN) -> list[Notice]:
    return event_notices(rules or ALL[:3], record(event, stream), event, run, "st_1")


FAILED = RunFailed(step="publish", message="403 from\nregistry")


@pytest.mark.parametrize(
    ("event", "stream", "when", "text"),
    [
        (FAILED, "run_a", "run_failed", r"run_a (ship@1.2.0) failed at publish: 403 from\x0aregistry"),
        (RunFailed(step="", message="too late"), "run_a", "run_failed", "run_a (ship@1.2.0) failed: too late"),
        (RunCompensated(), "run_a", "run_failed", "run_a (ship@1.2.0) failed and was undone"),
        (
            RunCompensationFailed(steps=("tag",), not_compensated=("mail",)),
            "run_a",
            "compensation_failed",
            "run_a (ship@1.2.0) could not be undone: tag, mail",
        ),
        (
            BreakerOpened(server="git", failures=5, until=9, message="refused"),
            "server/prj_1/git",
            "breaker_opened",
            "the tool server git failed 5 times in a row: refused",
        ),
    ],
)
def test_each_rule_tells_its_events_in_a_line(event: Event, stream: str, when: str, text: str) -> None:
    (one,) = notices(event, stream=stream, run=RUN if stream == "run_a" else None)
    assert (one.when, one.text, one.at, one.subject) == (when, text, 500, stream)
    assert (one.data["n"], one.data["kind"], one.data["hash"]) == (9, KIND_OF[type(event)], "0f")


def test_what_no_rule_is_about_is_no_notice() -> None:
    assert notices(RunCompleted()) == []
    assert notices(StepFailed(step="a", category=_category(), message="x")) == []
    assert notices(FAILED, *ALL[4:]) == [], "rules of conditions look at no events"


def _category() -> Any:
    from handrail.domain.definition.model import Category

    return Category.TRANSIENT


def test_an_event_rule_tells_the_kinds_that_it_names_and_carries_no_content() -> None:
    some = NotifyRule(when=NotifyWhen.EVENT, to=("ops",), kinds=("run_completed", "step_failed"))
    (one,) = notices(RunCompleted(outputs={"secret": "value"}), some)
    assert one.text == "run_a (ship@1.2.0): run completed"
    assert one.data == {
        "n": 9,
        "kind": "run_completed",
        "actor": "agent:a",
        "hash": "0f",
        "run": "run_a",
        "workflow": "ship@1.2.0",
        "project": "prj_1",
    }
    assert notices(FAILED, some) == []
    (everything,) = notices(FAILED, ALL[3])
    assert everything.data["step"] == "publish"


def test_a_rule_can_be_about_some_workflows_only() -> None:
    def of(pattern: str) -> list[Notice]:
        return notices(FAILED, NotifyRule(when=NotifyWhen.RUN_FAILED, to=("ops",), workflow=pattern))

    assert of("ship")
    assert of("sh*")
    assert not of("nightly-*")


def test_the_same_event_makes_the_same_notice_once_for_each_kind_of_rule() -> None:
    twice = notices(FAILED, ALL[0], replace(ALL[0], workflow="sh*"), ALL[3])
    assert [one.when for one in twice] == ["run_failed", "event"]
    assert twice == notices(FAILED, ALL[0], ALL[3])
    assert len({one.id for one in twice}) == 2
    other = event_notices(ALL[:1], record(FAILED), FAILED, RUN, "st_2")
    assert other[0].id != twice[0].id


def test_an_event_that_cant_be_read_is_still_an_event() -> None:
    (one,) = event_notices(ALL, record(FAILED), None, None, "st_1")
    assert one.when == "event"
