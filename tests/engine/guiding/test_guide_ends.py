"""The guide when things end otherwise: what failed, was left out, or has to be undone by the agent."""

from __future__ import annotations

from typing import Any

import pytest

from engine.guided_runs import ONE, SHAPED, TWO, Led, led
from engine.stage import done, plan, puppet
from handrail.domain.definition.model import Category
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.journal.event import (
    Event,
    How,
    Outcome,
    StepFailed,
)
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.domain.run.submission import Verdict
from virtual_time import in_virtual_time

WITH_UNDO = plan(
    {
        "id": "write",
        "prompt": "write",
        "effect": "compensatable",
        "undo": {"prompt": "delete {{ steps.write.output }}"},
    },
    {"id": "read", "prompt": "read"},
)


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        ("ask", RunStatus.RUNNING),
        ("stop", RunStatus.FAILED),
        ("continue", RunStatus.FAILED),
        ("compensate", RunStatus.COMPENSATED),
    ],
)
def test_a_step_that_the_agent_could_not_do_follows_the_policy(policy: str, ends: RunStatus) -> None:
    definition = plan(
        {"id": "tag", "tool": "x.do", "undo": {"tool": "x.undo"}}, {"id": "write", "prompt": "write"}, on_failure=policy
    )

    async def scene() -> tuple[Run, list[Event], Verdict, int]:
        climb = await led(definition)
        await climb.next()
        await climb.fail("write", note="no pen")
        run, events = await climb.now(), await climb.events()
        again = await climb.fail("write", note="no pen")
        return run, events, again, len(climb.stage.box.tools["x.undo"].calls)

    run, events, again, undone = in_virtual_time(scene)
    assert run.status is ends
    assert StepFailed(step="write", category=Category.TOOL_ERROR, message="no pen") in events
    assert again == Verdict(accepted=True, repeated=True)
    assert undone == (policy == "compensate")


def test_a_failed_step_is_offered_again_only_after_somebody_decided_to_retry() -> None:
    async def scene() -> tuple[str, str, Verdict]:
        climb = await led(ONE)
        await climb.fail("write")
        stuck = (await climb.next(within_s=1)).step
        await climb.act(Action.RETRY, step="write")
        return stuck, (await climb.next("ann")).step, await climb.submit("write", "x", agent="ann")

    stuck, offered, verdict = in_virtual_time(scene)
    assert (stuck, offered, verdict.accepted) == ("", "write", True)


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.SKIPPED])
def test_a_failed_step_may_be_submitted_after_all_and_the_run_goes_on(outcome: Outcome) -> None:
    async def scene() -> tuple[Verdict, Run, str]:
        climb = await led(TWO)
        await climb.fail("write")
        with pytest.raises(Invalid, match="can't be submitted as 'started'"):
            await climb.submit("write", outcome=Outcome.STARTED)
        return await climb.submit("write", "x", outcome=outcome), await climb.now(), (await climb.next()).step

    verdict, run, step = in_virtual_time(scene)
    assert (verdict, step) == (Verdict(accepted=True), "read")
    assert run.step("write").status is (StepStatus.COMPLETED if outcome is Outcome.DONE else StepStatus.SKIPPED)


def test_a_failed_step_that_is_submitted_badly_is_open_again() -> None:
    async def scene() -> tuple[Verdict, Run, str]:
        climb = await led(SHAPED)
        await climb.fail("write")
        return await climb.submit("write", "text"), await climb.now(), (await climb.next()).step

    verdict, run, step = in_virtual_time(scene)
    assert (verdict.accepted, step) == (False, "write")
    assert (run.step("write").status, run.step("write").tries) == (StepStatus.WAITING, 1)


def test_a_failed_step_of_a_run_that_is_paused_or_over_is_not_taken_in() -> None:
    async def scene(policy: str, match: str, *actions: Action) -> None:
        climb = await led(plan({"id": "write", "prompt": "write"}, on_failure=policy))
        await climb.fail("write")
        await climb.now()
        for action in actions:
            await climb.act(action)
        with pytest.raises(Conflict, match=match):
            await climb.submit("write", "x")

    in_virtual_time(lambda: scene("ask", "paused", Action.PAUSE))
    in_virtual_time(lambda: scene("stop", "is failed: no step can be worked on"))
    in_virtual_time(lambda: scene("ask", "is cancelled", Action.CANCEL))


