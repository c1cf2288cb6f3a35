"""Given events, then the spans that ended with them. That this holds for whole days: tests/simulation/test_spans.py."""

from __future__ import annotations

from domain.facts import CHAIN, RUN, entries, plan, started
from handrail.domain.definition.model import Category, Definition, Effect
from handrail.domain.journal.event import (
    ApprovalGiven,
    ApprovalRequested,
    ApprovalWithdrawn,
    AttemptFailed,
    AttemptLost,
    AttemptStarted,
    CompensationStarted,
    Event,
    How,
    RetryScheduled,
    RunCancelled,
    RunCompensated,
    RunCompleted,
    RunFailed,
    StepBecameUncertain,
    StepCompensated,
    StepCompleted,
    StepFailed,
    StepOpened,
    StepRetried,
    StepSkipped,
    UndoStarted,
)
from handrail.domain.run.state import Run
from handrail.domain.tracing.ended_spans import EndedSpan, ended_spans


def spans(*events: Event, definition: Definition = CHAIN) -> list[EndedSpan]:
    return ended_spans(Run(id=RUN), entries([started(), *events]), definition)


def by_name(found: list[EndedSpan]) -> dict[str, EndedSpan]:
    assert len({span.name for span in found}) == len(found)
    return {span.name: span for span in found}


def test_a_step_spans_its_attempts_and_the_run_its_steps() -> None:
    found = spans(
        AttemptStarted(step="tag", attempt=1),
        AttemptFailed(step="tag", attempt=1, category=Category.TIMEOUT, message="slow", took=900),
        RetryScheduled(step="tag", attempt=2, due=9_000),
        AttemptStarted(step="tag", attempt=2),
        StepCompleted(step="tag"),
        RunCompleted(),
    )
    assert [(one.name, one.start, one.end, one.error) for one in found] == [
        ("attempt tag", 2_000, 4_000, "timeout"),
        ("attempt tag", 5_000, 6_000, ""),
        ("step tag", 2_000, 6_000, ""),
        ("invoke_workflow a-plan", 1_000, 7_000, ""),
    ]
    first, second, step, run = found
    assert (first.parent, second.parent) == (step.key, step.key)
    assert (step.parent, run.parent) == (run.key, "")
    assert first.key != second.key
    assert [one.attributes["handrail.attempt.number"] for one in found[:2]] == [1, 2]
    assert step.attributes["handrail.step.kind"] == "tool"


def test_a_short_attempt_is_as_long_as_its_event_says() -> None:
    run = Run(id=RUN)
    both = entries([started(), AttemptStarted(step="tag", attempt=1), StepCompleted(step="tag", took=300)])
    (attempt, _) = ended_spans(run, both, CHAIN)
    assert (attempt.start, attempt.end) == (2_000, 3_000)
    (begun, over) = entries([AttemptStarted(step="tag", attempt=1), StepCompleted(step="tag", took=300)], after=1)
    at_once = type(over)(stream=RUN, n=3, at=begun.at, actor="handrail", event=over.event, hash=over.hash)
    (attempt, _) = ended_spans(run, [both[0], begun, at_once], CHAIN)
    assert (attempt.start, attempt.end) == (1_700, 2_000)


def test_a_lost_attempt_ends_when_it_is_noticed() -> None:
    (lost,) = spans(AttemptStarted(step="build", attempt=1), AttemptLost(step="build", attempt=1))
    assert (lost.name, lost.start, lost.end, lost.error) == ("attempt build", 2_000, 3_000, "lost")


def test_a_step_that_somebody_has_retried_is_another_span() -> None:
    found = spans(
        AttemptStarted(step="tag", attempt=1, effect=Effect.COMPENSATABLE),
        StepBecameUncertain(step="tag", attempt=1),
        StepRetried(step="tag", reason="it did not happen"),
        AttemptStarted(step="tag", attempt=2),
        StepFailed(step="tag", category=Category.PERMISSION, message="no"),
        StepSkipped(step="tag", reason="not needed"),
    )
    steps = [one for one in found if one.name == "step tag"]
    assert [(one.start, one.end, one.error) for one in steps] == [
        (2_000, 3_000, "uncertain"),
        (5_000, 6_000, "permission"),
    ]
    assert steps[0].key != steps[1].key
    assert [one.parent for one in found if one.name == "attempt tag"] == [one.key for one in steps]


def test_an_approval_spans_the_wait_and_begins_again_when_it_is_withdrawn() -> None:
    definition = plan({"id": "go", "approve": "Go?"})
    found = spans(
        ApprovalRequested(step="go", digest="d1", text="Go?"),
        ApprovalGiven(step="go", digest="d1", reason="yes"),
        ApprovalWithdrawn(step="go", digest="d1", changed=("x",)),
        ApprovalRequested(step="go", digest="d2", text="Go?"),
        ApprovalGiven(step="go", digest="d2", reason="yes"),
        definition=definition,
    )
    assert [(one.name, one.start, one.end) for one in found] == [("step go", 2_000, 3_000), ("step go", 5_000, 6_000)]
    assert len({one.key for one in found}) == 2


def test_the_steps_of_a_loop_are_below_it_under_one_name() -> None:
    definition = plan({"id": "build", "each": "[1, 2]", "as": "t", "steps": [{"id": "make", "tool": "ci.build"}]})
    found = spans(
        StepOpened(step="build", rounds=2),
        *(
            event
            for path in ("build[0].make", "build[1].make")
            for event in (AttemptStarted(step=path, attempt=1), StepCompleted(step=path))
        ),
        StepCompleted(step="build"),
        definition=definition,
    )
    makes = [one for one in found if one.name == "step build.make"]
    loop = found[-1]
    assert [one.attributes["handrail.step.path"] for one in makes] == ["build[0].make", "build[1].make"]
    assert {one.parent for one in makes} == {loop.key}
    assert (loop.name, loop.attributes["handrail.step.kind"]) == ("step build", "each")


def test_undoing_is_below_its_compensation_and_a_run_ends_once() -> None:
    undone = (
        CompensationStarted(reason="bad", steps=("tag",)),
        UndoStarted(step="tag", attempt=1),
        StepCompensated(step="tag", how=How.EXECUTED),
        RunCompensated(),
    )
    done = (AttemptStarted(step="tag", attempt=1, effect=Effect.COMPENSATABLE), StepCompleted(step="tag"))
    at_once = by_name(spans(*done, *undone))
    assert at_once["undo tag"].parent == at_once["compensate"].key
    assert at_once["compensate"].parent == at_once["invoke_workflow a-plan"].key
    assert at_once["invoke_workflow a-plan"].error == "compensated"
    assert at_once["compensate"].error == ""
    for end in (RunCancelled(reason="enough"), RunFailed(step="tag", message="bad")):
        later = by_name(spans(*done, end, *undone))
        assert later["invoke_workflow a-plan"].end == 4_000
        assert (later["compensate"].start, later["compensate"].end) == (5_000, 8_000)


def test_a_step_that_never_began_has_no_span() -> None:
    assert spans(StepSkipped(step="tag", reason="not wanted")) == []
