"""Claims: a step that an agent has taken is its own for a while, and no longer."""

from __future__ import annotations

import pytest

from domain.facts import after, fresh, given, plan
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import ApprovalRequested, Fork, Mode, RunStarted, StepHandedOut, StepRetried, VarsSet
from handrail.domain.run.command import HandOutStep, RefuseOutput, StartRun
from handrail.domain.run.decide import decide
from handrail.domain.run.guard import assignee
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.domain.run.step_state import StepState

ONE = plan({"id": "write", "prompt": "write"}, {"id": "read", "prompt": "read"})


@pytest.mark.parametrize(
    ("state", "at", "holder"),
    [
        (StepState(status=StepStatus.WAITING, agent="ann", due=100), 99, "ann"),
        (StepState(status=StepStatus.WAITING, agent="ann", due=100), 100, ""),
        (StepState(status=StepStatus.WAITING, agent="ann"), 10**15, "ann"),
        (StepState(status=StepStatus.WAITING, due=100), 99, ""),
        (StepState(status=StepStatus.READY, agent="ann", due=100), 99, ""),
        (StepState(status=StepStatus.COMPLETED, agent="ann"), 0, ""),
        (StepState(), 0, ""),
    ],
)
def test_a_claim_holds_while_the_step_waits_and_its_time_has_not_come(state: StepState, at: int, holder: str) -> None:
    assert assignee(state, at=at) == holder


def test_a_claimed_step_goes_to_its_agent_again_and_to_no_other_until_its_time_has_come() -> None:
    run = after(fresh(ONE), [HandOutStep(step="write", agent="ann", until=100, at=50)], ONE)
    with pytest.raises(Conflict, match="'write' is assigned to 'ann'"):
        decide(run, HandOutStep(step="write", agent="bob", until=199, at=99), ONE)
    with pytest.raises(Conflict, match="'write' is assigned to 'ann'"):
        decide(run, HandOutStep(step="write"), ONE)
    again = HandOutStep(step="write", agent="ann", until=199, at=99)
    assert decide(run, again, ONE) == [StepHandedOut(step="write", agent="ann", until=199)]
    later = HandOutStep(step="write", agent="bob", until=200, at=100)
    assert after(run, [later], ONE).step("write").agent == "bob"


def test_a_step_that_is_not_ready_can_not_be_claimed() -> None:
    with pytest.raises(Conflict, match="waits for 'write'"):
        decide(fresh(ONE), HandOutStep(step="read", agent="ann"), ONE)


def test_a_refused_output_leaves_the_claim_as_it_is() -> None:
    run = after(
        fresh(ONE), [HandOutStep(step="write", agent="ann", until=100), RefuseOutput(step="write", findings=())], ONE
    )
    assert (run.step("write").agent, run.step("write").due, run.step("write").tries) == ("ann", 100, 1)


def test_a_step_that_is_tried_again_is_nobodys() -> None:
    run = given(StepHandedOut(step="write", agent="ann", until=10**12), StepRetried(step="write", reason="x"))
    assert assignee(run.step("write"), at=0) == ""
    assert decide(run, HandOutStep(step="write", agent="bob"), ONE) == [StepHandedOut(step="write", agent="bob")]


def test_a_question_to_a_person_is_no_claim() -> None:
    run = given(ApprovalRequested(step="go", digest="sha256:1", text="?", expires=10**12))
    assert assignee(run.step("go"), at=0) == ""


def test_what_a_run_is_started_with_is_what_it_knows_of_itself() -> None:
    ask = StartRun(
        definition="sha256:0",
        workflow="a-plan",
        goal="g",
        mode=Mode.RECORD,
        deadline=7,
        priority=3,
        fork=Fork(run="run_other", n=1, step="a"),
        vars={"x": 1},
        key="sha256:1",
        asked="sha256:2",
    )
    run = after(Run(id="run_test2345"), [ask], ONE)
    started, values = decide(Run(id="run_test2345"), ask, ONE)
    assert isinstance(started, RunStarted)
    assert (started.key, started.asked) == ("sha256:1", "sha256:2") == (run.key, run.asked)
    assert (run.goal, run.mode, run.deadline, run.priority, run.fork) == ("g", Mode.RECORD, 7, 3, ask.fork)
    assert values == VarsSet(vars={"x": 1})
    with pytest.raises(Conflict):
        decide(run, ask, ONE)
