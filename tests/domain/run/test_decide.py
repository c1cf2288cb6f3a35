"""Given facts, when asked, then facts: what a run grants and what it refuses."""

from __future__ import annotations

import pytest

from domain.facts import CHAIN, RUN, after, fresh, given, plan
from handrail.domain.definition.model import Category, Effect
from handrail.domain.errors import Conflict, NotFound
from handrail.domain.journal.event import (
    ActionRecorded,
    ApprovalGiven,
    AttemptFailed,
    AttemptStarted,
    CompensationStarted,
    DecisionRecorded,
    How,
    Mode,
    Outcome,
    OutputRefused,
    Proof,
    RetryScheduled,
    RunCancelled,
    RunCompensated,
    RunCompensationFailed,
    RunCompleted,
    RunFailed,
    RunPaused,
    StepAccepted,
    StepBecameUncertain,
    StepCancelled,
    StepCompleted,
    StepFailed,
    StepHandedOut,
    StepOpened,
    StepRetried,
    StepSkipped,
    UndoFailed,
    UndoStarted,
    VarsSet,
)
from handrail.domain.run.command import (
    AcceptStep,
    CancelRun,
    Command,
    CompensateStep,
    CompleteStep,
    FailAttempt,
    FailUndo,
    FinishCompensation,
    FinishRun,
    GiveApproval,
    HandOutStep,
    LoseAttempt,
    OpenStep,
    PauseRun,
    RecordAction,
    RecordDecision,
    RefuseOutput,
    RejectApproval,
    RequestApproval,
    ResumeRun,
    RetryStep,
    SetVars,
    SkipStep,
    StartAttempt,
    StartCompensation,
    StartRun,
    StartUndo,
)
from handrail.domain.run.decide import decide
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus

DONE_TAG: list[Command] = [StartAttempt(step="tag"), CompleteStep(step="tag", output={"name": "v1"})]
DONE_BUILD: list[Command] = [StartAttempt(step="build"), CompleteStep(step="build")]
DONE_PUBLISH: list[Command] = [StartAttempt(step="publish"), CompleteStep(step="publish")]


def test_a_run_starts_once() -> None:
    run = fresh()
    assert run.status is RunStatus.RUNNING
    with pytest.raises(Conflict, match="is running"):
        decide(run, StartRun(definition="sha256:0", workflow="a-plan"), CHAIN)


def test_nothing_happens_in_a_run_that_has_not_started() -> None:
    with pytest.raises(Conflict, match="has not started"):
        decide(Run(id=RUN), StartAttempt(step="tag"), CHAIN)


def test_a_ready_step_may_be_attempted() -> None:
    assert decide(fresh(), StartAttempt(step="tag"), CHAIN) == [AttemptStarted(step="tag", attempt=1)]


def test_no_step_starts_before_what_it_waits_for() -> None:
    with pytest.raises(Conflict, match="'build' is not ready: it waits for 'tag'") as refused:
        decide(fresh(), StartAttempt(step="build"), CHAIN)
    assert refused.value.hint == "finish 'tag' first"


def test_a_skipped_dependency_counts_as_satisfied() -> None:
    run = after(fresh(), [SkipStep(step="tag", reason="no tag wanted")])
    assert decide(run, StartAttempt(step="build"), CHAIN) == [AttemptStarted(step="build", attempt=1)]


def test_an_unknown_step_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(NotFound) as refused:
        decide(fresh(), StartAttempt(step="publsh"), CHAIN)
    assert "publish" in refused.value.hint


def test_a_completed_step_is_not_completed_twice() -> None:
    with pytest.raises(Conflict, match="'tag' is completed") as refused:
        decide(after(fresh(), DONE_TAG), CompleteStep(step="tag"), CHAIN)
    assert "compensating" in refused.value.hint


