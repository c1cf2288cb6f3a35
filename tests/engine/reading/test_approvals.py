"""Pending approvals: what a yes lets happen, what is done already, who has answered, and whether I may."""

from __future__ import annotations

import pytest

from engine.stage import ADA, Stage, inputs_checked, plan, puppet
from handrail.domain.definition.model import Effect
from handrail.domain.errors import NotFound
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.run.legal_controls import Action
from handrail.engine.reading.approvals import Approvals, PendingApproval
from handrail.engine.reading.control_previews import ControlPreviews
from handrail.engine.reading.run_reader import RunReader
from virtual_time import in_virtual_time

TWO = plan(
    {"id": "make", "tool": "x.do", "undo": {"tool": "x.undo"}},
    {"id": "send", "tool": "x.irr"},
    {"id": "go", "approve": "Go with {{ steps.make.output.did }}?", "approvals": 2, "by": ["leads"], "expires": "1h"},
    {"id": "ship", "tool": "x.irr", "args": {"it": "{{ steps.make.output.did }}"}, "after": ["go"]},
)
RULES = AnswerRules(groups={"leads": ["ada", "bo"]})


def seen_by(actor: str, *answers: str, step: str = "") -> list[PendingApproval]:
    async def scene() -> list[PendingApproval]:
        stage = Stage(puppet("x.irr", effect=Effect.IRREVERSIBLE), say=RULES)
        run = await stage.play(TWO)
        for who in answers:
            await stage.control.act(run.id, Action.APPROVE, actor=who, reason=f"fine, says {who}")
        reader = RunReader(stage.store, stage.clock)
        approvals = Approvals(ControlPreviews(reader, stage.worker.dispatch.policy, inputs_checked, stage.box))
        return [await approvals.one(run.id, step, actor=actor)] if step else await approvals.pending(actor=actor)

    return in_virtual_time(scene)


def test_it_says_what_a_yes_lets_happen_and_what_is_done_already() -> None:
    (one,) = seen_by(ADA, "person:bo")
    assert (one.asked.text, one.asked.digest[:7], bool(one.asked.expires)) == ("Go with make?", "sha256:", True)
    (ship,) = one.ahead
    assert (ship.tool, ship.args, ship.can_be_undone) == ("x.irr", {"it": "make"}, False)
    assert [(done.step, done.tool, done.can_be_undone) for done in one.done] == [
        ("make", "x.do", True),
        ("send", "x.irr", False),
    ]
    assert [(answer.by, answer.reason) for answer in one.answers] == [("person:bo", "fine, says person:bo")]
    assert one.may_answer


@pytest.mark.parametrize("who", ["person:eve", "agent:ada", "person:bo"])
def test_who_may_not_answer_is_told_why(who: str) -> None:
    (one,) = seen_by(who, "person:bo")  # bo has approved already
    assert not one.may_answer
    assert one.why_not
    assert one.who_may


def test_an_approval_that_was_given_waits_no_longer() -> None:
    assert seen_by(ADA, "person:bo", ADA) == []
    with pytest.raises(NotFound):
        seen_by(ADA, "person:bo", ADA, step="go")
