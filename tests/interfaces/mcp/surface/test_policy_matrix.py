"""No tool walks an agent past a gate: every tool with every choice of its schema, on every gate, in every state.

The calls are generated from the surface, so a tool, an action or a choice that is added later is tried here, too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.opening import open_assembly
from handrail.domain.run.legal_controls import Action
from handrail.interfaces.mcp.surface.handlers.catalog import TOOLS
from interfaces.mcp.surface.agent import Agent, Place, data_of

IMPOSSIBLE = {"rule": "expression", "that": "1 == 2"}
GATES: Mapping[str, dict[str, Any]] = {
    "approval": {"approve": "Go on?"},
    "approval nobody skips": {"approve": "Go on?", "skippable": "nobody"},
    "approval an agent may skip, says its author": {"approve": "Go on?", "skippable": "agent"},
    "check": {"prompt": "Do it.", "checks": [IMPOSSIBLE]},
    "check, one try": {"prompt": "Do it.", "checks": [IMPOSSIBLE], "max_tries": 1},
    "confirm": {"prompt": "Do it.", "confirm": True, "checks": [IMPOSSIBLE]},
    "tool with a check": {"tool": "value.set", "args": {"value": 1}, "checks": [IMPOSSIBLE]},
    "loop with an approval": {"repeat": {"times": 1}, "steps": [{"id": "inner", "approve": "Go on?"}]},
    "loop with a check": {"repeat": {"times": 1}, "steps": [{"id": "inner", "prompt": "x", "checks": [IMPOSSIBLE]}]},
    "a person's own": {"prompt": "Do it.", "skippable": "person", "checks": [IMPOSSIBLE]},
}
STATES = ("as it starts", "paused", "a try refused", "reported as failed")
BARE = {"run", "step", "outcome", "action", "reason", "description", "decision", "kind"}
"""Arguments of the second call of each pair, which leaves the others out."""
PASSED = {"completed", "skipped"}
A_RUN = "a run"
"""Stands for the run, wherever it is in a call."""
WORDS = {
    *("reason", "description", "decision", "note", "by", "agent", "text", "actor", "goal", "query", "category", "card"),
    *("cursor", "since", "until", "id", "version", "wait", "idempotency_key", "outcome", "digest", "passphrase"),
}
"""Arguments that name no run and no step. What is not among them could be either, under a name of its own."""


def choices(schema: Mapping[str, Any], name: str, steps: list[str]) -> list[Any]:
    """Values worth trying for one argument."""
    if name == "run":
        return [A_RUN]
    if name == "step":
        return steps
    if name in {"workflow", "plan", "definition", "inputs", "goal"}:
        return []  # these start something else
    if "enum" in schema:
        return list(schema["enum"])
    match schema.get("type"):
        case "boolean":
            return [True]
        case "object":
            return [{"gate": "done"}]
        case "string":
            return ["yes"] if name in WORDS else ["yes", A_RUN, *steps]
        case "array":
            return [[A_RUN, *steps]]
        case None:
            return [{}]
        case _:
            return []


def calls(steps: list[str], state: str = STATES[0]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every tool, as agents and as pages in their windows know it, with every combination of what it lets one choose.

    Also tools that name no run, since what answers all that is asked needs none, and those that say that they only
    read; both in the first state only."""
    for tool in TOOLS:
        if state != STATES[0] and (tool.hints.read_only or "run" not in tool.input["properties"]):
            continue
        for schema in filter(None, (tool.input, tool.app_input)):
            for given in combinations(schema["properties"], steps):
                yield tool.name, given
                yield tool.name, {key: value for key, value in given.items() if key in BARE}


def combinations(properties: Mapping[str, Any], steps: list[str]) -> Iterator[dict[str, Any]]:
    offered = {name: choices(schema, name, steps) for name, schema in properties.items()}
    chosen = {name: values for name, values in offered.items() if values}
    for combination in product(*chosen.values()):
        yield dict(zip(chosen, combination, strict=True))


def about(value: Any, run: str) -> Any:
    """Arguments with this run in them."""
    if isinstance(value, dict):
        return {name: about(item, run) for name, item in value.items()}
    if isinstance(value, list):
        return [about(item, run) for item in value]
    return run if value == A_RUN else value


async def in_state(agent: Agent, gate: dict[str, Any], state: str) -> tuple[str, str]:
    """A run in this state at its gate, and its status."""
    definition = {"name": "Gated", "steps": [{"id": "gate", **gate}, {"id": "after", "prompt": "Behind the gate."}]}
    run = str((await agent.call("execute_plan", definition=definition, wait="10s"))["run"])
    if state == "paused":
        await agent.answer("control", {"run": run, "action": "pause", "reason": "x"})
    elif state == "a try refused":
        await agent.answer("workflow_next", {"run": run, "step": "gate", "output": {}})
    elif state == "reported as failed":
        await agent.answer("workflow_next", {"run": run, "step": "gate", "outcome": "failed", "note": "x"})
    return run, await status_of(agent, run)


async def status_of(agent: Agent, run: str) -> str:
    return str((await agent.call("status", run=run))["status"])


async def passed(agent: Agent, run: str) -> list[str]:
    """The gates of a run, and what is behind them, that count as done or left out."""
    seen = await agent.call("status", run=run, detail="full")
    return [step["id"] for step in seen["steps"] if step["status"] in PASSED]