def test_a_failed_attempt_with_a_due_time_waits_for_its_retry() -> None:
    run = after(fresh(), [StartAttempt(step="tag")])
    events = decide(run, FailAttempt(step="tag", category=Category.TRANSIENT, message="503", due=9_000), CHAIN)
    assert events == [
        AttemptFailed(step="tag", attempt=1, category=Category.TRANSIENT, message="503"),
        RetryScheduled(step="tag", attempt=2, due=9_000),
    ]
    waiting = given(AttemptStarted(step="tag", attempt=1), *events)
    assert waiting.step("tag").status is StepStatus.WAITING
    assert decide(waiting, StartAttempt(step="tag"), CHAIN) == [AttemptStarted(step="tag", attempt=2)]


def test_a_failed_attempt_without_a_due_time_fails_the_step_permanently() -> None:
    run = after(fresh(), [StartAttempt(step="tag")])
    events = decide(run, FailAttempt(step="tag", category=Category.PERMISSION, message="403"), CHAIN)
    assert events[-1] == StepFailed(step="tag", category=Category.PERMISSION, message="403")


def test_a_failed_step_may_be_retried_or_skipped() -> None:
    run = after(fresh(), [StartAttempt(step="tag"), FailAttempt(step="tag", category=Category.TIMEOUT, message="slow")])
    assert decide(run, RetryStep(step="tag", reason="again"), CHAIN) == [StepRetried(step="tag", reason="again")]
    assert decide(run, SkipStep(step="tag", reason="by hand"), CHAIN) == [StepSkipped(step="tag", reason="by hand")]
    again = after(run, [RetryStep(step="tag", reason="again"), StartAttempt(step="tag")])
    assert again.step("tag").attempts == 2


def test_a_lost_attempt_is_never_guessed() -> None:
    run = after(fresh(), [StartAttempt(step="tag"), LoseAttempt(step="tag")])
    assert run.step("tag").status is StepStatus.UNCERTAIN
    with pytest.raises(Conflict, match="is uncertain"):
        decide(run, CompleteStep(step="tag"), CHAIN)
    accepted = decide(run, AcceptStep(step="tag", reason="seen it", output=1), CHAIN)
    assert accepted == [StepAccepted(step="tag", reason="seen it", output=1)]


def test_only_an_uncertain_step_can_be_accepted() -> None:
    with pytest.raises(Conflict, match="not uncertain"):
        decide(after(fresh(), DONE_TAG), AcceptStep(step="tag", reason="x"), CHAIN)


def test_paused_means_paused() -> None:
    run = after(fresh(), [StartAttempt(step="tag"), PauseRun(reason="lunch")])
    with pytest.raises(Conflict, match="is paused"):
        decide(after(run, [CompleteStep(step="tag")]), StartAttempt(step="build"), CHAIN)
    assert decide(run, CompleteStep(step="tag"), CHAIN) == [StepCompleted(step="tag")]
    assert after(run, [ResumeRun(reason="back")]).status is RunStatus.RUNNING


def test_pausing_twice_is_a_conflict_that_says_what_is_legal() -> None:
    with pytest.raises(Conflict) as refused:
        decide(given(RunPaused(reason="x")), PauseRun(reason="y"), CHAIN)
    assert refused.value.hint == "from here it can become: cancelled, compensating, running"


def test_cancel_leaves_what_may_have_happened_uncertain_and_stops_the_rest() -> None:
    wide = plan(
        {"id": "call", "tool": "x.y"},
        {"id": "look", "tool": "x.z", "effect": "none", "after": []},
        {"id": "ask", "prompt": "do it", "after": []},
    )
    run = after(fresh(wide), [StartAttempt(step="call"), StartAttempt(step="look"), HandOutStep(step="ask")], wide)
    assert decide(run, CancelRun(reason="enough"), wide) == [
        StepBecameUncertain(step="call", attempt=1),
        StepCancelled(step="look"),
        StepCancelled(step="ask"),
        RunCancelled(reason="enough"),
    ]


def test_cancelling_twice_changes_nothing() -> None:
    assert decide(given(RunCancelled(reason="x")), CancelRun(reason="y"), CHAIN) == []


