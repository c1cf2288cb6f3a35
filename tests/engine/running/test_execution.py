"""Runs are executed: in order, in parallel, through loops and inlined workflows, with values handed on."""

from __future__ import annotations

import asyncio
from typing import Any

from engine.stage import Stage, plan, puppet, taking
from handrail.domain.definition.model import Category, Effect
from handrail.domain.journal.event import AttemptStarted, RunCompleted, StepSkipped
from handrail.domain.run.state import Run
from handrail.domain.run.status import RunStatus, StepStatus
from virtual_time import in_virtual_time


def outcome(stage: Stage, *steps: dict[str, Any], inputs: dict[str, Any] | None = None, **keys: Any) -> Run:
    return in_virtual_time(lambda: stage.play(plan(*steps, **keys), inputs))


def test_steps_run_one_after_the_other_and_hand_on_typed_values() -> None:
    run = outcome(
        Stage(),
        {"id": "a", "tool": "value.set", "args": {"value": {"n": 41, "list": [1, 2]}}},
        {"id": "b", "tool": "value.set", "args": {"value": "{{ steps.a.output.n }}"}},
        {"id": "c", "tool": "value.set", "args": {"value": "{{ inputs.name }}: {{ steps.b.output }}"}},
        inputs={"name": "answer"},
        outputs={"text": "steps.c.output", "list": "steps.a.output.list"},
    )
    assert run.status is RunStatus.COMPLETED
    assert run.outputs == {"text": "answer: 41", "list": [1, 2]}


def test_a_condition_that_does_not_hold_skips_its_step_and_says_why() -> None:
    stage = Stage()
    run = outcome(
        stage,
        {"id": "a", "tool": "x.do", "when": "inputs.go"},
        {"id": "b", "tool": "x.do"},
        inputs={"go": False},
    )
    assert run.status is RunStatus.COMPLETED
    assert run.step("a").status is StepStatus.SKIPPED
    assert "inputs.go" in run.step("a").message
    assert [call.step for call in stage.box.tools["x.do"].calls] == ["b"]


def test_ready_steps_start_by_priority_then_critical_path_then_as_written() -> None:
    stage = Stage()
    outcome(
        stage,
        {"id": "last", "tool": "x.do", "after": []},
        {"id": "urgent", "tool": "x.do", "after": [], "priority": 5},
        {"id": "long", "tool": "x.do", "after": []},
        {"id": "behind", "tool": "x.do", "after": ["long"]},
        max_parallel=1,
    )
    assert [call.step for call in stage.box.tools["x.do"].calls] == ["urgent", "long", "last", "behind"]


def test_never_more_steps_at_once_than_the_run_allows_and_as_many_as_that() -> None:
    going = most = 0

    async def counted(call: Any) -> Any:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await asyncio.sleep(1)
        going -= 1

    stage = Stage(puppet("x.slow", counted))
    steps = [{"id": f"s{n}", "tool": "x.slow", "after": []} for n in range(10)]
    run = outcome(stage, *steps, max_parallel=3)
    assert run.status is RunStatus.COMPLETED
    assert most == 3
    assert run.ended is not None
    assert 4_000 <= run.ended - run.started < 4_500


def test_a_tools_own_limit_holds_over_all_runs() -> None:
    going = most = 0

    async def counted(call: Any) -> Any:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await asyncio.sleep(1)
        going -= 1

    stage = Stage(puppet("x.slow", counted, concurrency=2))
    wide = plan(*({"id": f"s{n}", "tool": "x.slow", "after": []} for n in range(4)), max_parallel=4)

    async def scene() -> list[Run]:
        await stage.open()
        runs = [await stage.start(wide) for _ in range(3)]
        return [await stage.worker.settled(run.id) for run in runs]

    assert {run.status for run in in_virtual_time(scene)} == {RunStatus.COMPLETED}
    assert most == 2