def test_what_stands_in_a_failed_loop_is_not_taken_in_before_the_loop_goes_on() -> None:
    inside = {"id": "make", "prompt": "x", "on_failure": "continue"}

    async def scene() -> Verdict:
        climb = await led(plan({"id": "loop", "each": "[1]", "steps": [inside]}))
        await climb.next()
        await climb.fail("loop[0].make")
        assert (await climb.now()).step("loop").status is StepStatus.FAILED
        with pytest.raises(Conflict, match="'loop' has not started"):
            await climb.submit("loop[0].make", "x")
        await climb.act(Action.RETRY, step="loop")
        await climb.next()
        return await climb.submit("loop[0].make", "x")

    assert in_virtual_time(scene).accepted


def test_a_step_that_was_cancelled_takes_nothing_in() -> None:
    definition = plan(
        {"id": "bad", "prompt": "x", "on_failure": "continue"}, {"id": "write", "prompt": "x", "after": []}
    )

    async def scene() -> None:
        climb = await led(definition)
        await climb.next("ann")
        await climb.act(Action.CANCEL)
        with pytest.raises(Conflict, match="cancelled"):
            await climb.submit("bad", "x", agent="ann")

    in_virtual_time(scene)


def test_a_step_that_the_agent_left_out_is_skipped_and_the_run_goes_on() -> None:
    async def scene() -> tuple[list[Verdict], Run, str]:
        climb = await led(TWO)
        verdicts = [await climb.submit("write", outcome=Outcome.SKIPPED, note=note) for note in ("", "again")]
        return verdicts, await climb.now(), (await climb.next()).step

    verdicts, run, step = in_virtual_time(scene)
    assert [verdict.repeated for verdict in verdicts] == [False, True]
    assert run.step("write").status is StepStatus.SKIPPED
    assert run.step("write").message == "the agent skipped it"
    assert step == "read"


# --- undoing ---------------------------------------------------------------------------------------------


async def undoing(definition: Any = WITH_UNDO) -> Led:
    """A run whose first step the agent has to undo."""
    climb = await led(definition)
    await climb.submit("write", "a.txt")
    await climb.act(Action.COMPENSATE)
    assert (await climb.next(within_s=5)).step == "write"
    return climb


def test_an_agent_undoes_its_own_step_and_that_ends_the_compensation() -> None:
    async def scene() -> tuple[Verdict, Verdict, Run]:
        climb = await undoing()
        verdict = await climb.submit("write!undo", {"deleted": 1}, note="gone")
        return verdict, await climb.submit("write!undo", {"deleted": 1}), await climb.now()

    verdict, again, run = in_virtual_time(scene)
    assert (verdict.accepted, verdict.repeated, again.repeated) == (True, False, True)
    assert run.status is RunStatus.COMPENSATED
    assert run.step("write").compensation == How.BY_AGENT.value


def test_what_was_submitted_for_the_step_and_comes_again_is_not_taken_for_its_undo() -> None:
    async def scene() -> tuple[Verdict, RunStatus, Verdict, RunStatus]:
        climb = await undoing()
        late = await climb.submit("write", "a.txt")
        between = (await climb.now()).status
        undone = await climb.submit("write!undo", "a.txt")
        return late, between, undone, (await climb.now()).status

    late, between, undone, end = in_virtual_time(scene)
    assert (late.repeated, between) == (True, RunStatus.COMPENSATING)
    assert (undone.repeated, end) == (False, RunStatus.COMPENSATED)


def test_another_output_under_the_steps_own_name_is_not_taken_for_its_undo() -> None:
    async def scene() -> RunStatus:
        climb = await undoing()
        with pytest.raises(Conflict, match="is being undone") as refused:
            await climb.submit("write", "b.txt")
        assert "write!undo" in refused.value.hint
        return (await climb.now()).status

    assert in_virtual_time(scene) is RunStatus.COMPENSATING


