"""An undo that was in progress in a crash: it is called again, unless it opted out; then someone decides."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from domain.facts import CHAIN, after, fresh
from engine.stage import ADA, Puppet, Stage, always, failing, plan, puppet, taking
from handrail.domain.definition.model import Category, Definition, Effect
from handrail.domain.errors import Conflict
from handrail.domain.journal.event import (
    How,
    RunCompensated,
    RunCompensationFailed,
    StepRetried,
    UndoBecameUncertain,
    UndoLost,
    UndoStarted,
)
from handrail.domain.run.command import (
    Command,
    CompleteStep,
    FinishCompensation,
    HandOutStep,
    LoseUndo,
    StartAttempt,
    StartCompensation,
    StartUndo,
)
from handrail.domain.run.decide import decide
from handrail.domain.run.decide_step import LOST_MAX
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from handrail.engine.reading.run_view import status_of
from handrail.interfaces.mcp.surface.answering import status_data, status_words
from virtual_time import in_virtual_time

BAD = puppet("x.bad", always(Category.PERMISSION))
SLOW_S = 10.0


def saga(*steps: dict[str, Any], **keys: Any) -> Definition:
    """These steps, then one that fails: all must be undone."""
    return plan(*steps, {"id": "bad", "tool": "x.bad"}, on_failure="compensate", **keys)


def slow_undo(**more: Any) -> Puppet:
    return puppet("x.slow-undo", taking(SLOW_S), **more)


def undone_slowly(name: str = "a", **undo: Any) -> dict[str, Any]:
    return {"id": name, "tool": "x.do", "undo": {"tool": "x.slow-undo", **undo}}


async def killed_in_undo(stage: Stage, definition: Definition, *, kills: int = 1) -> Run:
    """Start a run, and kill its workers while its first undo is in progress."""
    await stage.open("w-0")
    run = await stage.start(definition)
    for number in range(kills):
        await asyncio.sleep(SLOW_S / 2)
        await stage.die()
        await stage.open(f"w-{number + 1}")
    return await stage.worker.settled(run.id)


def keys_called(stage: Stage) -> list[str]:
    return [call.key for call in stage.box.tools["x.slow-undo"].calls]


# --- repeatable by nature ---------------------------------------------------------------------------


def test_a_lost_undo_is_called_again_under_its_own_key_although_nobody_called_its_tool_idempotent() -> None:
    stage = Stage(BAD, slow_undo())

    async def scene() -> tuple[Run, list[Any]]:
        run = await killed_in_undo(stage, saga(undone_slowly()))
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.status is RunStatus.COMPENSATED
    assert keys_called(stage) == [f"{run.id}:a:undo"] * 2
    assert UndoLost(step="a", attempt=1) in events
    assert [event.attempt for event in events if isinstance(event, UndoStarted)] == [1, 2]


def test_lost_undos_do_not_use_up_the_retry_policy() -> None:
    retry = {"attempts": 2, "first": "1s", "jitter": False}
    answers = failing(Category.TRANSIENT)

    async def slowly(call: Any) -> Any:
        await asyncio.sleep(SLOW_S)
        return await answers(call)

    stage = Stage(BAD, puppet("x.slow-undo", slowly))
    run = in_virtual_time(lambda: killed_in_undo(stage, saga(undone_slowly(retry=retry)), kills=5))
    assert run.status is RunStatus.COMPENSATED, "of two attempts that may fail only one has"
    assert len(keys_called(stage)) == 7


def test_an_undo_that_is_lost_again_and_again_becomes_uncertain_instead_of_crashing_every_process() -> None:
    stage = Stage(BAD, slow_undo())
    run = in_virtual_time(lambda: killed_in_undo(stage, saga(undone_slowly()), kills=LOST_MAX + 1))
    assert run.status is RunStatus.COMPENSATING
    assert run.step("a").status is StepStatus.UNCERTAIN
    assert len(keys_called(stage)) == LOST_MAX + 1


@pytest.mark.parametrize(
    ("step", "tool", "is_repeatable"),
    [
        ({"undo": {"tool": "x.undo"}}, {}, True),
        ({"undo": {"tool": "x.undo", "idempotent": False}}, {}, False),
        ({"undo": {"tool": "x.undo"}, "idempotent": False}, {}, True),
        ({}, {"kept": {}, "undo": "own"}, True),
        ({}, {"kept": {}, "undo": "own", "undo_idempotent": False}, False),
        ({"idempotent": True}, {"kept": {}, "undo": "own", "undo_idempotent": False}, True),
        ({"idempotent": False}, {"kept": {}, "undo": "own"}, True),
    ],
)
def test_an_undo_is_repeatable_unless_the_plan_or_the_tool_says_that_it_is_not(
    step: dict[str, Any], tool: dict[str, Any], is_repeatable: bool
) -> None:
    stage = Stage(BAD, puppet("x.do", **tool))

    async def scene() -> list[Any]:
        run = await stage.play(saga({"id": "a", "tool": "x.do", **step}))
        return await stage.events(run.id)

    [started] = [event for event in in_virtual_time(scene) if isinstance(event, UndoStarted)]
    assert started.idempotent is is_repeatable


def test_a_reversible_tool_that_undoes_another_step_is_repeated_with_what_it_captured_first() -> None:
    tool = slow_undo(effect=Effect.REVERSIBLE)
    looks = count(1)

    async def capture(call: Any) -> Any:
        return {"look": next(looks)}

    tool.capture = capture  # type: ignore[method-assign]
    run = in_virtual_time(lambda: killed_in_undo(Stage(BAD, tool), saga(undone_slowly())))
    assert run.status is RunStatus.COMPENSATED
    assert [call.capture for call in tool.calls] == [{"look": 1}, {"look": 1}]


def test_a_steps_own_capture_is_not_given_to_another_tool_that_undoes_it() -> None:
    stage = Stage(BAD, puppet("x.twice", kept={"before": 1}))
    step = {"id": "a", "tool": "x.twice", "undo": {"tool": "x.twice", "args": {"back": True}}}
    run = in_virtual_time(lambda: stage.play(saga(step)))
    assert run.status is RunStatus.COMPENSATED
    assert [call.capture for call in stage.box.tools["x.twice"].calls] == [{"before": 1}, None]


def test_an_undo_whose_tool_can_not_look_first_fails_and_looks_again_when_it_is_retried() -> None:
    tool = puppet("x.rev", effect=Effect.REVERSIBLE, kept={"before": 1})
    looks = iter([always(Category.PERMISSION), None])

    async def capture(call: Any) -> Any:
        if deed := next(looks):
            await deed(call)
        return {"before": 2}

    tool.capture = capture  # type: ignore[method-assign]
    stage = Stage(BAD, tool)

    async def scene() -> tuple[Run, Run]:
        broken = await stage.play(saga({"id": "a", "tool": "x.do", "undo": {"tool": "x.rev"}}))
        await stage.control.act(broken.id, Action.RETRY, step="a", actor=ADA, reason="unlocked")
        return broken, await stage.worker.settled(broken.id)

    broken, run = in_virtual_time(scene)
    assert (broken.status, broken.step("a").category) == (RunStatus.COMPENSATION_FAILED, Category.PERMISSION)
    assert run.status is RunStatus.COMPENSATED
    assert [call.capture for call in tool.calls] == [{"before": 2}]


# --- opted out --------------------------------------------------------------------------------------


def test_a_lost_undo_that_opted_out_is_uncertain_and_asks_while_the_others_go_on() -> None:
    stage = Stage(BAD, slow_undo())
    steps = [
        {"id": "first", "tool": "x.do", "undo": {"tool": "x.undo"}},
        {**undone_slowly("a", idempotent=False), "after": ["first"]},
        {"id": "aside", "tool": "x.do", "undo": {"tool": "x.undo"}, "after": []},
        {"id": "bad", "tool": "x.bad", "after": ["a", "aside"]},
    ]
    definition = plan(*steps, on_failure="compensate")

    async def scene() -> tuple[Run, list[Any]]:
        run = await killed_in_undo(stage, definition)
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert UndoBecameUncertain(step="a", attempt=1) in events
    assert len(keys_called(stage)) == 1
    assert run.status is RunStatus.COMPENSATING
    assert run.step("a").status is StepStatus.UNCERTAIN
    assert run.step("aside").status is StepStatus.COMPENSATED
    assert run.step("first").status is StepStatus.COMPLETED, "it must not be undone before what was built on it"
    seen = status_of(run, definition, now=0)
    assert [(one.kind, one.step) for one in seen.waiting_for] == [("decision", "a")]
    assert seen.failure is not None
    assert (seen.failure.step, seen.failure.category, seen.failure.tool) == ("a", None, "x.slow-undo")
    assert "whether it is undone is unknown; not undone because of that: first" in seen.failure.message
    assert [one.action for one in seen.failure.options] == ["retry", "skip", "record"]


async def _retried(stage: Stage, run: str) -> None:
    await stage.control.act(run, Action.RETRY, step="a", actor=ADA, reason="it is still there")


async def _skipped(stage: Stage, run: str) -> None:
    await stage.control.act(run, Action.SKIP, step="a", actor=ADA, reason="it may stay")


async def _by_hand(stage: Stage, run: str) -> None:
    how = How.RECORDED
    await stage.control.record_compensation(run, "a", how=how, description="it is gone", actor=ADA, details={})


@pytest.mark.parametrize(
    ("decision", "status", "how", "left", "calls"),
    [
        (_retried, StepStatus.COMPENSATED, "executed", (), 2),
        (_skipped, StepStatus.SKIPPED, "", ("a",), 1),
        (_by_hand, StepStatus.COMPENSATED, "recorded", (), 1),
    ],
)
def test_each_decision_on_an_uncertain_undo_lets_the_compensation_go_on(
    decision: Any, status: StepStatus, how: str, left: tuple[str, ...], calls: int
) -> None:
    stage = Stage(BAD, slow_undo())
    first = {"id": "first", "tool": "x.do", "undo": {"tool": "x.undo"}}

    async def scene() -> tuple[Run, list[Any]]:
        waiting = await killed_in_undo(stage, saga(first, undone_slowly(idempotent=False)))
        await decision(stage, waiting.id)
        run = await stage.worker.settled(waiting.id)
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert events[-1] == RunCompensated(not_compensated=left)
    assert (run.step("a").status, run.step("a").compensation) == (status, how)
    assert not run.step("a").undo_uncertain
    assert run.step("first").status is StepStatus.COMPENSATED
    assert keys_called(stage) == [f"{run.id}:a:undo"] * calls


def test_a_retried_uncertain_undo_that_is_lost_again_asks_again() -> None:
    stage = Stage(BAD, slow_undo())

    async def scene() -> tuple[Run, list[Any]]:
        waiting = await killed_in_undo(stage, saga(undone_slowly(idempotent=False)))
        await _retried(stage, waiting.id)
        await asyncio.sleep(SLOW_S / 2)
        await stage.die()
        await stage.open("w-last")
        run = await stage.worker.settled(waiting.id)
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert run.step("a").undo_uncertain
    assert events[-1] == UndoBecameUncertain(step="a", attempt=2)
    assert StepRetried(step="a", reason="it is still there") in events


@pytest.mark.parametrize("action", [Action.ACCEPT, Action.COMPENSATE, Action.CANCEL])
def test_what_does_not_answer_whether_it_is_undone_is_refused(action: Action) -> None:
    stage = Stage(BAD, slow_undo())

    async def scene() -> tuple[Run, Run, Conflict]:
        waiting = await killed_in_undo(stage, saga(undone_slowly(idempotent=False)))
        step = "a" if action is Action.ACCEPT else ""
        with pytest.raises(Conflict) as refused:
            await stage.control.act(waiting.id, action, step=step, actor=ADA, reason="why not")
        return waiting, await stage.worker.settled(waiting.id), refused.value

    waiting, run, refused = in_virtual_time(scene)
    assert run.n == waiting.n
    assert "retry a, skip a" in refused.hint


# --- what is left, and undos of other kinds ---------------------------------------------------------


def test_a_repeated_undo_that_fails_says_that_the_lost_one_may_have_worked() -> None:
    calls: list[Any] = []

    async def once(call: Any) -> Any:
        calls.append(call)
        await asyncio.sleep(SLOW_S)
        await always(Category.NOT_FOUND)(call)

    stage = Stage(BAD, puppet("x.slow-undo", once))
    first = {"id": "first", "tool": "x.do", "undo": {"tool": "x.undo"}}
    definition = saga(first, undone_slowly())

    async def scene() -> tuple[Run, list[Any]]:
        run = await killed_in_undo(stage, definition)
        return run, await stage.events(run.id)

    run, events = in_virtual_time(scene)
    assert events[-1] == RunCompensationFailed(steps=("a",), not_compensated=("first",))
    failure = status_of(run, definition, now=0).failure
    assert failure is not None
    assert "an attempt before was interrupted and may have undone it" in failure.message
    assert failure.message.endswith("not undone because of that: first")


@pytest.mark.parametrize(("is_idempotent", "status"), [(True, "compensated"), (False, "uncertain")])
def test_an_undo_by_a_workflow_continues_after_a_crash_and_its_steps_follow_their_own_rules(
    is_idempotent: bool, status: str
) -> None:
    stage = Stage(BAD, slow_undo())
    inner = {"id": "gone", "tool": "x.slow-undo", "idempotent": is_idempotent}
    pinned = {"clean@1.0.0": {"id": "clean", "version": "1.0.0", "steps": [inner, {"id": "told", "tool": "x.undo"}]}}
    step = {"id": "a", "tool": "x.do", "undo": {"workflow": "clean@1.0.0"}}
    run = in_virtual_time(lambda: killed_in_undo(stage, saga(step, pinned=pinned)))
    found = run.step("a").status if is_idempotent else run.step("a!undo.gone").status
    assert found.value == status
    assert len(keys_called(stage)) == (2 if is_idempotent else 1)


def test_an_undo_by_an_agent_is_still_with_the_agent_after_a_crash() -> None:
    stage = Stage(BAD, slow_undo())
    steps = [{"id": "a", "prompt": "write it", "undo": {"prompt": "remove it"}}]

    async def scene() -> tuple[Run, Run]:
        run = await stage.play(saga(*steps))
        await stage.worker.dispatch.grant(run.id, HandOutStep(step="a"), actor="agent:claude")
        await stage.worker.dispatch.grant(run.id, CompleteStep(step="a", output=1), actor="agent:claude")
        await stage.worker.settled(run.id)
        await stage.die()
        await stage.open("w-two")
        waiting = await stage.worker.settled(run.id)
        how = How.BY_AGENT
        await stage.control.record_compensation(run.id, "a", how=how, description="gone", actor=ADA, details={})
        return waiting, await stage.worker.settled(run.id)

    waiting, run = in_virtual_time(scene)
    assert (waiting.status, waiting.step("a").status) == (RunStatus.COMPENSATING, StepStatus.COMPENSATING)
    assert run.status is RunStatus.COMPENSATED


# --- the decision, and what readers are shown -------------------------------------------------------


def uncertain() -> Run:
    lost: list[Command] = [StartCompensation(reason="bad"), StartUndo(step="tag"), LoseUndo(step="tag")]
    return after(fresh(), [StartAttempt(step="tag"), CompleteStep(step="tag"), *lost])


def test_an_uncertain_undo_is_not_started_again_before_someone_has_decided() -> None:
    with pytest.raises(Conflict, match="someone must decide") as refused:
        decide(uncertain(), StartUndo(step="tag"), CHAIN)
    assert refused.value.hint == "retry it, skip it, or record that it is undone"


def test_a_compensation_does_not_end_while_an_undo_is_uncertain() -> None:
    with pytest.raises(Conflict, match="still has to undo tag"):
        decide(uncertain(), FinishCompensation(), CHAIN)


def test_agents_are_shown_an_uncertain_undo_as_uncertain_with_three_ready_calls() -> None:
    data = status_data(status_of(uncertain(), CHAIN, now=0))
    calls = [one["next"] for one in data["failure"]["options"]]
    assert [one["tool"] for one in calls] == ["control", "control", "record_compensation"]
    assert calls[2]["arguments"] == {"run": data["run"], "step": "tag", "description": "..."}
    words = status_words(data)
    assert "uncertain: tag by git.untag: its undo was interrupted, and whether it is undone is unknown" in words
    assert "failed:" not in words