def test_a_run_completes_when_every_step_is_completed_or_skipped() -> None:
    done: list[Command] = [*DONE_TAG, *DONE_BUILD, *DONE_PUBLISH, SkipStep(step="tell", reason="nobody there")]
    run = after(fresh(), done)
    assert run.done == 4
    assert decide(run, FinishRun(outputs={"tag": "v1"}), CHAIN) == [RunCompleted(outputs={"tag": "v1"})]
    with pytest.raises(Conflict, match="is not done: publish, tell"):
        decide(after(fresh(), [*DONE_TAG, *DONE_BUILD]), FinishRun(), CHAIN)


def test_a_run_with_a_failed_step_ends_failed_once_nothing_runs() -> None:
    wide = plan({"id": "a", "tool": "x.y"}, {"id": "b", "tool": "x.z", "after": []})
    begun: list[Command] = [StartAttempt(step="a"), StartAttempt(step="b")]
    run = after(fresh(wide), [*begun, FailAttempt(step="a", category=Category.TOOL_ERROR, message="no")], wide)
    with pytest.raises(Conflict, match="still works on b"):
        decide(run, FinishRun(), wide)
    ended = after(run, [CompleteStep(step="b")], wide)
    assert decide(ended, FinishRun(), wide) == [RunFailed(step="a", message="no")]


def test_compensation_undoes_what_has_an_undo_newest_first() -> None:
    run = after(fresh(), [*DONE_TAG, *DONE_BUILD, *DONE_PUBLISH])
    events = decide(run, StartCompensation(reason="bad release"), CHAIN)
    assert events == [CompensationStarted(reason="bad release", steps=("publish", "tag"))]


def test_an_undo_waits_for_the_undo_of_what_was_built_on_it() -> None:
    run = after(fresh(), [*DONE_TAG, *DONE_BUILD, *DONE_PUBLISH, StartCompensation(reason="bad")])
    with pytest.raises(Conflict, match="can't be undone before 'publish'"):
        decide(run, StartUndo(step="tag"), CHAIN)
    assert decide(run, StartUndo(step="publish"), CHAIN) == [UndoStarted(step="publish", attempt=1)]


def test_a_run_is_compensated_only_when_every_undo_worked() -> None:
    undo: list[Command] = [StartUndo(step="publish"), CompensateStep(step="publish", how=How.EXECUTED)]
    run = after(fresh(), [*DONE_TAG, *DONE_BUILD, *DONE_PUBLISH, StartCompensation(reason="bad"), *undo])
    with pytest.raises(Conflict, match="still has to undo tag"):
        decide(run, FinishCompensation(), CHAIN)
    failed = FailUndo(step="tag", category=Category.PERMISSION, message="protected")
    run = after(run, [StartUndo(step="tag"), failed])
    assert decide(run, FinishCompensation(), CHAIN) == [RunCompensationFailed(steps=("tag",))]
    by_hand = after(run, [FinishCompensation(), CompensateStep(step="tag", how=How.RECORDED, description="by hand")])
    assert by_hand.step("tag").compensation == "recorded"
    assert decide(by_hand, FinishCompensation(), CHAIN) == [RunCompensated()]


def test_what_can_not_be_undone_is_named_loudly() -> None:
    tell: list[Command] = [StartAttempt(step="tell"), CompleteStep(step="tell")]
    run = after(fresh(), [*DONE_TAG, *DONE_BUILD, *DONE_PUBLISH, *tell, StartCompensation(reason="bad")])
    undone: list[Command] = [
        CompensateStep(step="publish", how=How.BY_AGENT),
        CompensateStep(step="tag", how=How.NOT_NEEDED),
        FinishCompensation(),
    ]
    assert decide(after(run, undone[:2]), undone[2], CHAIN) == [RunCompensated(not_compensated=("tell",))]


def test_a_failed_undo_that_is_not_final_is_tried_again() -> None:
    run = after(fresh(), [*DONE_TAG, StartCompensation(reason="bad"), StartUndo(step="tag")])
    run = after(run, [FailUndo(step="tag", category=Category.TRANSIENT, message="503", due=9)])
    assert run.step("tag").status is StepStatus.COMPENSATING
    assert decide(run, StartUndo(step="tag"), CHAIN) == [UndoStarted(step="tag", attempt=2)]