def test_an_undo_that_nobody_asked_for_is_refused() -> None:
    async def scene() -> None:
        climb = await led(WITH_UNDO)
        await climb.submit("write", "a.txt")
        with pytest.raises(Conflict, match="is not being undone"):
            await climb.submit("write!undo")

    in_virtual_time(scene)


def test_a_step_that_had_failed_can_be_submitted_after_all() -> None:
    definition = plan({"id": "write", "prompt": "write"}, {"id": "read", "prompt": "read"})

    async def scene() -> tuple[Verdict, str, RunStatus]:
        climb = await led(definition)
        await climb.submit("write", outcome=Outcome.FAILED, note="no pen")
        verdict = await climb.submit("write", "a.txt")
        following = (await climb.next(within_s=5)).step
        await climb.submit("read", outcome=Outcome.FAILED)
        await climb.submit("read", outcome=Outcome.SKIPPED, note="no matter")
        await climb.next(within_s=5)
        return verdict, following, (await climb.now()).status

    verdict, following, end = in_virtual_time(scene)
    assert (verdict.accepted, verdict.repeated, following) == (True, False, "read")
    assert end is RunStatus.COMPLETED


def test_an_undo_is_nobodys_claim_and_is_offered_until_it_is_done() -> None:
    async def scene() -> tuple[list[str], int]:
        climb = await undoing()
        before = (await climb.now()).n
        steps = [(await climb.next(agent)).step for agent in ("ann", "bob")]
        return steps, (await climb.now()).n - before

    assert in_virtual_time(scene) == (["write", "write"], 0)


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.SKIPPED])
def test_an_undo_that_the_agent_could_not_do_fails_the_compensation(outcome: Outcome) -> None:
    async def scene() -> Run:
        climb = await undoing()
        await climb.submit("write!undo", outcome=outcome, note="locked")
        return await climb.now()

    run = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATION_FAILED
    assert run.step("write").message == "locked"


def test_an_undo_has_its_own_shape_and_its_own_confirmation() -> None:
    undo = {"prompt": "delete", "output": {"type": "object"}, "confirm": True}
    definition = plan(
        {"id": "write", "prompt": "write", "effect": "compensatable", "undo": undo}, {"id": "read", "prompt": "x"}
    )

    async def scene() -> tuple[Verdict, Verdict]:
        climb = await undoing(definition)
        with pytest.raises(Invalid, match="refused") as refused:
            await climb.submit("write!undo", "text")
        assert refused.value.findings
        with pytest.raises(Invalid, match="'started'"):
            await climb.submit("write!undo", outcome=Outcome.STARTED)
        return await climb.submit("write!undo", {}), await climb.submit("write!undo", {}, confirmed="ada said yes")

    unconfirmed, confirmed = in_virtual_time(scene)
    assert (unconfirmed.unconfirmed, confirmed.accepted) == (True, True)


def test_a_prompt_inside_the_workflow_that_undoes_a_step_is_for_the_agent_too() -> None:
    inner = {"id": "clean", "version": "1.0.0", "steps": [{"id": "wipe", "prompt": "wipe"}]}
    definition = plan(
        {"id": "tag", "tool": "x.do", "undo": {"workflow": "clean@1.0.0"}},
        {"id": "read", "prompt": "read"},
        pinned={"clean@1.0.0": inner},
    )

    async def scene() -> tuple[str, Run]:
        climb = await led(definition)
        await climb.next()
        await climb.act(Action.COMPENSATE)
        step = (await climb.next("ann", within_s=5)).step
        assert (await climb.submit(step, agent="ann")).accepted
        return step, await climb.now()

    step, run = in_virtual_time(scene)
    assert step == "tag!undo.wipe"
    assert run.status is RunStatus.COMPENSATED


def test_the_work_of_tools_is_none_of_the_guides() -> None:
    async def scene() -> tuple[str, Run]:
        climb = await led(plan({"id": "build", "tool": "x.do"}), puppets=[puppet("x.do", done)])
        return (await climb.next("ann")).step, await climb.now()

    step, run = in_virtual_time(scene)
    assert step == ""
    assert run.status is RunStatus.COMPLETED