@pytest.mark.parametrize("gate", GATES)
async def test_no_call_of_an_agent_passes_a_gate(tmp_path: Path, gate: str) -> None:
    async with Place(tmp_path).agent() as agent:
        steps = ["gate", "gate[0].inner"] if "loop" in gate else ["gate"]
        tried = 0
        for state in STATES:
            run, begun = await in_state(agent, GATES[gate], state)
            for tool, arguments in calls(steps, state):
                answered = data_of(await agent.answer(tool, about(arguments, run)))
                tried += 1
                followed = {run, str(answered.get("run") or run)}  # a fork is another run
                for one in followed:
                    assert await passed(agent, one) == [], (state, tool, arguments)
                if await status_of(agent, run) != begun:
                    # That is not past the gate. But a run that was paused, for example, keeps what comes next out.
                    run, begun = await in_state(agent, GATES[gate], state)
        assert tried > 100


@pytest.mark.parametrize("gate", ["approval", "approval nobody skips", "approval an agent may skip, says its author"])
async def test_in_a_recorded_run_no_call_of_an_agent_completes_an_approval(tmp_path: Path, gate: str) -> None:
    async with Place(tmp_path).agent() as agent:
        steps = [{"id": "gate", **GATES[gate]}, {"id": "after", "prompt": "Behind the gate."}]
        plan = (await agent.call("record_plan", plan={"name": "Recorded", "steps": steps}))["plan"]
        run = (await agent.call("record_execution_start", plan=plan))["run"]
        seen = await agent.call("status", run=run)
        begun = seen["status"]
        assert [(one["kind"], one["step"]) for one in seen["waiting_for"]] == [("approval", "gate")]
        for tool, arguments in calls(["gate"]):
            await agent.answer(tool, about(arguments, run))
            assert await passed(agent, run) == [], (tool, arguments)
            if await status_of(agent, run) != begun:
                run = (await agent.call("record_execution_start", plan=plan))["run"]


async def test_a_recorded_run_goes_on_once_a_person_has_approved(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.agent() as agent:
        steps: list[Any] = ["Build it.", {"id": "go", "approve": "Publish?"}]
        plan = (await agent.call("record_plan", plan={"name": "Recorded", "steps": steps}))["plan"]
        run = (await agent.call("record_execution_start", plan=plan))["run"]
        (first,) = (await agent.call("status", run=run, detail="full"))["waiting_for"]
        await agent.call("record_action", run=run, step=first["step"], description="built", outcome="done")
        (asked,) = (await agent.call("status", run=run))["waiting_for"]
        assert (asked["kind"], asked["text"]) == ("approval", "Publish?")
        async with open_assembly(place.settings(), picks_up=False) as parts:
            await parts.control.act(run, Action.APPROVE, actor="person:ann", reason="seen")
        assert (await agent.call("status", run=run))["status"] == "completed"


async def test_what_a_person_skipped_or_overrode_stays_with_the_run(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.agent() as agent:
        steps = [{"id": "test", **GATES["check"]}, {"id": "go", "approve": "Publish?"}, {"id": "tell", "prompt": "x"}]
        run = (await agent.call("execute_plan", definition={"name": "Gated", "steps": steps}, wait="10s"))["run"]
        async with open_assembly(place.settings(), picks_up=True) as parts:
            await parts.control.act(run, Action.SKIP, actor="person:ann", reason="no machine", step="test")
            await agent.until(run, "waiting")
            await parts.control.act(run, Action.SKIP, actor="person:ann", reason="he is on a plane", step="go")
        await agent.call("workflow_next", run=run, step="tell", outcome="skipped", note="nobody reads it")
        seen = await agent.until(run, "completed")
        assert [(one["kind"], one["step"], one["by"], one["reason"]) for one in seen["exceptions"]] == [
            ("skipped_check", "test", "person:ann", "no machine"),
            ("override", "go", "person:ann", "he is on a plane"),
            ("skipped_step", "tell", "agent:claude", "nobody reads it"),
        ]
        assert "approval_overridden" in place.kinds(run)
        recap = (await agent.call("workflow_next", run=run))["recap"]
        assert [one["kind"] for one in recap["exceptions"]] == ["skipped_check", "override", "skipped_step"]


async def test_a_list_and_a_proof_bundle_name_what_was_gone_past(tmp_path: Path) -> None:
    place = Place(tmp_path)
    async with place.agent() as agent:
        steps = [{"id": "test", **GATES["check"]}, {"id": "go", "approve": "Publish?"}]
        run = (await agent.call("execute_plan", definition={"name": "Gated", "steps": steps}, wait="10s"))["run"]
        async with open_assembly(place.settings(), picks_up=True) as parts:
            await parts.control.act(run, Action.SKIP, actor="person:ann", reason="no machine", step="test")
            await agent.until(run, "waiting")
            await parts.control.act(run, Action.SKIP, actor="person:ann", reason="he is on a plane", step="go")
            await agent.until(run, "completed")
            (row,) = await parts.run_reader.runs(limit=10)
            assert (row.run, row.exceptions) == (run, 2)
        assert (await agent.call("query_ledger", run=run, verify=True))["verified"]["ok"]
    bundle = tmp_path / "proof"
    code, _, err = place.beside("journal", "export", run, "--bundle", str(bundle)).end()
    assert code == 0, err
    _, text, _ = place.beside("journal", "verify", str(bundle)).end()
    assert "test: skipped check by person:ann: no machine" in text
    assert "go: override by person:ann: he is on a plane" in text