def test_a_loop_over_a_list_runs_its_rounds_side_by_side_as_far_as_it_says() -> None:
    stage = Stage(puppet("x.slow", taking(1)))
    run = outcome(
        stage,
        {
            "id": "build",
            "each": "inputs.targets",
            "as": "target",
            "parallel": 2,
            "steps": [
                {"id": "make", "tool": "x.slow", "args": {"of": "{{ target }}", "number": "{{ index }}"}},
                {"id": "test", "tool": "value.set", "args": {"value": "{{ steps.build.make.output.did }}"}},
            ],
        },
        {"id": "after", "tool": "value.set", "args": {"value": "{{ len(steps.build.output) }}"}},
        inputs={"targets": ["linux", "mac", "windows"]},
        outputs={"second": "steps.build.output[1].test"},
    )
    assert run.status is RunStatus.COMPLETED
    assert run.outputs == {"second": "build[1].make"}
    assert run.step("after").output == 3
    assert [dict(call.args) for call in stage.box.tools["x.slow"].calls] == [
        {"of": "linux", "number": 0},
        {"of": "mac", "number": 1},
        {"of": "windows", "number": 2},
    ]
    assert run.ended is not None
    assert 2_000 <= run.ended - run.started < 2_500


def test_a_loop_over_nothing_is_done_at_once() -> None:
    body = [{"id": "make", "tool": "x.do"}]
    run = outcome(Stage(), {"id": "build", "each": "inputs.t", "steps": body}, inputs={"t": []})
    assert run.status is RunStatus.COMPLETED


def test_more_items_than_the_bound_is_a_failure_that_says_so() -> None:
    body = [{"id": "make", "tool": "x.do"}]
    run = outcome(
        Stage(),
        {"id": "build", "each": "inputs.t", "max": 2, "steps": body},
        inputs={"t": [1, 2, 3]},
        on_failure="stop",
    )
    assert run.status is RunStatus.FAILED
    assert "3 items, more than its bound of 2" in run.step("build").message


def test_a_repeat_goes_on_until_its_condition_holds_and_waits_between_rounds() -> None:
    run = outcome(
        Stage(),
        {
            "id": "poll",
            "repeat": {"until": "steps.poll.probe.output >= 3", "max": 9, "every": "10s"},
            "steps": [{"id": "probe", "tool": "value.set", "args": {"value": "{{ index }}"}}],
        },
    )
    assert run.status is RunStatus.COMPLETED
    assert run.step("poll").round == 3
    assert run.ended is not None
    assert 30_000 <= run.ended - run.started < 30_500


def test_a_repeat_that_passes_its_bound_has_failed() -> None:
    run = outcome(
        Stage(),
        {"id": "poll", "repeat": {"until": "false", "max": 3}, "steps": [{"id": "probe", "tool": "x.do"}]},
        on_failure="stop",
    )
    assert run.status is RunStatus.FAILED
    assert "not done after 3 rounds" in run.step("poll").message


def test_a_repeat_runs_so_many_times_or_while_its_condition_holds() -> None:
    stage = Stage()
    run = outcome(
        stage,
        {"id": "twice", "repeat": {"times": 2}, "steps": [{"id": "one", "tool": "x.do"}]},
        {"id": "never", "repeat": {"while": "1 > 2"}, "steps": [{"id": "two", "tool": "x.do"}]},
    )
    assert run.status is RunStatus.COMPLETED
    assert [call.step for call in stage.box.tools["x.do"].calls] == ["twice[0].one", "twice[1].one"]


def test_loops_nest_and_inner_steps_see_outer_items() -> None:
    stage = Stage()
    run = outcome(
        stage,
        {
            "id": "os",
            "each": "inputs.systems",
            "as": "system",
            "steps": [
                {
                    "id": "arch",
                    "each": "system.archs",
                    "as": "arch",
                    "steps": [{"id": "make", "tool": "x.do", "args": {"of": "{{ system.name }}-{{ arch }}"}}],
                }
            ],
        },
        inputs={"systems": [{"name": "linux", "archs": ["x64", "arm"]}, {"name": "mac", "archs": ["arm"]}]},
    )
    assert run.status is RunStatus.COMPLETED
    assert [(call.step, call.args["of"]) for call in stage.box.tools["x.do"].calls] == [
        ("os[0].arch[0].make", "linux-x64"),
        ("os[0].arch[1].make", "linux-arm"),
        ("os[1].arch[0].make", "mac-arm"),
    ]


