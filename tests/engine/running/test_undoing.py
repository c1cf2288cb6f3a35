"""Failure and undo: what a failed step means for its run, and how what was done is taken back."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from engine.stage import ADA, Stage, always, failing, plan, puppet
from handrail.domain.definition.model import Category, Definition
from handrail.domain.journal.event import How, RunCompensated, UndoFailed, UndoStarted
from handrail.domain.run.command import CompensateStep, CompleteStep, HandOutStep
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from virtual_time import in_virtual_time

BAD = puppet("x.bad", always(Category.PERMISSION))
UNDO = {"tool": "x.undo"}


def did(stage: Stage, tool: str = "x.do") -> list[str]:
    return [call.step for call in stage.box.tools[tool].calls]


def played(stage: Stage, definition: Definition) -> Run:
    return in_virtual_time(lambda: stage.play(definition))


# --- policies ---------------------------------------------------------------------------------------


def test_ask_waits_for_a_decision_and_other_branches_go_on() -> None:
    stage = Stage(BAD)
    run = played(
        stage,
        plan(
            {"id": "a", "tool": "x.bad", "after": []},
            {"id": "b", "tool": "x.do", "after": []},
            {"id": "c", "tool": "x.do", "after": ["a"]},
        ),
    )
    assert run.status is RunStatus.RUNNING
    assert run.step("a").status is StepStatus.FAILED
    assert did(stage) == ["b"]


def test_stop_starts_nothing_new_and_fails() -> None:
    stage = Stage(BAD)
    steps = [{"id": f"s{n}", "tool": "x.do", "after": []} for n in range(3)]
    definition = plan(
        {"id": "a", "tool": "x.bad", "after": [], "priority": 1}, *steps, max_parallel=1, on_failure="stop"
    )
    run = played(stage, definition)
    assert run.status is RunStatus.FAILED
    assert did(stage) == []
    assert run.reason == "it is permission"


def test_continue_goes_on_with_what_does_not_depend_on_it_and_then_fails() -> None:
    stage = Stage(BAD)
    run = played(
        stage,
        plan(
            {"id": "a", "tool": "x.bad", "after": []},
            {"id": "b", "tool": "x.do", "after": []},
            {"id": "c", "tool": "x.do", "after": ["b"]},
            {"id": "d", "tool": "x.do", "after": ["a"]},
            on_failure="continue",
        ),
    )
    assert run.status is RunStatus.FAILED
    assert did(stage) == ["b", "c"]
    assert run.step("d").status is StepStatus.PENDING


def test_a_steps_own_policy_wins_over_the_runs_and_so_does_that_of_the_loop_around_it() -> None:
    stage = Stage(BAD)
    loop = {"id": "all", "each": "[1, 2]", "on_failure": "continue", "steps": [{"id": "a", "tool": "x.bad"}]}
    run = played(stage, plan(loop, {"id": "b", "tool": "x.do", "after": []}, on_failure="stop"))
    assert run.status is RunStatus.FAILED
    assert run.step("all").status is StepStatus.FAILED
    assert did(stage) == ["b"]


def test_compensate_undoes_at_once() -> None:
    stage = Stage(BAD)
    run = played(
        stage,
        plan({"id": "a", "tool": "x.do", "undo": UNDO}, {"id": "b", "tool": "x.bad"}, on_failure="compensate"),
    )
    assert run.status is RunStatus.COMPENSATED
    assert run.step("a").compensation == "executed"
    assert did(stage, "x.undo") == ["a"]
    assert stage.box.tools["x.undo"].calls[0].key == f"{run.id}:a:undo"


# --- order --------------------------------------------------------------------------------------------


def test_undo_goes_backwards_along_the_graph_and_side_by_side_where_the_graph_was() -> None:
    spans: dict[str, tuple[float, float]] = {}

    async def slow(call: Any) -> Any:
        began = asyncio.get_running_loop().time()
        await asyncio.sleep(1)
        spans[call.step] = (began, asyncio.get_running_loop().time())

    stage = Stage(BAD, puppet("x.slow-undo", slow))
    undo = {"tool": "x.slow-undo"}
    steps = [
        {"id": "root", "tool": "x.do", "undo": undo},
        {"id": "left", "tool": "x.do", "undo": undo, "after": ["root"]},
        {"id": "right", "tool": "x.do", "undo": undo, "after": ["root"]},
        {"id": "pure", "tool": "value.set", "args": {"value": 1}, "after": ["left", "right"]},
        {"id": "top", "tool": "x.do", "undo": undo, "after": ["pure"]},
        {"id": "bad", "tool": "x.bad", "after": ["top"]},
    ]
    run = played(stage, plan(*steps, on_failure="compensate"))
    assert run.status is RunStatus.COMPENSATED
    assert spans["top"][1] <= min(spans["left"][0], spans["right"][0])
    assert spans["left"][0] < spans["right"][1]
    assert spans["right"][0] < spans["left"][1]
    assert max(spans["left"][1], spans["right"][1]) <= spans["root"][0]


def test_rounds_of_a_loop_are_undone_last_round_first_and_after_all_that_followed_the_loop() -> None:
    stage = Stage(BAD)
    body = [{"id": "m", "tool": "x.do", "undo": UNDO}, {"id": "n", "tool": "x.do", "undo": UNDO}]
    run = played(
        stage,
        plan(
            {"id": "first", "tool": "x.do", "undo": UNDO},
            {"id": "loop", "repeat": {"times": 2}, "steps": body},
            {"id": "last", "tool": "x.do", "undo": UNDO},
            {"id": "bad", "tool": "x.bad"},
            on_failure="compensate",
        ),
    )
    assert run.status is RunStatus.COMPENSATED
    assert did(stage, "x.undo") == ["last", "loop[1].n", "loop[1].m", "loop[0].n", "loop[0].m", "first"]


def test_a_step_that_is_undone_as_a_whole_takes_what_is_in_it_along() -> None:
    stage = Stage(BAD)
    body = [{"id": "m", "tool": "x.do", "undo": {"tool": "x.undo", "args": {"inner": 1}}}]
    loop = {"id": "loop", "each": "[1, 2]", "steps": body, "undo": {"tool": "x.undo", "args": {"whole": 1}}}
    run = played(stage, plan(loop, {"id": "bad", "tool": "x.bad"}, on_failure="compensate"))
    assert run.status is RunStatus.COMPENSATED
    assert [dict(call.args) for call in stage.box.tools["x.undo"].calls] == [{"whole": 1}]


# --- kinds of undo --------------------------------------------------------------------------------------


def test_a_tools_own_undo_gets_what_was_captured_before_the_effect() -> None:
    kept = puppet("x.kept", kept={"was": "absent"})
    stage = Stage(BAD, kept)
    run = played(stage, plan({"id": "a", "tool": "x.kept"}, {"id": "b", "tool": "x.bad"}, on_failure="compensate"))
    assert run.status is RunStatus.COMPENSATED
    assert [call.capture for call in kept.undone] == [{"was": "absent"}]


def test_an_undo_by_the_agent_waits_for_the_agent() -> None:
    stage = Stage(BAD)
    definition = plan(
        {"id": "a", "tool": "x.do", "undo": {"prompt": "take it back"}},
        {"id": "b", "tool": "x.bad"},
        on_failure="compensate",
    )

    async def scene() -> tuple[Run, Run]:
        waits = await stage.play(definition)
        by_agent = CompensateStep(step="a", how=How.BY_AGENT, description="took it back")
        await stage.worker.dispatch.grant(waits.id, by_agent, actor="agent:claude")
        return waits, await stage.worker.settled(waits.id)

    waits, run = in_virtual_time(scene)
    assert (waits.status, waits.step("a").status) == (RunStatus.COMPENSATING, StepStatus.COMPENSATING)
    assert run.status is RunStatus.COMPENSATED
    assert run.step("a").compensation == "by_agent"


def test_an_undo_by_a_workflow_runs_all_its_steps() -> None:
    stage = Stage(BAD)
    takes_back = {
        "id": "take-back",
        "inputs": {"what": {"type": "string"}},
        "steps": [
            {"id": "one", "tool": "x.undo", "args": {"what": "{{ inputs.what }}"}},
            {"id": "two", "tool": "x.undo", "args": {"n": "{{ steps.one.output.did }}"}},
        ],
    }
    run = played(
        stage,
        plan(
            {
                "id": "a",
                "tool": "x.do",
                "undo": {"workflow": "take-back@1", "with": {"what": "{{ steps.a.output.did }}"}},
            },
            {"id": "b", "tool": "x.bad"},
            on_failure="compensate",
            pinned={"take-back@1": takes_back},
        ),
    )
    assert run.status is RunStatus.COMPENSATED
    assert [(call.step, dict(call.args)) for call in stage.box.tools["x.undo"].calls] == [
        ("a!undo.one", {"what": "a"}),
        ("a!undo.two", {"n": "a!undo.one"}),
    ]
    assert run.step("a").compensation == "executed"


def test_an_undo_by_a_workflow_that_fails_is_a_failed_undo() -> None:
    stage = Stage(BAD)
    takes_back = {"id": "take-back", "steps": [{"id": "one", "tool": "x.bad"}]}
    run = played(
        stage,
        plan(
            {"id": "a", "tool": "x.do", "undo": {"workflow": "take-back@1"}},
            {"id": "b", "tool": "x.bad"},
            on_failure="compensate",
            pinned={"take-back@1": takes_back},
        ),
    )
    assert run.status is RunStatus.COMPENSATION_FAILED
    assert "a!undo.one failed" in run.step("a").message


def test_what_nothing_can_undo_is_named() -> None:
    stage = Stage(BAD)

    async def scene() -> list[Any]:
        steps = [{"id": "mail", "tool": "x.do"}, {"id": "tag", "tool": "x.do", "undo": UNDO}]
        run = await stage.play(plan(*steps, {"id": "b", "tool": "x.bad"}, on_failure="compensate"))
        return await stage.events(run.id)

    assert in_virtual_time(scene)[-1] == RunCompensated(not_compensated=("mail",))


# --- undo that fails --------------------------------------------------------------------------------------


def test_a_failed_undo_is_tried_again_by_policy() -> None:
    stage = Stage(BAD, puppet("x.flaky", failing(Category.TRANSIENT)))
    undo = {"tool": "x.flaky", "retry": {"first": "10s", "jitter": False}}

    async def scene() -> tuple[Run, list[Any]]:
        run = await stage.play(
            plan({"id": "a", "tool": "x.do", "undo": undo}, {"id": "b", "tool": "x.bad"}, on_failure="compensate")
        )
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATED
    failed = next(event for event in events if isinstance(event, UndoFailed))
    assert not failed.final
    assert [event.attempt for event in events if isinstance(event, UndoStarted)] == [1, 2]
    assert run.ended is not None
    assert run.ended - run.started >= 10_000


def test_an_undo_that_fails_for_good_never_ends_as_compensated_and_holds_back_what_was_before_it() -> None:
    stage = Stage(BAD)
    steps = [{"id": "a", "tool": "x.do", "undo": UNDO}, {"id": "b", "tool": "x.do", "undo": {"tool": "x.bad"}}]
    run = played(stage, plan(*steps, {"id": "c", "tool": "x.bad"}, on_failure="compensate"))
    assert run.status is RunStatus.COMPENSATION_FAILED
    assert run.step("b").status is StepStatus.COMPENSATION_FAILED
    assert run.step("a").status is StepStatus.COMPLETED
    assert did(stage, "x.undo") == []


def test_an_undo_by_a_tool_that_is_not_there_any_more_has_failed() -> None:
    stage = Stage(BAD)
    step = {"id": "a", "tool": "x.do", "undo": {"tool": "no.such"}}
    run = played(stage, plan(step, {"id": "b", "tool": "x.bad"}, on_failure="compensate"))
    assert run.status is RunStatus.COMPENSATION_FAILED
    assert "no.such" in run.step("a").message


@pytest.mark.parametrize(
    ("action", "compensation", "left"), [(Action.RETRY, "executed", ()), (Action.SKIP, "", ("b",))]
)
def test_a_failed_undo_can_be_retried_or_given_up(action: Action, compensation: str, left: tuple[str, ...]) -> None:
    stage = Stage(BAD, puppet("x.once", failing(Category.PERMISSION)))
    steps = [{"id": "a", "tool": "x.do", "undo": UNDO}, {"id": "b", "tool": "x.do", "undo": {"tool": "x.once"}}]
    definition = plan(*steps, {"id": "c", "tool": "x.bad"}, on_failure="compensate")

    async def scene() -> tuple[Run, list[Any]]:
        broken = await stage.play(definition)
        assert broken.status is RunStatus.COMPENSATION_FAILED
        await stage.control.act(broken.id, action, step="b", actor=ADA, reason="again")
        run = await stage.worker.settled(broken.id)
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATED
    assert run.step("b").compensation == compensation
    assert did(stage, "x.undo") == ["a"]
    assert events[-1] == RunCompensated(not_compensated=left)


def test_a_failed_undo_can_be_recorded_as_done_by_hand() -> None:
    stage = Stage(BAD)
    definition = plan(
        {"id": "a", "tool": "x.do", "undo": {"tool": "x.bad"}}, {"id": "b", "tool": "x.bad"}, on_failure="compensate"
    )

    async def scene() -> Run:
        broken = await stage.play(definition)
        return await stage.control.record_compensation(
            broken.id, "a", how=How.RECORDED, description="by hand", actor=ADA, details={}
        )

    run = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATED
    assert run.step("a").compensation == "recorded"


def test_compensation_goes_on_after_a_crash_and_undoes_nothing_twice() -> None:
    async def slow(call: Any) -> Any:
        await asyncio.sleep(10)

    stage = Stage(BAD, puppet("x.slow-undo", slow, idempotent=True))
    undo = {"tool": "x.slow-undo"}
    steps = [{"id": f"s{n}", "tool": "x.do", "undo": undo} for n in range(3)]

    async def scene() -> Run:
        await stage.open()
        run = await stage.start(plan(*steps, {"id": "bad", "tool": "x.bad"}, on_failure="compensate"))
        await asyncio.sleep(15)
        await stage.die()
        await stage.open("w-two")
        return await stage.worker.settled(run.id)

    run = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATED
    keys = [call.key.split(":")[1] for call in stage.box.tools["x.slow-undo"].calls]
    assert keys == ["s2", "s1", "s1", "s0"]


def test_a_prompt_that_changed_the_world_is_undone_too() -> None:
    stage = Stage(BAD)
    definition = plan(
        {"id": "write", "prompt": "write it", "undo": UNDO}, {"id": "bad", "tool": "x.bad"}, on_failure="compensate"
    )

    async def scene() -> Run:
        run = await stage.play(definition)
        await stage.worker.dispatch.grant(run.id, HandOutStep(step="write"), actor="agent:claude")
        await stage.worker.dispatch.grant(run.id, CompleteStep(step="write", output=1), actor="agent:claude")
        return await stage.worker.settled(run.id)

    run = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATED
    assert did(stage, "x.undo") == ["write"]
