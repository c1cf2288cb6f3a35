"""Runs in a list: what each is called, why it is where it is, and what waits in it, without a second look."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.stage import ADA, Puppet, Stage, always, plan, puppet
from handrail.domain.definition.model import Category
from handrail.domain.history.headline import label_of
from handrail.domain.run.legal_controls import Action
from handrail.domain.run.state import Run
from handrail.domain.run.status import StepStatus
from handrail.engine.reading.run_lines import RunLine, WaitingLine
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.tool import ToolCall, ToolFailed
from virtual_time import in_virtual_time

EACH = {"id": "all", "each": "inputs.items", "as": "item", "parallel": 3, "steps": [{"id": "one", "tool": "x.bad"}]}


def line_of(
    what: Any,
    then: Callable[[Stage, Run], Awaitable[Any]] | None = None,
    inputs: Any = None,
    tool: Puppet | None = None,
) -> tuple[RunLine, tuple[WaitingLine, ...]]:
    async def scene() -> tuple[RunLine, tuple[WaitingLine, ...]]:
        stage = Stage(tool or puppet("x.bad", always(Category.PERMISSION)))
        await stage.open()
        run = await stage.start(what, inputs or {})
        await stage.worker.settled(run.id)
        if then is not None:
            await then(stage, run)
            await stage.worker.settled(run.id)
        row = await stage.store.run(run.id)
        assert row is not None
        return await RunReader(stage.store, stage.clock).line(row)

    return in_virtual_time(scene)


def acting(action: Action, reason: str, step: str = "") -> Callable[[Stage, Run], Awaitable[Any]]:
    async def act(stage: Stage, run: Run) -> None:
        await stage.control.act(run.id, action, actor=ADA, reason=reason, step=step)

    return act


BROKEN = plan({"id": "a", "tool": "x.do", "undo": {"tool": "x.do"}}, {"id": "b", "title": "Ship it", "tool": "x.bad"})


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (None, "Ship it failed: it is permission (permission)"),
        (acting(Action.CANCEL, "superseded"), "ada: superseded"),
        (acting(Action.SKIP, "not today", "b"), "Ship it skipped by ada"),
        (
            acting(Action.COMPENSATE, "enough"),
            "Ship it failed: it is permission (permission); 1 step undone, nothing stays",
        ),
    ],
)
def test_a_line_says_why_a_run_is_where_it_is(then: Any, why: str) -> None:
    line, _ = line_of(BROKEN, then)
    assert (line.why, line.name, line.starter) == (why, "a-plan", ADA)


def test_steps_that_failed_for_one_reason_wait_as_one() -> None:
    line, waiting = line_of(plan(EACH, inputs={"items": {"type": "array"}}), inputs={"items": ["red", "blue", "green"]})
    (one,) = waiting
    assert (one.step, one.title, one.alike, one.why) == ("all[0].one", "One red", 3, "it is permission (permission)")
    assert (line.failed, line.why) == (3, "One red failed: it is permission (permission); 2 more steps failed")


def test_a_loop_is_not_a_step_of_its_own_but_what_is_in_it_is() -> None:
    looping = plan(EACH, {"id": "rest", "tool": "x.do"}, inputs={"items": {"type": "array"}})
    line, _ = line_of(looping, inputs={"items": ["red", "blue", "green"]})
    assert (line.done, line.total, line.failed) == (0, 4, 3)

    async def is_fine(call: ToolCall) -> Any:
        return {}

    line, _ = line_of(looping, inputs={"items": ["red", "blue", "green"]}, tool=puppet("x.bad", is_fine))
    assert (line.status, line.done) == ("completed", 4)


def test_rounds_of_one_loop_that_failed_alike_wait_as_one_whatever_each_says() -> None:
    async def not_found(call: ToolCall) -> Any:
        raise ToolFailed(Category.NOT_FOUND, f"{call.args['name']} is not there")

    loop = {**EACH, "steps": [{"id": "one", "tool": "x.bad", "args": {"name": "{{ item }}"}}]}
    what = plan(loop, {"id": "other", "tool": "x.bad", "args": {"name": "it"}, "after": []}, inputs={"items": {}})
    _, waiting = line_of(what, inputs={"items": ["red", "blue", "green"]}, tool=puppet("x.bad", not_found))
    assert {(one.step, one.alike, one.causes) for one in waiting} == {("all[0].one", 3, 3), ("other", 1, 1)}


def test_a_step_whose_undo_failed_is_no_step_that_failed() -> None:
    what = plan({"id": "a", "title": "Send", "tool": "x.do", "undo": {"tool": "x.bad"}}, {"id": "b", "tool": "x.bad"})
    _, waiting = line_of(what)
    assert [(one.step, one.status) for one in waiting] == [("b", StepStatus.FAILED)]
    _, (one,) = line_of(what, acting(Action.COMPENSATE, "enough"))
    assert (one.step, one.title, one.status) == ("a", "Send", StepStatus.COMPENSATION_FAILED)


def test_what_is_asked_says_how_many_steps_can_not_be_undone() -> None:
    what = plan({"id": "go", "approve": "Go?"}, {"id": "b", "tool": "x.do", "effect": "irreversible", "after": ["go"]})
    line, (one,) = line_of(what)
    assert (line.why, one.text, one.irreversible) == ("Go?", "Go?", 1)


def test_a_run_is_named_by_the_input_that_had_to_be_given() -> None:
    declared = {"channel": {"default": "stable"}, "note": {}, "version": {}}
    assert label_of({"channel": "beta", "note": "a\nb", "version": "2.4.0"}, declared) == "2.4.0"
    assert label_of({"channel": "beta", "version": ["2.4.0"]}, declared) == "beta"
    assert label_of({"channel": "stable"}, declared) == ""
    assert label_of({"version": "x" * 41, "note": "a\x1b[2J"}, declared) == ""
