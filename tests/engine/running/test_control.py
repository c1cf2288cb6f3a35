"""Control: each with a reason, legal in the states that the table says; a refusal says what is legal."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.stage import ADA, Stage, always, plan, puppet, taking
from handrail.domain.definition.model import Category, Definition
from handrail.domain.errors import Conflict, Forbidden, Invalid, NotFound
from handrail.domain.journal.event import AnswerCameLate, RunCancelled, RunPaused, RunStarted, StepCarried
from handrail.domain.policy.answering import AnswerRules
from handrail.domain.run.command import CompleteStep, HandOutStep
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from virtual_time import in_virtual_time

BAD = puppet("x.bad", always(Category.PERMISSION))
GO = plan(
    {"id": "go", "approve": "Publish {{ inputs.v }}?", "by": ["leads"], "expires": "1h"}, {"id": "b", "tool": "x.do"}
)


def test_pause_lets_running_attempts_end_and_starts_nothing_new_until_resumed() -> None:
    stage = Stage(puppet("x.slow", taking(10)))
    definition = plan({"id": "a", "tool": "x.slow"}, {"id": "b", "tool": "x.do"})

    async def scene() -> tuple[Run, Run]:
        await stage.open()
        run = await stage.start(definition)
        await asyncio.sleep(1)
        await stage.control.act(run.id, Action.PAUSE, actor=ADA, reason="lunch")
        await asyncio.sleep(100)
        paused = await stage.worker.dispatch.current(run.id)
        await stage.control.act(run.id, Action.RESUME, actor=ADA, reason="back")
        return paused, await stage.worker.settled(run.id)

    paused, run = in_virtual_time(scene)
    assert (paused.status, paused.reason) == (RunStatus.PAUSED, "lunch")
    assert paused.step("a").status is StepStatus.COMPLETED
    assert paused.step("b").status is StepStatus.PENDING
    assert run.status is RunStatus.COMPLETED
    assert len(stage.box.tools["x.do"].calls) == 1


def test_cancel_stops_running_calls_and_what_may_have_happened_is_uncertain() -> None:
    stopped: list[str] = []

    async def slow(call: Any) -> Any:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            stopped.append(call.step)
            raise

    stage = Stage(puppet("x.slow", slow))
    definition = plan({"id": "a", "tool": "x.slow"}, {"id": "b", "tool": "x.do"})

    async def scene() -> tuple[Run, list[Any]]:
        await stage.open()
        run = await stage.start(definition)
        await asyncio.sleep(1)
        await stage.control.act(run.id, Action.CANCEL, actor=ADA, reason="enough")
        again = await stage.control.act(run.id, Action.CANCEL, actor=ADA, reason="enough, I said")
        await asyncio.sleep(1)
        return again, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.CANCELLED
    assert run.step("a").status is StepStatus.UNCERTAIN
    assert stopped == ["a"]
    assert [event for event in events if isinstance(event, RunCancelled)] == [RunCancelled(reason="enough")]
    assert not stage.box.tools["x.do"].calls


def test_an_answer_that_came_after_the_cancel_is_late_and_changes_nothing() -> None:
    async def deaf(call: Any) -> Any:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return {"did": "it"}

    stage = Stage(puppet("x.deaf", deaf))

    async def scene() -> tuple[Run, list[Any]]:
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.deaf"}))
        await asyncio.sleep(1)
        await stage.control.act(run.id, Action.CANCEL, actor=ADA, reason="enough")
        await asyncio.sleep(10)
        return await stage.worker.dispatch.current(run.id), await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.step("a").status is StepStatus.UNCERTAIN
    assert not [event for event in events if isinstance(event, AnswerCameLate) and event.output != {"did": "it"}]


@pytest.mark.parametrize(
    ("action", "ends"),
    [
        (Action.RETRY, RunStatus.COMPLETED),
        (Action.SKIP, RunStatus.COMPLETED),
        (Action.COMPENSATE, RunStatus.COMPENSATED),
    ],
)
def test_a_failed_step_waits_for_a_decision_and_each_of_them_leads_on(action: Action, ends: RunStatus) -> None:
    async def once(call: Any) -> Any:
        if call.attempt == 1:
            from handrail.engine.tool import ToolFailed

            raise ToolFailed(Category.PERMISSION, "403")

    stage = Stage(puppet("x.once", once))
    definition = plan({"id": "a", "tool": "x.do", "undo": {"tool": "x.undo"}}, {"id": "b", "tool": "x.once"})

    async def scene() -> Run:
        run = await stage.play(definition)
        await stage.control.act(run.id, action, actor=ADA, reason="so be it")
        return await stage.worker.settled(run.id)

    assert in_virtual_time(scene).status is ends


def test_a_retry_grants_the_policys_attempts_again() -> None:
    stage = Stage(puppet("x.bad", always(Category.TRANSIENT)))

    async def scene() -> Run:
        run = await stage.play(plan({"id": "a", "tool": "x.bad", "retry": {"attempts": 2}}))
        await stage.control.act(run.id, Action.RETRY, actor=ADA, reason="again")
        return await stage.worker.settled(run.id)

    run = in_virtual_time(scene)
    assert run.step("a").status is StepStatus.FAILED
    assert len(stage.box.tools["x.bad"].calls) == 4


def test_retrying_a_failed_loop_retries_what_failed_inside_it() -> None:
    seen: list[str] = []

    async def once(call: Any) -> Any:
        seen.append(call.step)
        if call.step == "loop[1].a" and call.attempt == 1:
            raise ValueError("first time")

    stage = Stage(puppet("x.once", once))
    loop = {
        "id": "loop",
        "each": "[1, 2]",
        "parallel": 2,
        "steps": [{"id": "a", "tool": "x.once", "on_failure": "continue"}],
    }

    async def scene() -> Run:
        run = await stage.play(plan(loop))
        assert run.step("loop").status is StepStatus.FAILED
        await stage.control.act(run.id, Action.RETRY, step="loop", actor=ADA, reason="again")
        return await stage.worker.settled(run.id)

    assert in_virtual_time(scene).status is RunStatus.COMPLETED
    assert sorted(seen) == ["loop[0].a", "loop[1].a", "loop[1].a"]


def test_what_is_not_legal_is_refused_with_what_is() -> None:
    stage = Stage(BAD)

    async def scene() -> None:
        run = await stage.play(plan({"id": "a", "tool": "x.bad"}))
        with pytest.raises(Conflict) as refused:
            await stage.control.act(run.id, Action.RESUME, actor=ADA, reason="go")
        assert refused.value.hint == "legal now: retry a, skip a, pause, cancel, compensate, fork"
        with pytest.raises(Conflict, match="no step"):
            await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        with pytest.raises(Conflict):
            await stage.control.act(run.id, Action.ACCEPT, step="a", actor=ADA, reason="it happened")
        with pytest.raises(Invalid, match="reason"):
            await stage.control.act(run.id, Action.PAUSE, actor=ADA, reason="  ")
        with pytest.raises(NotFound):
            await stage.control.act("run_nowhere2", Action.PAUSE, actor=ADA, reason="x")
        after = await stage.control.act(run.id, Action.CANCEL, actor=ADA, reason="enough")
        with pytest.raises(Conflict) as ended:
            await stage.control.act(run.id, Action.RETRY, step="a", actor=ADA, reason="again")
        assert "compensate" in ended.value.hint
        assert after.status is RunStatus.CANCELLED

    in_virtual_time(scene)


def test_two_steps_that_could_be_meant_have_to_be_named() -> None:
    stage = Stage(BAD)

    async def scene() -> None:
        run = await stage.play(plan({"id": "a", "tool": "x.bad"}, {"id": "b", "tool": "x.bad", "after": []}))
        with pytest.raises(Invalid, match="which step to retry\\? a, b"):
            await stage.control.act(run.id, Action.RETRY, actor=ADA, reason="again")

    in_virtual_time(scene)


# --- approvals ------------------------------------------------------------------------------------------


def test_an_approval_lets_the_run_go_on_and_says_who_gave_it() -> None:
    stage = Stage()

    async def scene() -> tuple[Run, Run]:
        waits = await stage.play(GO, {"v": "1.0"})
        await stage.control.act(waits.id, Action.APPROVE, actor=ADA, reason="looks good")
        return waits, await stage.worker.settled(waits.id)

    waits, run = in_virtual_time(scene)
    assert waits.step("go").status is StepStatus.WAITING
    asked = waits.step("go").values
    assert (asked["text"], asked["by"], [one.step for one in asked["effects"]]) == ("Publish 1.0?", ["leads"], ["b"])
    assert run.status is RunStatus.COMPLETED
    assert run.step("go").actor == ADA


def test_an_approval_counts_once_and_a_rejection_fails_the_step() -> None:
    stage = Stage()

    async def scene() -> Run:
        run = await stage.play(GO, {"v": "1.0"})
        after = await stage.control.act(run.id, Action.REJECT, actor=ADA, reason="not today")
        with pytest.raises(Conflict):
            await stage.control.act(run.id, Action.APPROVE, step="go", actor=ADA, reason="or yes")
        return after

    run = in_virtual_time(scene)
    assert run.step("go").status is StepStatus.FAILED
    assert run.step("go").message == "not today"


def test_nobody_answering_in_time_is_asked_again_and_after_ten_times_the_step_fails() -> None:
    stage = Stage()

    async def scene() -> tuple[Run, Run, Run]:
        await stage.open()
        run = await stage.start(GO, {"v": "1.0"})
        await asyncio.sleep(1.5 * 3_600)
        again = await stage.worker.dispatch.current(run.id)
        await asyncio.sleep(12 * 3_600)
        expired = await stage.worker.dispatch.current(run.id)
        await stage.control.act(run.id, Action.RETRY, step="go", actor=ADA, reason="ask again")
        await asyncio.sleep(1)
        await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        return again, expired, await stage.worker.settled(run.id)

    again, expired, run = in_virtual_time(scene)
    assert (again.step("go").status, again.step("go").asked) == (StepStatus.WAITING, 2)
    asked, due = again.step("go").started or 0, again.step("go").due or 0
    assert due - asked == 3_600_000, "the new time counts from the new request"
    assert (expired.step("go").category, expired.step("go").asked) == (Category.TIMEOUT, 10)
    assert run.status is RunStatus.COMPLETED


def test_an_agent_can_not_approve_unless_it_was_allowed() -> None:
    anyone = plan({"id": "go", "approve": "?"})

    async def scene(stage: Stage, definition: Definition) -> Run:
        run = await stage.play(definition, {"v": "1.0"} if definition is GO else {})
        return await stage.control.act(run.id, Action.APPROVE, actor="agent:claude", reason="sure")

    def allowed() -> Stage:
        return Stage(say=AnswerRules(agents_may_approve=True, groups={"leads": ["claude"]}))

    with pytest.raises(Forbidden, match="a person must"):
        in_virtual_time(lambda: scene(Stage(), anyone))
    assert in_virtual_time(lambda: scene(allowed(), anyone)).step("go").status is StepStatus.COMPLETED
    with pytest.raises(Forbidden, match="this is for leads"):  # people: an agent could call itself anything
        in_virtual_time(lambda: scene(allowed(), GO))


def test_where_groups_are_configured_only_those_who_were_asked_may_answer() -> None:
    stage = Stage(say=AnswerRules(groups={"leads": ["grace"]}))

    async def scene() -> Run:
        run = await stage.play(GO, {"v": "1.0"})
        with pytest.raises(Forbidden, match="this is for leads"):
            await stage.control.act(run.id, Action.APPROVE, actor=ADA, reason="yes")
        return await stage.control.act(run.id, Action.APPROVE, actor="person:grace", reason="yes")

    assert in_virtual_time(scene).step("go").status is StepStatus.COMPLETED


def test_an_answer_that_comes_when_the_time_is_over_is_refused_even_before_the_timer() -> None:
    stage = Stage()

    async def scene() -> None:
        run = await stage.play(GO, {"v": "1.0"})
        await stage.worker.close()
        await asyncio.sleep(7_200)
        with pytest.raises(Conflict, match="time to answer"):
            await stage.control.act(run.id, Action.APPROVE, step="go", actor=ADA, reason="yes")

    in_virtual_time(scene)


# --- deadline, prompts, fork ------------------------------------------------------------------------------


@pytest.mark.parametrize(("policy", "ends"), [("ask", RunStatus.FAILED), ("compensate", RunStatus.COMPENSATED)])
def test_when_its_time_is_up_a_run_ends_or_is_undone(policy: str, ends: RunStatus) -> None:
    stage = Stage(puppet("x.slow", taking(1_000)))
    steps = [{"id": "a", "tool": "x.do", "undo": {"tool": "x.undo"}}, {"id": "b", "tool": "x.slow", "timeout": "1h"}]
    run = in_virtual_time(lambda: stage.play(plan(*steps, deadline="1m", on_failure=policy)))
    assert run.status is ends
    assert run.deadline == run.started + 60_000
    assert run.reason == "the deadline has passed"
    assert run.step("b").status is StepStatus.UNCERTAIN
    assert run.ended is not None
    assert run.ended - run.started < 62_000


def test_a_prompt_waits_for_the_agent_and_the_run_goes_on_with_what_it_hands_in() -> None:
    stage = Stage()
    definition = plan(
        {"id": "write", "prompt": "write"},
        {"id": "use", "tool": "value.set", "args": {"value": "{{ steps.write.output }}"}},
    )

    async def scene() -> tuple[Run, Run]:
        waits = await stage.play(definition)
        dispatch = stage.worker.dispatch
        await dispatch.grant(waits.id, HandOutStep(step="write", agent="claude"), actor="agent:claude")
        await dispatch.grant(waits.id, CompleteStep(step="write", output="text"), actor="agent:claude")
        return waits, await stage.worker.settled(waits.id)

    waits, run = in_virtual_time(scene)
    assert waits.status is RunStatus.RUNNING
    assert run.status is RunStatus.COMPLETED
    assert run.step("use").output == "text"


def test_a_fork_shares_what_was_done_before_a_step_and_names_what_it_does_not_undo() -> None:
    stage = Stage(BAD)
    definition = plan(
        {"id": "a", "tool": "x.do"},
        {"id": "b", "each": "[1, 2]", "steps": [{"id": "m", "tool": "value.set", "args": {"value": "{{ item }}"}}]},
        {"id": "c", "tool": "x.do"},
        {"id": "d", "tool": "x.bad", "on_failure": "continue"},
    )

    async def scene() -> tuple[Run, Run, list[Any]]:
        run = await stage.play(definition)
        fork = await stage.control.act(run.id, Action.FORK, step="c", actor=ADA, reason="another way")
        await stage.worker.settled(fork.id)
        return run, fork, await stage.events(fork.id)

    run, fork, events = in_virtual_time(scene)
    started = events[0]
    assert isinstance(started, RunStarted)
    assert started.fork is not None
    assert (started.fork.run, started.fork.step, started.fork.effects) == (run.id, "c", ("c",))
    assert events[1:3] == [
        StepCarried(step="a", output={"did": "a"}),
        StepCarried(step="b", output=[{"m": 1}, {"m": 2}]),
    ]
    assert [call.key for call in stage.box.tools["x.do"].calls] == [f"{run.id}:a", f"{run.id}:c", f"{fork.id}:c"]


def test_a_fork_from_inside_a_loop_says_where_to_fork_instead() -> None:
    stage = Stage()

    async def scene() -> None:
        loop = {"id": "b", "each": "[1]", "steps": [{"id": "m", "tool": "x.do"}]}
        run = await stage.play(plan(loop))
        with pytest.raises(Invalid, match="inside 'b'"):
            await stage.control.act(run.id, Action.FORK, step="b[0].m", actor=ADA, reason="x")

    in_virtual_time(scene)


def test_every_control_is_an_event_with_its_reason() -> None:
    stage = Stage(puppet("x.slow", taking(10)))

    async def scene() -> list[Any]:
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.slow"}))
        await stage.control.act(run.id, Action.PAUSE, actor=ADA, reason="lunch")
        return await stage.events(run.id)

    assert RunPaused(reason="lunch") in in_virtual_time(scene)


def test_a_fork_takes_over_no_step_whose_dependency_was_undone() -> None:
    stage = Stage(BAD)
    definition = plan(
        {"id": "a", "tool": "x.do", "effect": "compensatable", "undo": {"tool": "x.do"}},
        {"id": "ok", "approve": "Go on?"},
        {"id": "c", "tool": "x.bad"},
    )

    async def scene() -> tuple[list[Any], Run]:
        run = await stage.play(definition)
        await stage.control.act(run.id, Action.APPROVE, step="ok", actor=ADA, reason="fine")
        await stage.worker.settled(run.id)
        await stage.control.act(run.id, Action.COMPENSATE, actor=ADA, reason="undo it")
        undone = await stage.worker.settled(run.id)
        assert undone.step("a").status is StepStatus.COMPENSATED
        fork = await stage.control.act(run.id, Action.FORK, step="c", actor=ADA, reason="again")
        return await stage.events(fork.id), await stage.worker.settled(fork.id)

    events, fork = in_virtual_time(scene)
    assert not [event for event in events if isinstance(event, StepCarried)]
    # What was approved is made again, so it is asked again.
    assert fork.step("ok").status is StepStatus.WAITING