def test_an_inlined_workflow_has_its_own_names_and_hands_out_its_outputs() -> None:
    called = {
        "id": "greet",
        "version": "1.0.0",
        "inputs": {"who": {"type": "string"}, "mark": {"type": "string", "default": "!"}},
        "steps": [{"id": "say", "tool": "value.set", "args": {"value": "hello {{ inputs.who }}{{ inputs.mark }}"}}],
        "outputs": {"text": "steps.say.output"},
    }
    run = outcome(
        Stage(),
        {"id": "hi", "workflow": "greet@1.0.0", "with": {"who": "{{ inputs.name }}"}},
        inputs={"name": "Ada"},
        outputs={"said": "steps.hi.output.text"},
        pinned={"greet@1.0.0": called},
    )
    assert run.status is RunStatus.COMPLETED
    assert run.outputs == {"said": "hello Ada!"}
    assert run.step("hi.say").output == "hello Ada!"


def test_an_inlined_workflow_that_gets_wrong_inputs_fails_as_a_step() -> None:
    called = {"id": "greet", "inputs": {"who": {"type": "string"}}, "steps": [{"id": "say", "tool": "x.do"}]}
    run = outcome(
        Stage(),
        {"id": "hi", "workflow": "greet@1", "with": {"who": "{{ inputs.n }}"}},
        inputs={"n": 2},
        pinned={"greet@1": called},
        on_failure="stop",
    )
    assert run.status is RunStatus.FAILED
    assert "greet@1 can't start" in run.step("hi").message


def test_what_can_not_be_worked_out_fails_the_step_and_not_the_engine() -> None:
    stage = Stage()
    run = outcome(
        stage,
        {"id": "a", "tool": "value.set", "args": {"value": "text"}},
        {"id": "b", "tool": "x.do", "args": {"n": "{{ steps.a.output.missing }}"}, "on_failure": "continue"},
        {"id": "c", "tool": "x.do", "when": "steps.a.output > 3", "after": ["a"], "on_failure": "continue"},
    )
    assert run.status is RunStatus.FAILED
    assert {run.step("b").status, run.step("c").status} == {StepStatus.FAILED}
    assert not stage.box.tools["x.do"].calls


def test_outputs_that_can_not_be_worked_out_fail_the_run() -> None:
    run = outcome(Stage(), {"id": "a", "tool": "value.set", "args": {"value": [1]}}, outputs={"x": "steps.a.output[7]"})
    assert run.status is RunStatus.FAILED
    assert "outputs" in run.reason


def test_an_unknown_tool_fails_the_step_with_what_to_do() -> None:
    run = outcome(Stage(), {"id": "a", "tool": "no.such"}, on_failure="stop")
    assert run.status is RunStatus.FAILED
    assert "list them" in run.step("a").message


def test_bad_arguments_are_refused_before_the_call() -> None:
    stage = Stage()
    run = outcome(stage, {"id": "a", "tool": "x.do", "args": {"bad": 1}}, on_failure="stop")
    assert run.step("a").category is Category.INVALID_INPUT
    assert not stage.box.tools["x.do"].calls


def test_an_output_that_breaks_its_promise_fails_the_step() -> None:
    stage = Stage()
    run = outcome(stage, {"id": "a", "tool": "x.do", "output": {"type": "string"}}, on_failure="stop")
    assert run.status is RunStatus.FAILED
    assert "is not of type string" in run.step("a").message


def test_a_tool_that_wants_to_be_called_later_is_and_nothing_is_held_meanwhile() -> None:
    stage = Stage()

    async def scene() -> tuple[Run, list[str]]:
        run = await stage.play(plan({"id": "w", "tool": "wait.for"}))
        return run, await stage.kinds(run.id)

    run, kinds = in_virtual_time(scene)
    assert run.status is RunStatus.COMPLETED
    assert run.ended is not None
    assert 60_000 <= run.ended - run.started < 61_000
    assert "step_deferred w" in kinds


