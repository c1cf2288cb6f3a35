"""Ways around a gate that a hired breaker found: each is closed, and stays closed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.opening import open_assembly
from handrail.domain.run.legal_controls import Action
from interfaces.mcp.surface.agent import Agent, Place, data_of, write

ANN = "person:ann"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def started(agent: Agent, *steps: dict[str, Any]) -> str:
    definition = {"name": "Gated", "steps": list(steps)}
    return str((await agent.call("execute_plan", definition=definition, wait="10s"))["run"])


async def answered(place: Place, run: str, action: Action, step: str = "") -> None:
    async with open_assembly(place.settings(), picks_up=True) as parts:
        await parts.control.act(run, action, actor=ANN, reason="seen", step=step)


async def test_an_approval_can_not_be_recorded_as_undone_to_change_what_was_approved(place: Place) -> None:
    async with place.agent() as agent:
        prompts = [{"id": "q1", "prompt": "x"}, {"id": "q2", "prompt": "x"}]
        changed = write("w", text="{{ vars.t }}")
        run = await started(
            agent, {"id": "s", "prompt": "x"}, {"id": "go", "approve": "Write {{ vars.t }}?"}, *prompts, changed
        )
        await agent.call("workflow_next", run=run, step="s", output={}, vars={"t": "good"})
        await agent.until(run, "waiting")
        await answered(place, run, Action.APPROVE, "go")
        await agent.call("workflow_next", run=run, step="q1", output={})
        await agent.refused("record_compensation", "conflict", run=run, step="go", description="x")
        await agent.answer("workflow_next", {"run": run, "step": "q2", "output": {}, "vars": {"t": "EVIL"}})
        seen = await agent.until(run, "waiting", "completed")
        assert [one["kind"] for one in seen["waiting_for"]] == ["approval"]
        assert not (place.project / "a.txt").exists()


async def test_in_a_recorded_run_an_approval_that_was_given_can_not_be_recorded_as_undone(place: Place) -> None:
    async with place.agent() as agent:
        steps = [{"id": "go", "approve": "Go?"}, {"id": "z", "prompt": "x"}]
        plan = (await agent.call("record_plan", plan={"name": "R", "steps": steps}))["plan"]
        run = (await agent.call("record_execution_start", plan=plan))["run"]
        await answered(place, run, Action.APPROVE, "go")
        refused = await agent.refused("record_compensation", "conflict", run=run, step="go", description="x")
        assert "is an approval" in refused["message"]


async def test_a_completed_step_of_an_open_run_can_not_be_recorded_as_undone(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, write("w"), {"id": "p", "prompt": "x"})
        await agent.refused("record_compensation", "conflict", run=run, step="w", description="x")


async def test_in_a_recorded_run_a_loop_with_an_approval_is_not_reported_as_done(place: Place) -> None:
    async with place.agent() as agent:
        loop = {"id": "l", "each": "[1]", "steps": [{"id": "go", "approve": "Go?"}]}
        plan = (await agent.call("record_plan", plan={"name": "R", "steps": [loop, {"id": "z", "prompt": "x"}]}))[
            "plan"
        ]
        run = (await agent.call("record_execution_start", plan=plan))["run"]
        for outcome in ("started", "done", "failed", "skipped"):
            answer = data_of(
                await agent.answer("record_action", {"run": run, "step": "l", "description": "x", "outcome": outcome})
            )
            assert answer["name"] in {"forbidden", "conflict"}, (outcome, answer)


async def test_a_fork_forgets_no_exception_and_makes_no_claim_a_proof(place: Place) -> None:
    async with place.agent() as agent:
        loop = {"id": "l", "each": "[1]", "steps": [{"id": "p", "prompt": "x"}]}
        last = {"id": "z", "prompt": "x", "after": ["l", "q"]}
        run = await started(agent, loop, {"id": "q", "prompt": "x", "after": []}, last)
        await agent.call("workflow_next", run=run, step="q", output={})
        after = await agent.call("workflow_next", run=run, step="l[0].p", outcome="skipped", note="no")
        assert after["step"]["id"] == "z", "the loop is over: a fork could take it over"
        fork = (await agent.call("control", run=run, action="fork", step="z", reason="again"))["run"]
        seen = await agent.call("status", run=fork, detail="full")
        steps = {one["id"]: one for one in seen["steps"]}
        assert steps.get("l", {}).get("status") != "completed"  # what was left out inside has to be done there
        assert (steps["q"]["status"], steps["q"]["proof"]) == ("completed", "claimed")


@pytest.mark.parametrize("action", [Action.APPROVE, Action.SKIP])
async def test_a_fork_carries_no_approval_and_no_override(place: Place, action: Action) -> None:
    async with place.agent() as agent:
        inside = {"id": "l", "each": "[1]", "steps": [{"id": "go", "approve": "Go?"}]}
        run = await started(agent, inside, {"id": "q", "prompt": "x"}, write("w"))
        await answered(place, run, action, "l[0].go")
        assert (await agent.call("workflow_next", run=run))["step"]["id"] == "q"
        fork = (await agent.call("control", run=run, action="fork", step="q", reason="again"))["run"]
        seen = await agent.until(fork, "waiting")
        assert [(one["kind"], one["step"]) for one in seen["waiting_for"]] == [("approval", "l[0].go")]


async def test_a_fork_does_not_go_on_where_a_person_paused(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, {"id": "a", "prompt": "x"}, {"id": "z", "prompt": "x"})
        await answered(place, run, Action.PAUSE)
        for action in ("resume", "fork"):
            refused = await agent.refused("control", "forbidden", run=run, action=action, step="z", reason="go on")
            assert "a person paused" in refused["message"]


async def test_a_person_takes_over_the_pause_of_an_agent(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, {"id": "a", "prompt": "x"})
        await agent.call("control", run=run, action="pause", reason="for now")
        await answered(place, run, Action.PAUSE)
        await agent.refused("control", "forbidden", run=run, action="resume", reason="go on")
        await agent.answer("control", {"run": run, "action": "pause", "reason": "mine"})
        await agent.refused("control", "forbidden", run=run, action="resume", reason="go on")
        await answered(place, run, Action.RESUME)
        assert (await agent.call("status", run=run))["status"] == "waiting"


async def test_whether_a_later_approval_will_be_asked_is_part_of_what_was_approved(place: Place) -> None:
    async with place.agent() as agent:
        second = {"id": "a2", "approve": "The boss, too?", "when": "vars.need"}
        run = await started(
            agent,
            {"id": "s", "prompt": "x"},
            {"id": "a1", "approve": "Go?"},
            {"id": "q", "prompt": "x"},
            second,
            write("w"),
        )
        await agent.call("workflow_next", run=run, step="s", output={}, vars={"need": True})
        await agent.until(run, "waiting")
        await answered(place, run, Action.APPROVE, "a1")
        await agent.answer("workflow_next", {"run": run, "step": "q", "output": {}, "vars": {"need": False}})
        seen = await agent.until(run, "waiting", "completed")
        assert [(one["kind"], one["step"]) for one in seen["waiting_for"]] == [("approval", "a1")]
        assert not (place.project / "a.txt").exists()


async def test_an_approval_in_a_loop_shows_what_the_next_round_would_do(place: Place) -> None:
    async with place.agent() as agent:
        body = [write("w"), {"id": "go", "approve": "Once more?"}]
        run = await started(agent, {"id": "l", "repeat": {"times": 2}, "steps": body})
        (asked,) = (await agent.until(run, "waiting"))["waiting_for"]
        assert any("file.write" in line for line in asked["effects"]), asked


@pytest.mark.parametrize("rounds", [{"while": "vars.more"}, {"until": "not vars.more"}])
async def test_how_often_a_later_loop_runs_is_part_of_what_was_approved(place: Place, rounds: dict[str, str]) -> None:
    async with place.agent() as agent:
        loop = {"id": "l", "repeat": {**rounds, "max": 2}, "steps": [write("w")]}
        run = await started(
            agent, {"id": "s", "prompt": "x"}, {"id": "go", "approve": "Go?"}, {"id": "q", "prompt": "x"}, loop
        )
        await agent.call("workflow_next", run=run, step="s", output={}, vars={"more": False})
        await agent.until(run, "waiting")
        await answered(place, run, Action.APPROVE, "go")
        await agent.answer("workflow_next", {"run": run, "step": "q", "output": {}, "vars": {"more": True}})
        seen = await agent.until(run, "waiting", "completed", "failed")
        assert [(one["kind"], one["step"]) for one in seen["waiting_for"]] == [("approval", "go")]
        assert not (place.project / "a.txt").exists()
