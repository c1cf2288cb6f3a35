"""`save_plan` and `execute_plan`: what is saved, what is run, once, and what is only shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import anyio
import pytest

from interfaces.mcp.surface.agent import MODERN, Place, data_of, read, write

SLOW = {"name": "Slow", "steps": [{"id": f"s{n}", "tool": "wait.for", "args": {"duration": "80ms"}} for n in range(4)]}
LONG = {"name": "Long", "steps": [{"id": "s", "tool": "wait.for", "args": {"duration": "1h"}}]}
GREET = {
    "name": "Greet",
    "inputs": {"who": {"type": "string"}, "how": {"type": "string", "default": "hello"}},
    "steps": [write("w", "{{ inputs.who }}.txt", "{{ inputs.how }} {{ inputs.who }}")],
    "outputs": {"path": "steps.w.output.path"},
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_plan_is_saved_with_its_waves_and_a_hash(place: Place) -> None:
    plan = {"name": "Fan", "steps": [write("a"), write("b", "b.txt", after=[]), read("c", "a.txt", after=["a", "b"])]}
    async with place.agent() as agent:
        saved = await agent.call("save_plan", plan=plan)
        assert saved["waves"] == [["a", "b"], ["c"]]
        assert saved["hash"].startswith("sha256:")
        assert saved["findings"] == []
        changed = await agent.call("save_plan", plan={**plan, "description": "better"}, note="wording")
        assert (changed["plan"], changed["version"]) == (saved["plan"], 2)
        assert changed["hash"] != saved["hash"]


@pytest.mark.parametrize(
    ("plan", "part"),
    [
        ({"name": "P", "steps": [{"id": "a", "tool": "file.wrte", "args": {}}]}, "file.write"),
        ({"name": "P", "steps": []}, "steps"),
        ({"name": "P", "steps": [{"id": "a"}]}, "prompt"),
        ({"name": "P", "steps": [write("a", after=["b"]), write("b", after=["a"])]}, "a -> b"),
        ({"name": "P", "steps": [write("a", text="{{ inputs.nope }}")]}, "nope"),
        ({"name": "P", "stps": [write("a")]}, "steps"),
        ({}, "steps"),
    ],
)
async def test_a_plan_that_can_not_be_run_is_refused_with_findings(place: Place, plan: Any, part: str) -> None:
    async with place.agent() as agent:
        refused = await agent.refused("save_plan", "invalid", plan=plan)
        assert refused["findings"]
        assert all(finding.keys() >= {"rule", "severity", "where", "message"} for finding in refused["findings"])
        assert part in str(refused["findings"])
        assert place.events("plan%") == 0


async def test_a_plan_a_workflow_or_a_definition_is_run(place: Place) -> None:
    place.workflow({"id": "greet-all", **GREET})
    async with place.agent() as agent:
        await agent.call("save_plan", plan=GREET)
        for who, named in (
            ("ann", {"plan": "greet"}),
            ("bob", {"workflow": "greet-all"}),
            ("cat", {"definition": GREET}),
        ):
            ran = await agent.call("execute_plan", **named, inputs={"who": who}, wait="10s")
            assert (ran["status"], ran["outputs"]) == ("completed", {"path": f"{who}.txt"})
            assert (place.project / f"{who}.txt").read_text() == f"hello {who}"


@pytest.mark.parametrize(
    "named",
    [{}, {"plan": "a", "workflow": "b"}, {"plan": "a", "definition": GREET}, {"workflow": "a", "definition": GREET}],
)
async def test_exactly_one_thing_is_run(place: Place, named: dict[str, Any]) -> None:
    async with place.agent() as agent:
        refused = await agent.refused("execute_plan", "invalid", **named)
        assert "exactly one" in refused["hint"]


async def test_a_plan_that_was_not_saved_is_not_found(place: Place) -> None:
    async with place.agent() as agent:
        await agent.refused("execute_plan", "not_found", plan="nothing")
        found = await agent.refused("execute_plan", "not_found", workflow="nothing")
        assert found["next"]["tool"] == "workflow_list"


async def test_inputs_are_checked_before_anything_starts(place: Place) -> None:
    async with place.agent() as agent:
        for inputs in ({}, {"who": 7}, {"who": "ann", "extra": 1}):
            await agent.refused("execute_plan", "invalid", definition=GREET, inputs=inputs)
        assert place.events("run_%") == 0


async def test_a_workflow_whose_tool_is_not_here_is_refused_before_it_starts(place: Place) -> None:
    place.workflow({"id": "w", "steps": [{"id": "a", "tool": "jira.close", "args": {}}]})
    async with place.agent() as agent:
        refused = await agent.refused("execute_plan", "invalid", workflow="w")
        assert "jira.close" in str(refused)
        assert place.events("run_%") == 0


async def test_a_dry_run_shows_rendered_arguments_in_waves_and_does_nothing(place: Place) -> None:
    plan = {
        **GREET,
        "steps": [
            write("w", "{{ inputs.who }}.txt", "{{ inputs.how }}"),
            read("r", "{{ steps.w.output.path }}"),
            {"id": "p", "prompt": "Greet {{ inputs.who }}.", "after": ["w"]},
            {"id": "ok", "approve": "Let {{ inputs.who }} in?", "after": ["r", "p"], "when": "inputs.who != 'bob'"},
        ],
    }
    async with place.agent() as agent:
        shown = await agent.call("execute_plan", definition=plan, inputs={"who": "ann"}, dry_run=True)
        assert shown["status"] == "dry_run"
        assert "run" not in shown
        assert [[step["id"] for step in wave] for wave in shown["waves"]] == [["w"], ["r", "p"], ["ok"]]
        steps = {step["id"]: step for wave in shown["waves"] for step in wave}
        assert steps["w"]["args"] == {"path": "ann.txt", "text": "hello"}
        assert steps["w"]["effect"] == "reversible"
        assert steps["r"]["args"] == {"path": "{{ steps.w.output.path }}"}  # known only when it has run
        assert steps["p"]["prompt"] == "Greet ann."
        assert steps["ok"]["approve"] == "Let ann in?"
        assert steps["ok"]["when"] == "inputs.who != 'bob'"
        assert place.events("run_%") == 0
        assert not (place.project / "ann.txt").exists()


async def test_without_wait_the_answer_comes_at_once_and_the_run_continues(place: Place) -> None:
    async with place.agent() as agent:
        started = await agent.call("execute_plan", definition=SLOW)
        assert started["status"] == "running"
        await agent.until(started["run"], "completed")


async def test_progress_is_reported_while_a_call_waits(place: Place) -> None:
    for mode in ("legacy", MODERN):
        reported: list[tuple[float, float | None]] = []

        async def progress(done: float, total: float | None, _: str | None, reported: list[Any] = reported) -> None:
            reported.append((done, total))

        async with place.agent(mode=mode) as agent:
            arguments = {"definition": SLOW, "wait": "10s"}
            ended = data_of(await agent.answer("execute_plan", arguments, progress_callback=progress))
            assert ended["status"] == "completed"
            assert len(reported) >= 2
            assert [done for done, _ in reported] == sorted({done for done, _ in reported})
            assert {total for _, total in reported} == {4}


async def test_a_wait_ends_when_the_run_waits_for_a_person(place: Place) -> None:
    async with place.agent() as agent:
        asked = await agent.call(
            "execute_plan", definition={"name": "P", "steps": [{"id": "a", "approve": "Go?"}]}, wait="25s"
        )
        assert (asked["status"], asked["waiting_for"][0]["text"]) == ("waiting", "Go?")


async def test_a_wait_that_is_over_answers_while_the_run_continues(place: Place) -> None:
    async with place.agent() as agent:
        started = await agent.call("execute_plan", definition=LONG, wait="50ms")
        assert started["status"] == "running"


@pytest.mark.parametrize("wait", ["26s", "25001ms", "1h", "1d"])
async def test_a_wait_over_25_seconds_is_refused(place: Place, wait: str) -> None:
    async with place.agent() as agent:
        await agent.refused("execute_plan", "limited", definition=SLOW, wait=wait)
        assert place.events("run_%") == 0


@pytest.mark.parametrize("wait", ["", "5", "s", "-1s", "1.5s", "5 s", "\u0665s"])
async def test_a_wait_that_is_no_duration_is_refused(place: Place, wait: str) -> None:
    async with place.agent() as agent:
        await agent.refused("execute_plan", "invalid", definition=SLOW, wait=wait)


async def test_the_same_key_with_the_same_body_is_the_same_run(place: Place) -> None:
    async with place.agent() as agent:
        arguments = {"definition": GREET, "inputs": {"who": "ann"}, "idempotency_key": "k", "wait": "10s"}
        first = await agent.call("execute_plan", **arguments)
        assert "repeated" not in first
        second = await agent.call("execute_plan", **arguments)
        assert (second["run"], second["repeated"]) == (first["run"], True)
        assert place.kinds(first["run"]).count("step_completed") == 1
        assert "repeated: " in await agent.said("execute_plan", **arguments), "also for a client that shows only text"


async def test_a_start_that_needs_a_tool_that_is_off_says_so(place: Place) -> None:
    command = {"id": "p", "steps": [{"id": "a", "tool": "shell.run", "args": {"argv": ["ls"]}}]}
    async with place.agent() as agent:
        assert "minor steps[0].tool: shell.run is off here" in await agent.said("save_plan", plan=command)
        (warning,) = (await agent.call("execute_plan", plan="p"))["warnings"]
        assert warning.startswith("shell.run is off here")
        assert f"warning: {warning}" in await agent.said("execute_plan", plan="p")


async def test_the_same_key_with_another_body_is_a_conflict(place: Place) -> None:
    async with place.agent() as agent:
        first = await agent.call("execute_plan", definition=GREET, inputs={"who": "ann"}, idempotency_key="k")
        refused = await agent.refused(
            "execute_plan", "conflict", definition=GREET, inputs={"who": "bob"}, idempotency_key="k"
        )
        assert refused["code"] == -32003
        assert first["run"] in refused["message"]
        await agent.until(first["run"], "completed")
        assert not (place.project / "bob.txt").exists()


async def test_the_same_key_many_times_at_once_is_one_run(place: Place) -> None:
    async with place.agent() as agent:
        arguments = {"definition": GREET, "inputs": {"who": "ann"}, "idempotency_key": "k", "wait": "10s"}
        answers = await asyncio.gather(*(agent.call("execute_plan", **arguments) for _ in range(20)))
        assert len({answer["run"] for answer in answers}) == 1
        assert place.kinds(answers[0]["run"]).count("run_started") == 1


async def test_the_same_key_at_two_servers_at_once_is_one_run(place: Place) -> None:
    arguments = {"definition": GREET, "inputs": {"who": "ann"}, "idempotency_key": "k", "wait": "10s"}
    async with place.agent() as one, place.agent() as other:
        answers = await asyncio.gather(*(agent.call("execute_plan", **arguments) for agent in (one, other) * 5))
        assert len({answer["run"] for answer in answers}) == 1


async def test_a_key_of_one_answer_is_known_after_a_restart(place: Place) -> None:
    arguments = {"definition": GREET, "inputs": {"who": "ann"}, "idempotency_key": "k", "wait": "10s"}
    async with place.agent() as agent:
        first = await agent.call("execute_plan", **arguments)
    async with place.agent() as agent:
        second = await agent.call("execute_plan", **arguments)
        assert (second["run"], second["repeated"]) == (first["run"], True)


@pytest.mark.parametrize("mode", ["legacy", MODERN])
async def test_a_waiting_call_that_is_cancelled_leaves_the_run_alone(place: Place, mode: str) -> None:
    async with place.agent(mode=mode) as agent:
        arguments = {"definition": SLOW, "wait": "25s", "idempotency_key": "k"}
        started = anyio.Event()

        async def progress(*_: Any) -> None:
            started.set()

        async with anyio.create_task_group() as group:

            async def ask() -> None:
                await agent.answer("execute_plan", arguments, progress_callback=progress)

            group.start_soon(ask)
            with anyio.fail_after(10):
                await started.wait()
            group.cancel_scope.cancel()
        run = (await agent.call("execute_plan", **{**arguments, "wait": "0s"}))["run"]
        ended = await agent.until(run, "completed")
        assert ended["progress"] == {"done": 4, "total": 4}
        assert place.kinds(run).count("step_completed") == 4


async def test_a_run_continues_on_another_server_when_its_own_is_gone(place: Place) -> None:
    plan = {"name": "P", "steps": [{"id": "s", "tool": "wait.for", "args": {"duration": "300ms"}}, write()]}
    async with place.agent() as agent:
        run = (await agent.call("execute_plan", definition=plan))["run"]
    async with place.agent() as agent:
        await agent.until(run, "completed")
        assert (place.project / "a.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("step", "where"),
    [
        ({"id": "r", "tool": "file.read", "args": {"paht": "x"}}, "steps[1].args.paht"),
        ({"id": "r", "tool": "file.read", "args": {}}, "steps[1].tool"),
        ({"id": "r", "tool": "file.read", "args": {"path": 7}}, "steps[1].args.path"),
        ({"id": "r", "tool": "file.read", "args": {"path": "{{ steps.w.output.pth }}"}}, "steps[1].args.path"),
        ({"id": "r", "tool": "file.raed", "args": {"path": "x"}}, "steps[1].tool"),
    ],
)
async def test_arguments_and_output_fields_are_checked_by_the_schemas_of_tools_before_anything_runs(
    place: Place, step: dict[str, Any], where: str
) -> None:
    plan = {"name": "P", "steps": [write(), step]}
    async with place.agent() as agent:
        checked = await agent.call("workflow_validate", definition=plan)
        saved = await agent.refused("save_plan", "invalid", plan=plan)
        run = await agent.refused("execute_plan", "invalid", definition=plan)
        assert checked["valid"] is False
        for findings in (checked["findings"], saved["findings"], run["findings"]):
            assert where in [one["where"] for one in findings], findings
            assert all(one["fix"] for one in findings if one["where"] == where)
        assert place.events("run_%") == 0