def test_a_step_without_effect_has_its_beginning_and_end_in_one_commit_and_one_with_effect_starts_first() -> None:
    appends: list[list[str]] = []

    async def scene() -> None:
        stage = Stage()
        await stage.open()
        inner = stage.store.append

        async def watched(records: Any, change: Any, *, lease: Any = None) -> None:
            appends.append([record.kind for record in records])
            await inner(records, change, lease=lease)

        stage.store.append = watched  # type: ignore[method-assign]
        await stage.play(plan({"id": "a", "tool": "value.set", "args": {"value": 1}}, {"id": "b", "tool": "x.do"}))

    in_virtual_time(scene)
    assert appends == [
        ["run_started"],
        ["attempt_started", "step_completed"],
        ["attempt_started"],
        ["step_completed"],
        ["run_completed"],
    ]


def test_a_long_call_without_effect_is_seen_while_it_runs() -> None:
    stage = Stage(puppet("x.read", taking(3), effect=Effect.NONE))

    async def scene() -> tuple[StepStatus, Run]:
        await stage.open()
        run = await stage.start(plan({"id": "a", "tool": "x.read"}))
        await asyncio.sleep(1)
        seen = (await stage.worker.dispatch.current(run.id)).step("a").status
        return seen, await stage.worker.settled(run.id)

    seen, run = in_virtual_time(scene)
    assert seen is StepStatus.RUNNING
    assert run.status is RunStatus.COMPLETED


def test_a_wide_and_long_run_does_everything_exactly_once() -> None:
    steps = [{"id": f"a{n}", "tool": "x.do", "after": [] if n < 50 else [f"a{n - 50}"]} for n in range(1_000)]
    stage = Stage()
    run = outcome(stage, *steps, max_parallel=20)
    assert run.status is RunStatus.COMPLETED
    calls = [call.key for call in stage.box.tools["x.do"].calls]
    assert len(calls) == len(set(calls)) == 1_000


def test_many_runs_compete_fairly_and_the_urgent_one_goes_first() -> None:
    stage = Stage(puppet("x.slow", taking(1)))
    ends: list[tuple[str, int]] = []

    async def scene() -> None:
        await stage.open(calls_max=2)
        wide = plan(*({"id": f"s{n}", "tool": "x.slow", "after": []} for n in range(10)), max_parallel=10)
        runs = [("plain", await stage.start(wide)), ("other", await stage.start(wide))]
        runs.append(("urgent", await stage.start(wide, priority=9)))
        for name, run in runs:
            after = await stage.worker.settled(run.id)
            ends.append((name, after.ended or 0))

    in_virtual_time(scene)
    ordered = [name for name, _ in sorted(ends, key=lambda end: end[1])]
    assert ordered[0] == "urgent"
    took = dict(ends)
    assert abs(took["plain"] - took["other"]) <= 2_000


def test_what_is_kept_for_an_undo_is_let_go_when_a_run_has_ended_permanently() -> None:
    stage = Stage()

    async def scene() -> Run:
        run = await stage.play(plan({"id": "a", "tool": "x.do"}))
        await asyncio.sleep(1)
        return run

    run = in_virtual_time(scene)
    assert stage.box.forgotten == [run.id]


def test_the_effect_that_a_tool_states_is_journaled_with_the_attempt() -> None:
    stage = Stage(puppet("x.kept", kept={"before": "absent"}, idempotent=True))

    async def scene() -> list[Any]:
        run = await stage.play(plan({"id": "a", "tool": "x.kept"}, {"id": "b", "tool": "x.do", "when": "1 == 2"}))
        return await stage.events(run.id)

    events = in_virtual_time(scene)
    started = next(event for event in events if isinstance(event, AttemptStarted))
    assert started.effect is not None
    assert (started.effect.value, started.idempotent, started.capture) == ("compensatable", True, {"before": "absent"})
    assert any(isinstance(event, StepSkipped) for event in events)
    assert isinstance(events[-1], RunCompleted)


def test_a_secret_that_was_never_kept_fails_the_step_instead_of_being_handed_on_as_its_mark() -> None:
    stage = Stage()
    run = outcome(
        stage,
        {"id": "a", "tool": "x.do", "args": {"headers": ["Bearer {{ inputs.token }}"]}},
        inputs={"token": "[redacted]"},
        on_failure="stop",
    )
    assert run.status is RunStatus.FAILED
    assert "secret" in run.step("a").message
    assert not stage.box.tools["x.do"].calls
