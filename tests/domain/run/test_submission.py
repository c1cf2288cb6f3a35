"""Submissions: repeated or new, in turn or not, accepted or not, and what each asks of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from domain.facts import after, fresh, given, plan
from handrail.domain.checks.finding import Finding, FixedBy, Severity
from handrail.domain.checks.judgement import Judgement
from handrail.domain.checks.rule import LooksAt
from handrail.domain.definition.model import Category, Definition
from handrail.domain.errors import Conflict, Invalid, NotFound, OnlyRecorded
from handrail.domain.journal.event import How, Mode, Outcome, Proof, StepCompensated
from handrail.domain.run.command import (
    CancelRun,
    Command,
    CompensateStep,
    CompleteStep,
    FailStep,
    FailUndo,
    HandOutStep,
    PauseRun,
    RecordAction,
    RecordDecision,
    RetryStep,
    SetVars,
    SkipStep,
    StartAttempt,
    StartCompensation,
    StartUndo,
)
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.submission import (
    ACCEPTED,
    REPEATED,
    TAKEN_MS,
    UNCONFIRMED,
    Submission,
    Verdict,
    commands_for,
    meant,
    repetition,
    require_turn,
    verdict_on,
)

TWO = plan({"id": "write", "prompt": "write", "max_tries": 2}, {"id": "read", "prompt": "read"})
UNDOABLE = plan({"id": "write", "prompt": "write", "effect": "compensatable", "undo": {"prompt": "delete it"}})
MAJOR = Finding(rule="schema", severity=Severity.MAJOR, where="output", message="wrong", fix="right")
MINOR = replace(MAJOR, severity=Severity.MINOR)


def shown(output: Any) -> Any:
    """Nothing is secret."""
    return output


def no_inputs(_: Definition, values: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    return values, ()


def turn(
    run: Run,
    submission: Submission,
    definition: Definition = TWO,
    *,
    for_agent: Sequence[str] = ("write",),
    now: int = 1_000,
) -> None:
    require_turn(run, definition, submission, for_agent=for_agent, now=now, check=no_inputs)


def asked(run: Run, submission: Submission, verdict: Verdict = ACCEPTED, definition: Definition = TWO) -> list[Command]:
    return commands_for(run, definition, submission, verdict, now=50)


def written(output: Any = "text", definition: Definition = TWO) -> Run:
    return after(fresh(definition), [HandOutStep(step="write"), CompleteStep(step="write", output=output)], definition)


def undoing(definition: Definition = UNDOABLE) -> Run:
    commands: list[Command] = [StartCompensation(reason="no"), StartUndo(step="write")]
    return after(written(definition=definition), commands, definition)


# --- repeated or new ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "submission"),
    [
        (written(), Submission(step="write", output="text")),
        (
            after(fresh(TWO), [SkipStep(step="write", reason="no")], TWO),
            Submission(step="write", outcome=Outcome.SKIPPED),
        ),
        (
            after(
                fresh(TWO),
                [HandOutStep(step="write"), FailStep(step="write", category=Category.TIMEOUT, message="")],
                TWO,
            ),
            Submission(step="write", outcome=Outcome.FAILED),
        ),
    ],
    ids=["done", "skipped", "failed"],
)
def test_what_was_submitted_before_is_known_again(run: Run, submission: Submission) -> None:
    assert repetition(run, TWO, submission, shown) == REPEATED
    assert repetition(fresh(TWO), TWO, submission, shown) is None


def test_another_output_for_a_completed_step_is_a_conflict() -> None:
    with pytest.raises(Conflict, match="already completed, with another output"):
        repetition(written(), TWO, Submission(step="write", output="other"), shown)
    with pytest.raises(Conflict, match="already completed, with another output"):
        repetition(written(), TWO, Submission(step="write", outcome=Outcome.FAILED), shown)


def test_an_output_is_compared_as_it_is_kept() -> None:
    run = written("***")
    assert repetition(run, TWO, Submission(step="write", output="secret"), lambda _: "***") == REPEATED


def test_a_step_that_there_is_not_is_not_found() -> None:
    with pytest.raises(NotFound):
        repetition(fresh(TWO), TWO, Submission(step="wrote"), shown)


def test_while_a_step_is_undone_its_own_output_is_a_repetition_and_anything_else_a_conflict() -> None:
    run = undoing()
    assert repetition(run, UNDOABLE, Submission(step="write", output="text"), shown) == REPEATED
    assert repetition(run, UNDOABLE, Submission(step="write", is_undo=True), shown) is None
    with pytest.raises(Conflict, match="is being undone") as refused:
        repetition(run, UNDOABLE, Submission(step="write", output="other"), shown)
    assert refused.value.hint == "undo it, and submit that as 'write!undo'"


def test_an_undo_that_an_agent_did_is_known_again() -> None:
    run = after(undoing(), [CompensateStep(step="write", how=How.BY_AGENT)], UNDOABLE)
    assert repetition(run, UNDOABLE, Submission(step="write", is_undo=True), shown) == REPEATED
    assert repetition(run, UNDOABLE, Submission(step="write", output="text"), shown) == REPEATED
    assert repetition(run, UNDOABLE, Submission(step="write", is_undo=True, outcome=Outcome.FAILED), shown) is None
    assert repetition(run, UNDOABLE, Submission(step="write", output="other"), shown) is None
    by_hand = after(undoing(), [CompensateStep(step="write", how=How.RECORDED)], UNDOABLE)
    assert repetition(by_hand, UNDOABLE, Submission(step="write", is_undo=True), shown) is None


def test_the_undo_of_a_step_is_submitted_under_a_name_of_its_own() -> None:
    assert meant(undoing(), Submission(step="write!undo")) == Submission(step="write", is_undo=True)
    assert meant(undoing(), Submission(step="write")) == Submission(step="write")
    with pytest.raises(Conflict, match="'write' is not being undone"):
        meant(fresh(UNDOABLE), Submission(step="write!undo"))
    undone = given(StepCompensated(step="write", how=How.BY_AGENT))
    assert meant(undone, Submission(step="write!undo")).is_undo


# --- in turn or not -------------------------------------------------------------------------------


def test_a_step_whose_turn_has_come_may_be_submitted() -> None:
    turn(fresh(TWO), Submission(step="write"))
    turn(after(fresh(TWO), [HandOutStep(step="write")], TWO), Submission(step="write"), for_agent=())


def test_a_step_that_waits_for_another_may_not() -> None:
    with pytest.raises(Conflict, match="waits for 'write'"):
        turn(fresh(TWO), Submission(step="read"))


def test_a_recorded_run_takes_no_submissions() -> None:
    with pytest.raises(OnlyRecorded, match="is only recorded"):
        turn(fresh(TWO, Mode.RECORD), Submission(step="write"))


def test_a_run_that_has_ended_takes_no_submissions() -> None:
    with pytest.raises(Conflict, match="is cancelled: no step can be worked on"):
        turn(after(fresh(TWO), [CancelRun(reason="no")], TWO), Submission(step="write"))


def test_a_step_of_handrails_own_may_not_be_submitted() -> None:
    tool = plan({"id": "write", "tool": "file.write"})
    with pytest.raises(Conflict, match="not for an agent"):
        turn(fresh(tool), Submission(step="write"), tool)


def test_a_paused_run_takes_what_was_under_way_and_nothing_new() -> None:
    under_way = after(fresh(TWO), [HandOutStep(step="write"), PauseRun(reason="lunch")], TWO)
    turn(under_way, Submission(step="write"))
    with pytest.raises(Conflict, match="is paused"):
        turn(after(fresh(TWO), [PauseRun(reason="lunch")], TWO), Submission(step="write"))


def test_a_step_that_is_running_or_over_may_not_be_submitted() -> None:
    running = after(fresh(TWO), [StartAttempt(step="write")], TWO)
    with pytest.raises(Conflict, match="is running: nothing can be submitted for it"):
        turn(running, Submission(step="write"))
    with pytest.raises(Conflict, match="is completed: nothing can be submitted for it"):
        turn(written(), Submission(step="write"))


def test_a_step_that_failed_may_be_submitted_after_all() -> None:
    failure = FailStep(step="write", category=Category.TOOL_ERROR, message="no")
    turn(after(fresh(TWO), [HandOutStep(step="write"), failure], TWO), Submission(step="write"), for_agent=())


def test_a_step_whose_condition_does_not_hold_may_not_be_submitted() -> None:
    never = plan({"id": "write", "prompt": "write", "when": "1 == 2"})
    with pytest.raises(Conflict, match="its condition does not hold"):
        turn(fresh(never), Submission(step="write"), never)


def test_a_claimed_step_is_its_agents_until_the_claim_ends() -> None:
    run = after(fresh(TWO), [HandOutStep(step="write", agent="ann", until=61_500, at=1)], TWO)
    turn(run, Submission(step="write", agent="ann"))
    turn(run, Submission(step="write", agent="bob"), now=61_500)
    with pytest.raises(Conflict, match=r"assigned to 'ann' for another 61s$"):
        turn(run, Submission(step="write", agent="bob"), now=1_000)
    with pytest.raises(Conflict, match=r"for another 1s$"):
        turn(run, Submission(step="write"), now=61_499)


def test_a_step_that_has_not_started_and_does_not_wait_for_an_agent_is_of_a_later_round() -> None:
    with pytest.raises(Conflict, match="its round has not started"):
        turn(fresh(TWO), Submission(step="write"), for_agent=("other",))


def test_an_undo_may_be_submitted_while_it_is_asked_for() -> None:
    turn(undoing(), Submission(step="write", is_undo=True), UNDOABLE, for_agent=())


# --- accepted or not ------------------------------------------------------------------------------


def test_what_blocks_is_why_a_submission_is_not_accepted_and_what_does_not_is_noted() -> None:
    judged = Judgement(findings=(MAJOR, MINOR), passed=("tests",))
    assert verdict_on(fresh(TWO), TWO, Submission(step="write"), judged) == Verdict(accepted=False, findings=(MAJOR,))
    judged = Judgement(findings=(MINOR,), passed=("tests",))
    accepted = Verdict(accepted=True, findings=(MINOR,), passed=("tests",), proof=Proof.CHECKED)
    assert verdict_on(fresh(TWO), TWO, Submission(step="write"), judged) == accepted


def test_what_a_person_must_agree_to_is_not_accepted_without_their_word() -> None:
    sure = plan({"id": "write", "prompt": "write", "confirm": "output > 3"})
    submission = Submission(step="write", output=4)
    assert verdict_on(fresh(sure), sure, submission, Judgement()) == UNCONFIRMED
    assert verdict_on(fresh(sure), sure, replace(submission, confirmed="ada"), Judgement()).accepted
    assert verdict_on(fresh(sure), sure, replace(submission, output=3), Judgement()).accepted


# --- what it asks of its run ----------------------------------------------------------------------


def test_a_plain_submission_is_handed_out_and_completed() -> None:
    completed = CompleteStep(step="write", output=1, proof=Proof.CLAIMED)
    assert asked(fresh(TWO), Submission(step="write", output=1)) == [HandOutStep(step="write", at=50), completed]
    waiting = after(fresh(TWO), [HandOutStep(step="write")], TWO)
    assert asked(waiting, Submission(step="write", output=1)) == [completed]


def test_an_agent_that_names_itself_holds_the_step_for_a_while() -> None:
    handed_out = asked(fresh(TWO), Submission(step="write", agent="ann"))[0]
    assert handed_out == HandOutStep(step="write", agent="ann", until=50 + TAKEN_MS, at=50)


@pytest.mark.parametrize(
    ("passed", "looks_at", "proof"),
    [
        ((), LooksAt.WORDS, Proof.CLAIMED),
        (("length",), LooksAt.WORDS, Proof.CHECKED),
        (("length", "tests"), LooksAt.WORLD, Proof.VERIFIED),
    ],
)
def test_only_a_look_at_the_world_verifies(passed: tuple[str, ...], looks_at: LooksAt, proof: Proof) -> None:
    judged = Judgement(passed=passed, looks_at=looks_at)
    assert verdict_on(fresh(TWO), TWO, Submission(step="write"), judged).proof is proof


def test_checks_that_passed_are_proof() -> None:
    verdict = Verdict(accepted=True, passed=("tests",), findings=(MINOR,), proof=Proof.VERIFIED)
    completed = asked(fresh(TWO), Submission(step="write"), verdict)[-1]
    assert isinstance(completed, CompleteStep)
    assert (completed.proof, completed.checks) == (Proof.VERIFIED, ("tests",))
    assert [one["message"] for one in completed.findings] == ["wrong"]


def test_what_comes_with_a_submission_is_kept_before_its_step_ends() -> None:
    submission = Submission(step="write", vars={"a": 1}, note="hard", confirmed="ada")
    assert asked(fresh(TWO), submission)[1:-1] == [
        SetVars(vars={"a": 1}),
        RecordDecision(decision="confirmed", reason="ada", step="write"),
        RecordAction(description="hard", step="write", outcome=Outcome.DONE),
    ]


def test_the_last_refusal_asks_for_a_decision() -> None:
    refused = Verdict(accepted=False, findings=(MAJOR,))
    run = after(fresh(TWO), [HandOutStep(step="write")], TWO)
    (first,) = asked(run, Submission(step="write", vars={"a": 1}), refused)
    (at_the_same_time,) = asked(run, Submission(step="write"), refused)
    once = after(run, [first], TWO)
    assert once.step("write").status is StepStatus.WAITING
    failed = after(once, [at_the_same_time], TWO).step("write")
    assert (failed.status, failed.asks) == (StepStatus.FAILED, True), "tries are counted when they are recorded"


def test_giving_up_and_trying_again_gives_no_new_tries() -> None:
    refused = Verdict(accepted=False, findings=(MAJOR,))
    run = after(fresh(TWO), [HandOutStep(step="write")], TWO)
    run = after(run, asked(run, Submission(step="write"), refused), TWO)
    run = after(run, asked(run, Submission(step="write", outcome=Outcome.FAILED)), TWO)
    run = after(run, asked(run, Submission(step="write"), refused), TWO)
    assert run.step("write").asks, "the second refusal is the last one"
    run = after(run, [RetryStep(step="write", reason="a person looked at it")], TWO)
    assert (run.step("write").tries, run.step("write").asks) == (0, False)


def test_an_output_that_could_not_be_checked_is_no_try() -> None:
    missing = replace(MAJOR, unapplied=True, fixed_by=FixedBy.PERSON)
    run = after(fresh(TWO), [HandOutStep(step="write")], TWO)
    verdict = verdict_on(run, TWO, Submission(step="write"), Judgement(findings=(missing,)))
    assert (verdict.accepted, verdict.unchecked) == (False, True)
    for _ in range(3):
        run = after(run, asked(run, Submission(step="write"), verdict), TWO)
    assert (run.step("write").status, run.step("write").tries) == (StepStatus.WAITING, 0)
    assert run.step("write").unchecked
    both = verdict_on(run, TWO, Submission(step="write"), Judgement(findings=(missing, MAJOR)))
    assert not both.unchecked, "one of them is the agent's"
    run = after(run, asked(run, Submission(step="write"), both), TWO)
    assert (run.step("write").tries, run.step("write").unchecked) == (1, False)


@pytest.mark.parametrize(
    ("outcome", "note", "command"),
    [
        (Outcome.FAILED, "", FailStep(step="write", category=Category.TOOL_ERROR, message="the agent could not do it")),
        (Outcome.FAILED, "no pen", FailStep(step="write", category=Category.TOOL_ERROR, message="no pen")),
        (Outcome.SKIPPED, "", SkipStep(step="write", reason="the agent skipped it")),
        (Outcome.SKIPPED, "late", SkipStep(step="write", reason="late")),
    ],
)
def test_a_step_may_be_submitted_as_failed_or_skipped(outcome: Outcome, note: str, command: Command) -> None:
    commands = asked(fresh(TWO), Submission(step="write", outcome=outcome, note=note))
    assert commands == [HandOutStep(step="write", at=50), command]


def test_a_failed_step_is_tried_again_by_a_submission_and_left_as_it_is_by_a_skip() -> None:
    failure = FailStep(step="write", category=Category.TOOL_ERROR, message="no")
    run = after(fresh(TWO), [HandOutStep(step="write"), failure], TWO)
    commands = asked(run, Submission(step="write", output=1))
    assert commands[0] == RetryStep(step="write", reason="the agent submitted it later")
    assert after(run, commands, TWO).step("write").status is StepStatus.COMPLETED
    assert asked(run, Submission(step="write", outcome=Outcome.SKIPPED, note="no matter")) == [
        SkipStep(step="write", reason="no matter")
    ]


def test_a_step_or_an_undo_can_not_be_submitted_as_started() -> None:
    with pytest.raises(Invalid, match="can't be submitted as 'started'"):
        asked(fresh(TWO), Submission(step="write", outcome=Outcome.STARTED))
    with pytest.raises(Invalid, match="can't be submitted as 'started'"):
        asked(undoing(), Submission(step="write", outcome=Outcome.STARTED), definition=UNDOABLE)


def test_an_undo_is_done_or_failed() -> None:
    run = undoing()
    done = Submission(step="write", output="gone", note="deleted")
    (command,) = asked(run, done, definition=UNDOABLE)
    assert command == CompensateStep(step="write", how=How.BY_AGENT, description="deleted", details={"output": "gone"})
    (failed,) = asked(run, Submission(step="write", outcome=Outcome.FAILED), definition=UNDOABLE)
    assert failed == FailUndo(step="write", category=Category.TOOL_ERROR, message="the agent could not undo it")
    assert after(run, [failed], UNDOABLE).status is RunStatus.COMPENSATING
    with pytest.raises(Invalid, match="the undo was refused") as refused:
        asked(run, done, Verdict(accepted=False, findings=(MAJOR,)), UNDOABLE)
    assert refused.value.findings == (MAJOR,)