def test_no_undo_starts_outside_of_compensation() -> None:
    with pytest.raises(Conflict, match="not compensating"):
        decide(after(fresh(), DONE_TAG), StartUndo(step="tag"), CHAIN)


def test_compensation_leaves_no_attempt_under_way_and_undoes_what_may_have_happened() -> None:
    run = after(fresh(), [StartAttempt(step="tag")])
    events = decide(run, StartCompensation(reason="x"), CHAIN)
    assert events == [StepBecameUncertain(step="tag", attempt=1), CompensationStarted(reason="x", steps=("tag",))]
    told = after(run, [FailAttempt(step="tag", category=Category.RATE_LIMITED, message="429", due=5)])
    assert decide(told, StartCompensation(reason="x"), CHAIN)[0] == StepCancelled(step="tag")


@pytest.mark.parametrize("category", [Category.TRANSIENT, Category.TIMEOUT])
def test_a_try_that_failed_without_telling_whether_it_did_something_is_uncertain_when_the_run_is_stopped(
    category: Category,
) -> None:
    run = after(fresh(), [StartAttempt(step="tag"), FailAttempt(step="tag", category=category, message="503", due=5)])
    assert decide(run, CancelRun(reason="x"), CHAIN)[0] == StepBecameUncertain(step="tag", attempt=1)
    events = decide(run, StartCompensation(reason="x"), CHAIN)
    assert events[-1] == CompensationStarted(reason="x", steps=("tag",))


def test_a_try_that_was_lost_is_uncertain_when_the_run_is_stopped_before_it_is_repeated() -> None:
    lost: list[Command] = [
        StartAttempt(step="tag", effect=Effect.COMPENSATABLE, idempotent=True),
        LoseAttempt(step="tag"),
    ]
    run = after(fresh(), lost)
    assert run.step("tag").status is StepStatus.READY
    assert decide(run, CancelRun(reason="x"), CHAIN)[0] == StepBecameUncertain(step="tag", attempt=1)


def test_an_agents_step_is_handed_out_refused_and_submitted() -> None:
    notes = plan({"id": "notes", "prompt": "write"}, {"id": "send", "tool": "x.y"})
    run = after(fresh(notes), [HandOutStep(step="notes", agent="claude", until=99)], notes)
    assert run.step("notes").agent == "claude"
    refused = decide(run, RefuseOutput(step="notes", findings=({"rule": "length"},)), notes)
    assert refused == [OutputRefused(step="notes", findings=({"rule": "length"},))]
    run = after(run, [RefuseOutput(step="notes", findings=()), CompleteStep(step="notes", proof=Proof.CLAIMED)], notes)
    assert (run.step("notes").tries, run.step("notes").proof) == (1, "claimed")
    with pytest.raises(Conflict):
        decide(run, HandOutStep(step="notes"), notes)
    assert decide(fresh(notes), HandOutStep(step="notes"), notes) == [StepHandedOut(step="notes")]


def test_an_approval_is_bound_to_what_was_shown_and_used_once() -> None:
    gate = plan({"id": "go", "approve": "ship?", "by": ["leads"]}, {"id": "ship", "tool": "x.y"})
    run = after(fresh(gate), [RequestApproval(step="go", expires=7)], gate)
    shown = run.step("go").digest
    with pytest.raises(Conflict, match="has changed"):
        decide(run, GiveApproval(step="go", digest="d0", reason="ok"), gate)
    given_ = decide(run, GiveApproval(step="go", digest=shown, reason="ok"), gate)
    assert given_ == [ApprovalGiven(step="go", digest=shown, reason="ok")]
    yes = after(run, [GiveApproval(step="go", digest=shown, reason="ok")], gate)
    with pytest.raises(Conflict, match="does not wait"):
        decide(yes, GiveApproval(step="go", digest=shown, reason="again"), gate)
    no = after(run, [RejectApproval(step="go", digest=shown, reason="not today")], gate)
    assert (no.step("go").status, no.step("go").message) == (StepStatus.FAILED, "not today")


