"""Recorded runs: the agent performs the steps itself, and its own word moves them."""

from __future__ import annotations

from typing import Any

import pytest

from domain.facts import after, fresh, plan
from handrail.domain.errors import Conflict, NotFound
from handrail.domain.journal.event import (
    ActionRecorded,
    AttemptStarted,
    Event,
    Mode,
    Outcome,
    Proof,
    StepCompleted,
    StepFailed,
    StepRetried,
    StepSkipped,
)
from handrail.domain.run.command import CancelRun, FinishRun, PauseRun, RecordAction, StartCompensation
from handrail.domain.run.decide import decide
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus

DEFINITION = plan({"id": "a", "prompt": "a"}, {"id": "b", "tool": "nobody.knows"}, {"id": "c", "prompt": "c"})


def said(step: str | None, outcome: Outcome | None, **more: Any) -> RecordAction:
    return RecordAction(description="so it was", step=step, outcome=outcome, **more)


def recorded(*reports: RecordAction) -> Run:
    return after(fresh(DEFINITION, Mode.RECORD), reports, DEFINITION)


def moves(run: Run, report: RecordAction) -> list[Event]:
    """What a report means, beside that it is noted."""
    first, *rest = decide(run, report, DEFINITION)
    assert isinstance(first, ActionRecorded)
    return rest


def test_a_report_that_a_step_is_done_starts_and_ends_it_as_claimed() -> None:
    assert moves(recorded(), said("a", Outcome.DONE, output=7)) == [
        AttemptStarted(step="a", attempt=1),
        StepCompleted(step="a", output=7, proof=Proof.CLAIMED),
    ]


def test_a_step_is_first_started_then_ended() -> None:
    run = recorded(said("a", Outcome.STARTED))
    assert run.step("a").status is StepStatus.RUNNING
    assert moves(run, said("a", Outcome.STARTED)) == []
    assert moves(run, said("a", Outcome.DONE)) == [StepCompleted(step="a", proof=Proof.CLAIMED)]
    assert [type(event) for event in moves(run, said("a", Outcome.FAILED))] == [StepFailed]


@pytest.mark.parametrize("outcome", [Outcome.STARTED, Outcome.DONE, Outcome.FAILED])
def test_a_step_that_failed_may_be_reported_again(outcome: Outcome) -> None:
    run = recorded(said("a", Outcome.FAILED))
    assert run.step("a").status is StepStatus.FAILED
    assert run.step("a").message == "so it was"
    again = moves(run, said("a", outcome))
    assert again[:2] == [StepRetried(step="a", reason="so it was"), AttemptStarted(step="a", attempt=2)]
    ends = {Outcome.STARTED: StepStatus.RUNNING, Outcome.DONE: StepStatus.COMPLETED, Outcome.FAILED: StepStatus.FAILED}
    later = after(run, [said("a", outcome)], DEFINITION)
    assert (later.step("a").status, later.step("a").attempts) == (ends[outcome], 2)


def test_a_step_that_failed_may_be_left_out() -> None:
    run = recorded(said("a", Outcome.FAILED))
    assert moves(run, said("a", Outcome.SKIPPED)) == [StepSkipped(step="a", reason="so it was")]


def test_while_the_run_is_paused_nothing_starts_not_even_again_but_what_is_under_way_may_end() -> None:
    failed = after(recorded(said("a", Outcome.FAILED)), [PauseRun(reason="lunch")], DEFINITION)
    pending = after(recorded(), [PauseRun(reason="lunch")], DEFINITION)
    running = after(recorded(said("a", Outcome.STARTED)), [PauseRun(reason="lunch")], DEFINITION)
    for run in (failed, pending):
        with pytest.raises(Conflict, match="paused: nothing new starts"):
            moves(run, said("a", Outcome.DONE))
    assert moves(running, said("a", Outcome.DONE)) == [StepCompleted(step="a", proof=Proof.CLAIMED)]


def test_a_step_waits_for_those_before_it_in_a_recorded_run_too() -> None:
    for outcome in Outcome:
        with pytest.raises(Conflict, match="waits for 'a'"):
            moves(recorded(), said("b", outcome))


def test_what_is_done_is_done_once() -> None:
    run = recorded(said("a", Outcome.DONE))
    for outcome in (Outcome.DONE, Outcome.FAILED):
        with pytest.raises(Conflict, match="'a' is completed") as refused:
            moves(run, said("a", outcome))
        assert "leave out `outcome`" in refused.value.hint
    assert moves(run, said("a", None)) == []


def test_a_report_without_a_step_or_an_outcome_is_only_a_note() -> None:
    assert moves(recorded(), said(None, Outcome.DONE)) == []
    assert moves(recorded(), said("a", None)) == []
    with pytest.raises(NotFound):
        decide(recorded(), said("nowhere", None), DEFINITION)


def test_in_any_other_run_a_report_is_only_a_note() -> None:
    assert moves(fresh(DEFINITION), said("a", Outcome.DONE)) == []


def test_a_recorded_run_ends_when_every_step_is_done_or_left_out() -> None:
    run = recorded(said("a", Outcome.DONE), said("b", Outcome.SKIPPED))
    with pytest.raises(Conflict, match="not done: c"):
        decide(run, FinishRun(), DEFINITION)
    run = after(run, [said("c", Outcome.DONE), FinishRun(outputs={"x": 1})], DEFINITION)
    assert (run.status, run.done) == (RunStatus.COMPLETED, 3)


@pytest.mark.parametrize("outcome", Outcome)
def test_a_report_that_comes_after_the_end_is_a_note_and_moves_nothing(outcome: Outcome) -> None:
    done = recorded(*(said(step, Outcome.DONE) for step in "abc"))
    for run in (
        after(done, [FinishRun()], DEFINITION),
        after(recorded(said("a", Outcome.STARTED)), [CancelRun(reason="x")], DEFINITION),
    ):
        for step in "abc":
            assert moves(run, said(step, outcome)) == []


def test_what_is_under_way_when_a_recorded_run_is_cancelled_or_undone_is_uncertain() -> None:
    definition = plan({"id": "a", "tool": "x.y", "effect": "compensatable", "undo": {"tool": "x.z"}})
    for command, status in ((CancelRun(reason="x"), "cancelled"), (StartCompensation(reason="x"), "compensating")):
        run = after(fresh(definition, Mode.RECORD), [said("a", Outcome.STARTED), command], definition)
        assert run.status.value == status
        assert run.step("a").status is StepStatus.UNCERTAIN
    with pytest.raises(Conflict, match="no step can be worked on"):
        decide(run, said("a", Outcome.DONE), definition)
