"""Answers to approvals, in the engine: what was shown is what is approved, and no interface can get around it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from engine.stage import ADA, Stage, plan, puppet, taking
from handrail.domain.definition.authoring import definition_data
from handrail.domain.errors import Conflict, Forbidden
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.run.command import SetVars
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.reading.prospect import prospect_of
from handrail.engine.running.answers import AnswerGiven, ApprovalAnswers, Tried
from handrail.engine.running.control import Control
from virtual_time import in_virtual_time

SHIP = plan(
    {"id": "go", "approve": "Ship {{ vars.v }}?"},
    {"id": "slow", "tool": "x.slow"},
    {"id": "ship", "tool": "x.do", "args": {"v": "{{ vars.v }}"}},
)
INLINED = plan(
    {"id": "sure", "workflow": "ask@1.0.0"},
    {"id": "slow", "tool": "x.slow"},
    {"id": "all", "each": "[1, 2]", "steps": [{"id": "ship", "tool": "x.do", "args": {"v": "{{ vars.v }}"}}]},
    pinned={"ask@1.0.0": {"id": "ask", "version": "1.0.0", "steps": [{"id": "go", "approve": "Ship?"}]}},
)


async def approve(stage: Stage, run: str, *, step: str = "go", actor: str = ADA, **given: Any) -> Run:
    return await stage.control.act(
        run, Action.APPROVE, step=step, actor=actor, reason="yes", given=AnswerGiven(**given)
    )


@pytest.mark.parametrize(("definition", "step", "shipped"), [(SHIP, "go", 1), (INLINED, "sure.go", 2)])
def test_a_value_that_changes_after_the_yes_asks_again_before_anything_uses_it(
    definition: Any, step: str, shipped: int
) -> None:
    stage = Stage(puppet("x.slow", taking(60)))

    async def scene() -> tuple[Run, Run, Run]:
        waits = await stage.play(definition, vars={"v": "1.0"})
        await approve(stage, waits.id, step=step)
        await asyncio.sleep(10)  # the slow step runs
        await stage.worker.dispatch.grant(waits.id, SetVars(vars={"v": "6.66"}), actor="agent:claude")
        held = await stage.worker.settled(waits.id)
        await asyncio.sleep(300)
        old = AnswerGiven(digest=waits.step(step).digest)
        with pytest.raises(Conflict, match="has changed since you looked"):
            await stage.control.act(waits.id, Action.APPROVE, step=step, actor=ADA, reason="yes", given=old)
        still = await stage.worker.dispatch.current(waits.id)
        await approve(stage, waits.id, step=step, digest=still.step(step).digest)
        return held, still, await stage.worker.settled(waits.id)

    held, still, end = in_virtual_time(scene)
    assert held.step(step).status is StepStatus.WAITING
    assert still.step("slow").status is StepStatus.COMPLETED, "what had started ends"
    assert not any("ship" in path and state.attempts for path, state in still.steps.items())
    assert end.status is RunStatus.COMPLETED
    assert sum("ship" in path for path in end.steps) == shipped


def test_a_worker_that_picks_the_run_up_after_a_crash_holds_what_was_withdrawn() -> None:
    stage = Stage(puppet("x.slow", taking(60)))

    async def scene() -> tuple[Run, Run]:
        waits = await stage.play(SHIP, vars={"v": "1.0"})
        await approve(stage, waits.id)
        await asyncio.sleep(10)
        await stage.worker.dispatch.grant(waits.id, SetVars(vars={"v": "6.66"}), actor="agent:claude")
        await stage.die()
        await stage.open("w-two")
        await asyncio.sleep(300)
        held = await stage.worker.dispatch.current(waits.id)
        return waits, held

    _, held = in_virtual_time(scene)
    assert held.step("go").status is StepStatus.WAITING
    assert held.step("ship").status is StepStatus.PENDING


def test_a_rejection_of_what_was_withdrawn_asks_what_to_do_even_if_failures_are_passed_over() -> None:
    definition = plan(*({**step, "on_failure": "continue"} for step in _data(SHIP)))
    stage = Stage(puppet("x.slow", taking(60)))

    async def scene() -> Run:
        waits = await stage.play(definition, vars={"v": "1.0"})
        await approve(stage, waits.id)
        await asyncio.sleep(10)
        await stage.worker.dispatch.grant(waits.id, SetVars(vars={"v": "6.66"}), actor="agent:claude")
        await stage.worker.settled(waits.id)
        await stage.control.act(waits.id, Action.REJECT, step="go", actor=ADA, reason="no")
        await asyncio.sleep(300)
        rejected = await stage.worker.dispatch.current(waits.id)
        assert prospect_of(rejected, definition, now=stage.clock()).undecided == ("go",)
        await stage.control.act(waits.id, Action.RETRY, step="go", actor=ADA, reason="again")
        await asyncio.sleep(1)
        await approve(stage, waits.id)
        return await stage.worker.settled(waits.id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED


def _data(definition: Any) -> list[dict[str, Any]]:
    return list(definition_data(definition)["steps"])


def test_two_people_must_approve_and_each_is_recorded_with_the_channel() -> None:
    stage = Stage()
    definition = plan({"id": "go", "approve": "?", "approvals": 2}, {"id": "b", "tool": "x.do"})

    async def scene() -> tuple[Run, Run]:
        run = await stage.play(definition)
        half = await approve(stage, run.id, channel="terminal")
        with pytest.raises(Conflict, match="has approved step 'go' already"):
            await approve(stage, run.id, channel="library")
        await approve(stage, run.id, actor="person:bob", channel="elicitation:claude")
        return half, await stage.worker.settled(run.id)

    half, run = in_virtual_time(scene)
    assert half.step("go").status is StepStatus.WAITING
    assert run.status is RunStatus.COMPLETED
    assert run.step("go").approvers == (ADA, "person:bob")
    assert run.step("go").channel == "elicitation:claude"


class Lock:
    """A passphrase that a test knows."""

    def __init__(self, text: str = "sesame") -> None:
        self.text, self.wrong = text, 0

    def is_set(self) -> bool:
        return bool(self.text)

    def tried(self, text: str) -> Tried:
        self.wrong = 0 if text == self.text else self.wrong + 1
        return Tried(is_right=not self.wrong, wrong=self.wrong, wait_s=self.wrong)


class Waiting(Lock):
    """A passphrase that is not looked at for a while, because wrong ones were given."""

    def tried(self, text: str) -> Tried:
        return Tried(is_right=False, wrong=3, wait_s=7, is_early=True)


def test_the_engine_checks_the_passphrase_itself(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    caplog.set_level(logging.WARNING)

    def control(lock: Lock | None) -> Control:
        rules = AnswerRules(passphrase=True)
        dispatch = stage.worker.dispatch
        return Control(dispatch, stage.clock, ApprovalAnswers(rules, stage.clock, passphrase=lock), stage.worker)

    async def scene() -> Run:
        run = await stage.play(plan({"id": "go", "approve": "?"}))
        for given in (AnswerGiven(channel="terminal"), AnswerGiven(channel="library"), AnswerGiven()):
            for action in (Action.APPROVE, Action.REJECT, Action.SKIP):  # to skip it is to override it
                with pytest.raises(Forbidden, match="approvals need a passphrase here, typed"):
                    await control(Lock()).act(run.id, action, actor=ADA, reason="yes", given=given)
        proven = AnswerGiven(channel="terminal", proof="sesame")
        wrong = AnswerGiven(channel="terminal", proof="open")
        for action in (Action.APPROVE, Action.REJECT, Action.SKIP):
            for lock in (None, Lock("")):
                with pytest.raises(Forbidden, match="none is set"):
                    await control(lock).act(run.id, action, actor=ADA, reason="yes", given=proven)
            with pytest.raises(Forbidden, match="the passphrase is wrong"):
                await control(Lock()).act(run.id, action, actor=ADA, reason="yes", given=wrong)
        with pytest.raises(Forbidden, match="was not looked at") as early:
            await control(Waiting()).act(run.id, Action.APPROVE, actor=ADA, reason="yes", given=proven)
        assert "wait 7 s" in early.value.hint
        assert "open" not in repr(wrong)
        assert (await stage.worker.dispatch.current(run.id)).n == run.n, "nothing was recorded"
        return await control(Lock()).act(run.id, Action.APPROVE, actor=ADA, reason="yes", given=proven)

    assert in_virtual_time(scene).step("go").status is StepStatus.COMPLETED
    assert "a wrong passphrase for an approval: 1 in a row" in caplog.text
