"""What a command asks for, its event says: by the same names, of the same types, with the same defaults."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from msgspec import Struct

from handrail.domain import plan
from handrail.domain.definition.model import Effect
from handrail.domain.journal import event as e
from handrail.domain.journal import store_event as s
from handrail.domain.journal.event import ApprovalGiven, AttemptStarted, Proof, RunStarted, StepCompleted
from handrail.domain.journal.fact import Fact, granted
from handrail.domain.run import command as c
from handrail.domain.run import decide, decide_step
from handrail.domain.run.command import CompleteStep, GiveApproval, StartAttempt, StartRun

PAIRS: list[tuple[type[Struct], type[Fact]]] = [
    (c.StartRun, e.RunStarted),
    (c.StartRun, e.VarsSet),
    (c.AdoptRun, e.RunAdopted),
    (c.PauseRun, e.RunPaused),
    (c.ResumeRun, e.RunResumed),
    (c.CancelRun, e.RunCancelled),
    (c.SetVars, e.VarsSet),
    (c.RecordDecision, e.DecisionRecorded),
    (c.RecordAction, e.ActionRecorded),
    (c.NoteLateAnswer, e.AnswerCameLate),
    (c.HandOutStep, e.StepHandedOut),
    (c.RefuseOutput, e.OutputRefused),
    (c.RequestApproval, e.ApprovalRequested),
    (c.AskPerson, e.ApprovalRequested),
    (c.GiveApproval, e.ApprovalGiven),
    (c.RejectApproval, e.ApprovalRejected),
    (c.ExpireApproval, e.ApprovalExpired),
    (c.OpenStep, e.StepOpened),
    (c.StartRound, e.RoundStarted),
    (c.FailStep, e.StepFailed),
    (c.StartAttempt, e.AttemptStarted),
    (c.FailAttempt, e.AttemptFailed),
    (c.FailAttempt, e.StepFailed),
    (c.RefuseResult, e.OutputRefused),
    (c.RefuseResult, e.AttemptFailed),
    (c.RefuseResult, e.StepFailed),
    (c.DeferStep, e.StepDeferred),
    (c.CompleteStep, e.StepCompleted),
    (c.SkipStep, e.StepSkipped),
    (c.SkipStep, e.ApprovalOverridden),
    (c.AcceptStep, e.StepAccepted),
    (c.StartUndo, e.UndoStarted),
    (c.FailUndo, e.UndoFailed),
    (c.CompensateStep, e.StepCompensated),
    (c.SavePlan, s.PlanSaved),
    (c.RetirePlan, s.PlanRetired),
]


def made_from_commands() -> set[str]:
    """The kinds of events that are made by `granted`, as the source says."""
    trees = [
        ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8")) for module in (decide, decide_step, plan)
    ]
    calls = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {
        call.args[0].id
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "granted" and isinstance(call.args[0], ast.Name)
    }


def test_an_event_says_all_that_its_command_asked_for() -> None:
    asked = CompleteStep(step="a", output={"n": 1}, proof=Proof.CLAIMED, checks=("tests",), took=7, findings=({},))
    said = StepCompleted(step="a", output={"n": 1}, proof=Proof.CLAIMED, checks=("tests",), took=7, findings=({},))
    assert granted(StepCompleted, asked) == said


def test_what_only_the_decision_knows_is_added() -> None:
    asked = StartAttempt(step="a", effect=Effect.IRREVERSIBLE, idempotent=True)
    said = AttemptStarted(step="a", attempt=3, effect=Effect.IRREVERSIBLE, idempotent=True)
    assert granted(AttemptStarted, asked, attempt=3) == said


def test_what_an_event_does_not_say_stays_with_the_command() -> None:
    assert granted(ApprovalGiven, GiveApproval(step="a", digest="d", reason="r", at=5)) == ApprovalGiven(
        step="a", digest="d", reason="r"
    )
    assert granted(RunStarted, StartRun(definition="d", workflow="w", vars={"a": 1}, goal="g")) == RunStarted(
        definition="d", workflow="w", goal="g"
    )


def test_a_field_that_nobody_filled_is_an_error_and_not_left_out() -> None:
    with pytest.raises(TypeError, match="attempt"):
        granted(AttemptStarted, StartAttempt(step="a"))


@pytest.mark.parametrize(("command", "kind"), PAIRS, ids=lambda one: one.__name__)
def test_a_name_that_a_command_shares_with_its_event_is_of_one_type(command: type[Struct], kind: type[Fact]) -> None:
    asked, said = get_type_hints(command), get_type_hints(kind)
    shared = asked.keys() & said.keys()
    assert shared
    assert not [name for name in shared if not is_wider(said[name], asked[name])]


def test_all_events_that_are_made_from_commands_are_looked_at() -> None:
    assert made_from_commands() == {kind.__name__ for _, kind in PAIRS} | {"RetryScheduled"}  # due is there by then


def is_wider(said: object, asked: object) -> bool:
    """Whether all that can be asked can be said."""
    return said == asked or set(get_args(asked) or (asked,)) <= set(get_args(said) or (said,))
