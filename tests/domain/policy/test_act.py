"""What a command is to the policy depends on the run and the step: the same words can be work, or go past a gate."""

from __future__ import annotations

from typing import Any

import pytest

from domain.facts import RUN, after
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition
from handrail.domain.journal.event import Mode, Outcome
from handrail.domain.policy.act import Act, act_of
from handrail.domain.run import command as c
from handrail.domain.run.state import Run

CHECK = {"rule": "length", "min": 1}
STEPS = definition_from(
    {
        "id": "d",
        "steps": [
            {"id": "plain", "tool": "x.do", "effect": "irreversible", "after": []},
            {"id": "gated", "tool": "x.do", "effect": "irreversible", "after": [], "checks": [CHECK]},
            {"id": "ask", "prompt": "?", "after": []},
            {"id": "go", "approve": "?", "after": []},
        ],
    }
)


def begun(*commands: c.Command, definition: Definition = STEPS, **more: Any) -> Run:
    start = c.StartRun(definition="sha256:0", workflow="d", vars={}, **more)
    return after(Run(id=RUN), [start, *commands], definition)


@pytest.mark.parametrize(("step", "act"), [("plain", Act.ACCEPT), ("gated", Act.ACCEPT_CHECKS)])
def test_accepting_what_has_a_check_goes_past_the_check(step: str, act: Act) -> None:
    run = begun(c.StartAttempt(step=step), c.LoseAttempt(step=step))
    assert act_of(run, STEPS, c.AcceptStep(step=step, reason="x")) is act


def test_after_the_last_refusal_submitting_and_retrying_are_for_a_person() -> None:
    given = c.HandOutStep(step="ask", agent="")
    handed = begun(given)
    tried_out = begun(given, c.RefuseOutput(step="ask", findings=(), tries_max=1))
    for command in (c.CompleteStep(step="ask"), c.HandOutStep(step="ask", agent="")):
        assert act_of(handed, STEPS, command) is Act.SUBMIT
        assert act_of(tried_out, STEPS, command) is Act.SUBMIT_AFTER_LIMIT
    assert act_of(tried_out, STEPS, c.RetryStep(step="ask", reason="x")) is Act.SUBMIT_AFTER_LIMIT
    failed = begun(c.StartAttempt(step="plain"), c.LoseAttempt(step="plain"))
    assert act_of(failed, STEPS, c.RetryStep(step="plain", reason="x")) is Act.RETRY


def test_only_handrail_completes_what_handrail_does() -> None:
    run = begun(c.StartAttempt(step="plain"))
    assert act_of(run, STEPS, c.CompleteStep(step="plain")) is Act.EXECUTE
    assert act_of(run, STEPS, c.SkipStep(step="plain", reason="x", is_condition=True)) is Act.EXECUTE
    assert act_of(run, STEPS, c.FinishRun()) is Act.EXECUTE
    assert act_of(begun(mode=Mode.RECORD), STEPS, c.FinishRun()) is Act.RECORD


@pytest.mark.parametrize(
    ("mode", "outcome", "act"),
    [
        (Mode.RECORD, Outcome.DONE, Act.ANSWER),
        (Mode.RECORD, Outcome.SKIPPED, Act.OVERRIDE),
        (Mode.RUN, Outcome.DONE, Act.RECORD),
    ],
)
def test_a_report_on_an_approval_is_what_it_would_do(mode: Mode, outcome: Outcome, act: Act) -> None:
    report = c.RecordAction(description="x", step="go", outcome=outcome)
    assert act_of(begun(mode=mode), STEPS, report) is act