def test_decisions_and_actions_are_written_down_in_any_state() -> None:
    run = given(RunCancelled(reason="x"))
    decision = RecordDecision(decision="stop", reason="late", step="tag", alternatives=("go on",))
    assert decide(run, decision, CHAIN) == [
        DecisionRecorded(decision="stop", reason="late", step="tag", alternatives=("go on",))
    ]
    assert decide(run, RecordAction(description="told all"), CHAIN) == [ActionRecorded(description="told all")]
    with pytest.raises(NotFound):
        decide(run, RecordAction(description="x", step="nowhere"), CHAIN)


def test_in_a_recorded_run_the_agents_report_moves_the_step() -> None:
    run = fresh(mode=Mode.RECORD)
    done = RecordAction(description="tagged", step="tag", outcome=Outcome.DONE, output="v1")
    assert decide(run, done, CHAIN)[1:] == [
        AttemptStarted(step="tag", attempt=1),
        StepCompleted(step="tag", output="v1", proof=Proof.CLAIMED),
    ]
    begun = after(run, [RecordAction(description="tagging", step="tag", outcome=Outcome.STARTED)])
    assert decide(begun, done, CHAIN)[1:] == [StepCompleted(step="tag", output="v1", proof=Proof.CLAIMED)]
    failed = RecordAction(description="no right", step="tag", outcome=Outcome.FAILED)
    assert after(begun, [failed]).step("tag").status is StepStatus.FAILED
    assert after(run, [failed]).step("tag").message == "no right"
    skipped = RecordAction(description="not needed", step="tag", outcome=Outcome.SKIPPED)
    assert after(run, [skipped]).step("tag").status is StepStatus.SKIPPED
    with pytest.raises(Conflict, match="waits for 'tag'"):
        decide(run, RecordAction(description="x", step="build", outcome=Outcome.DONE), CHAIN)


def test_in_any_other_run_a_report_is_only_a_note() -> None:
    report = RecordAction(description="tagged", step="tag", outcome=Outcome.DONE)
    assert after(fresh(), [report]).step("tag").status is StepStatus.PENDING


def test_values_left_for_later_steps_add_up() -> None:
    run = after(fresh(), [SetVars(vars={"a": 1, "b": 1}), SetVars(vars={"b": 2})])
    assert run.vars == {"a": 1, "b": 2}
    assert decide(run, SetVars(vars={}), CHAIN) == [VarsSet(vars={})]


def test_steps_inside_a_loop_start_only_once_the_loop_has_started() -> None:
    loop = plan(
        {
            "id": "build",
            "each": "inputs.targets",
            "steps": [{"id": "make", "tool": "x.y"}, {"id": "test", "tool": "x.z"}],
        }
    )
    with pytest.raises(Conflict, match="'build' has not started"):
        decide(fresh(loop), StartAttempt(step="build[0].make"), loop)
    run = after(fresh(loop), [OpenStep(step="build", rounds=2), StartAttempt(step="build[1].make")], loop)
    assert decide(fresh(loop), OpenStep(step="build", rounds=2), loop) == [StepOpened(step="build", rounds=2)]
    with pytest.raises(Conflict, match=r"waits for 'build\[1\].make'"):
        decide(run, StartAttempt(step="build[1].test"), loop)


@pytest.mark.parametrize(
    "command",
    [
        StartAttempt(step="tag"),
        CompleteStep(step="tag"),
        SkipStep(step="tag", reason="x"),
        RetryStep(step="tag", reason="x"),
        SetVars(vars={}),
        FinishRun(),
        PauseRun(reason="x"),
    ],
)
def test_the_end_of_a_run_is_final(command: Command) -> None:
    with pytest.raises(Conflict):
        decide(given(RunCompleted()), command, CHAIN)


def test_a_final_undo_failure_is_shown_with_its_reason() -> None:
    run = after(fresh(), [*DONE_TAG, StartCompensation(reason="bad"), StartUndo(step="tag")])
    failed = decide(run, FailUndo(step="tag", category=Category.PERMISSION, message="no"), CHAIN)
    assert failed == [UndoFailed(step="tag", attempt=1, category=Category.PERMISSION, message="no", final=True)]
