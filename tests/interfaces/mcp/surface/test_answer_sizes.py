"""Sizes: every answer has at most 20,000 characters, and still says what matters.

Agent.answer checks that limit; here are the calls that would break it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import Agent, Place, joined, read, write

STEPS = 1_000


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def many(count: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"id": f"step-{n:04}", "prompt": f"Do the thing number {n}. " * 5, "after": [], **more} for n in range(count)
    ]


async def test_a_workflow_of_a_thousand_steps(place: Place) -> None:
    place.workflow({"id": "big", "name": "Big", "steps": many(STEPS)})
    async with place.agent() as agent:
        overview = await agent.call("workflow_get", id="big")
        assert overview["id"] == "big"
        assert len(overview["steps"]) > 10
        await agent.call("workflow_get", id="big", detail="full")
        started = await agent.call("workflow_next", workflow="big")
        run = started["run"]
        assert started["step"]["id"] == "step-0000"
        assert started["progress"]["total"] == STEPS
        handed = await agent.call("workflow_next", run=run, step="step-0000", output=1)
        assert handed["accepted"]
        assert handed["step"]["prompt"].startswith("Do the thing number 1.")
        seen = await agent.call("status", run=run)
        assert (seen["run"], seen["progress"]) == (run, {"done": 1, "total": STEPS})
        full = await agent.call("status", run=run, detail="full")
        assert full["status"] == "waiting"
        assert full["steps"][0]["status"] == "completed"
        shown = await agent.call("execute_plan", workflow="big", dry_run=True)
        assert shown["status"] == "dry_run"
        await agent.call("save_plan", plan={"name": "Big", "steps": many(STEPS)})
        for address in ("", "/graph", "/journal"):
            await agent.client.read_resource(f"handrail://runs/{run}{address}")


async def test_a_list_that_was_cut_says_how_much_is_missing(place: Place) -> None:
    place.workflow({"id": "big", "name": "Big", "steps": many(STEPS)})
    async with place.agent() as agent:
        overview = await agent.call("workflow_get", id="big")
        shown = [step for step in overview["steps"] if isinstance(step, dict)]
        (rest,) = [step for step in overview["steps"] if isinstance(step, str)]
        assert rest == f"… {STEPS - len(shown)} more"


async def test_outputs_of_half_a_megabyte(place: Place) -> None:
    large = {"log": "line\n" * 30_000, "rows": [{"k": "v" * 50}] * 6_000}
    place.workflow(
        {
            "id": "w",
            "steps": [{"id": "a", "prompt": "A."}, {"id": "b", "prompt": "Use {{ steps.a.output.log }}."}],
            "outputs": {"all": "steps.a.output"},
        }
    )
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        handed = await agent.call(
            "workflow_next", run=run, step="a", output=large, vars={"v": large}, note="n" * 20_000
        )
        assert handed["accepted"]
        assert handed["step"]["id"] == "b"
        assert "more characters" in handed["step"]["prompt"]
        resumed = await agent.call("workflow_next", run=run)
        assert resumed["run"] == run
        ended = await agent.call("workflow_next", run=run, step="b", output=1)
        assert ended["status"] == "completed"
        assert (await agent.call("status", run=run, detail="full"))["receipt"]
        await agent.call("query_ledger", run=run)
        await agent.call("query_ledger")


async def test_a_goal_reason_decision_or_description_as_long_as_it_may_be(place: Place) -> None:
    place.workflow({"id": "w", "steps": [{"id": "a", "prompt": "A."}]})
    long = "word " * 3_999
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w", goal=long))["run"]
        for n in range(12):
            await agent.call("record_decision", run=run, decision=f"{n} {long}", reason=long, alternatives=[long] * 40)
        assert len((await agent.call("workflow_next", run=run))["recap"]["decisions"]) == 10
        await agent.call("record_action", run=run, description=long)
        await agent.call("workflow_next")
        await agent.call("status")
        await agent.call("query_ledger", run=run)


async def test_failures_with_endless_messages_and_prompts_keep_their_options(place: Place) -> None:
    place.workflow({"id": "w", "steps": [{"id": "a", "prompt": "Word. " * 3_300, "guidance": ["rule " * 300] * 40}]})
    async with place.agent() as agent:
        started = await agent.call("workflow_next", workflow="w")
        assert started["step"]["id"] == "a"
        failed = await agent.call("workflow_next", run=started["run"], step="a", outcome="failed", note="x" * 20_000)
        ways = failed["failure"]["options"]
        assert [way["action"] for way in ways] == ["retry", "skip", "cancel"]
        for way in ways:
            assert way["next"]["arguments"]["run"] == started["run"]
        assert "control" in await agent.said("status", run=started["run"])


async def test_a_step_id_as_long_as_it_may_be(place: Place) -> None:
    long = "s" + "-x" * 31
    steps = [{"id": f"{long[:50]}-{n}", "prompt": "P.", "after": []} for n in range(200)]
    place.workflow({"id": "w", "steps": steps})
    async with place.agent() as agent:
        started = await agent.call("workflow_next", workflow="w")
        assert started["step"]["id"] == steps[0]["id"]
        await agent.call("status", run=started["run"], detail="full")


async def test_hundreds_of_findings(place: Place) -> None:
    properties = {f"key{n}": {"type": "string"} for n in range(500)}
    schema = {"type": "object", "required": list(properties), "properties": properties}
    place.workflow({"id": "w", "steps": [{"id": "a", "prompt": "A.", "output": schema}]})
    bad = {"name": "P", "steps": [{"id": f"s{n}", "tol": "x" * 2_000} for n in range(500)]}
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        refused = await agent.call("workflow_next", run=run, step="a", output=dict.fromkeys(properties, 1))
        assert (refused["accepted"], refused["tries"]) == (False, 1)
        assert len(refused["findings"]) >= 5
        assert not (await agent.call("workflow_validate", definition=bad))["valid"]
        assert (await agent.refused("save_plan", "invalid", plan=bad))["findings"]
        assert (await agent.refused("execute_plan", "invalid", definition=bad))["findings"]


async def test_five_hundred_workflows(place: Place) -> None:
    for n in range(500):
        place.workflow({"id": f"workflow-{n:03}", "description": "Word " * 200, "steps": [{"id": "a", "prompt": "A."}]})
    async with place.agent() as agent:
        seen: list[str] = []
        asked: dict[str, Any] = {"limit": 100}
        while True:
            page = await agent.call("workflow_list", **asked)
            assert page["total"] == 500
            seen += [one["id"] for one in page["workflows"]]
            if "cursor" not in page:
                break
            asked["cursor"] = page["cursor"]
        assert seen == [f"workflow-{n:03}" for n in range(500)]
        refused = await agent.refused("workflow_get", "not_found", id="workflow-5000")
        assert refused["next"]["tool"] == "workflow_list"


async def test_many_open_runs(place: Place) -> None:
    place.workflow({"id": "w", "steps": [{"id": "a", "approve": "Go on? " * 100}]})
    async with place.agent() as agent:
        for n in range(60):
            await agent.call("execute_plan", workflow="w", idempotency_key=f"k{n}")
        for tool in ("status", "workflow_next"):
            listed = await agent.call(tool)
            assert listed["total"] == 60
            assert len(listed["runs"]) >= 5


async def test_five_thousand_events(place: Place) -> None:
    loop = {
        "id": "all",
        "each": "inputs.names",
        "max": 2_500,
        "steps": [{"id": "set", "tool": "value.set", "args": {"value": "{{ item }}"}}],
    }
    plan = {"name": "P", "inputs": {"names": {"type": "array"}}, "steps": [loop]}
    async with place.agent() as agent:
        names = [f"name {n}" for n in range(2_500)]
        run = (await agent.call("execute_plan", definition=plan, inputs={"names": names}, wait="25s"))["run"]
        await agent.until(run, "completed")
        assert place.events(run) >= 5_000
        page = await agent.call("query_ledger", run=run, limit=100, verify=True)
        assert page["verified"] == {"ok": True, "events": place.events(run)}
        assert page["cursor"]
        assert await _count(agent, run) == place.events(run)
        await agent.call("query_ledger", limit=100)


async def _count(agent: Agent, run: str) -> int:
    numbers: set[int] = set()
    cursor = ""
    while True:
        page = await agent.call("query_ledger", run=run, limit=100, cursor=cursor)
        numbers |= {event["n"] for event in page["events"]}
        if "cursor" not in page:
            return len(numbers)
        cursor = page["cursor"]


async def test_a_compensation_of_hundreds_of_steps(place: Place) -> None:
    steps = [write(f"w{n}", f"{n}.txt", after=[]) for n in range(150)]
    plan = {"name": "P", "max_parallel": 50, "steps": [*steps, read(after=[step["id"] for step in steps])]}
    async with place.agent() as agent:
        failed = await agent.call("execute_plan", definition=plan, wait="25s")
        (undo,) = [way for way in failed["failure"]["options"] if way["action"] == "compensate"]
        assert "and 140 more" in undo["means"]
        await agent.call("control", **undo["next"]["arguments"])
        ended = await agent.until(failed["run"], "compensated")
        assert ended["run"] == failed["run"]
        assert not list(place.project.glob("*.txt"))


async def test_an_endless_client_name_is_cut(place: Place) -> None:
    name = "très long " + "n" * 5_000
    async with place.serving() as server, joined(server, name=name) as agent:
        await agent.call("record_plan", plan={"name": "P", "steps": ["one"]})
        run = (await agent.call("record_execution_start", plan="p"))["run"]
        (event,) = (await agent.call("query_ledger", run=run))["events"]
        assert event["actor"].startswith("agent:tr-s-long-n")
        assert len(event["actor"]) <= 70
        assert json.dumps(event).isascii()
