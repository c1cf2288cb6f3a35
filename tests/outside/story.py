"""The scenario that every agent must complete with handrail: guided work, a failed plan and its undo, approval, proof.

Written once for all clients; the results are read from the disk."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from outside.agents import MODERN, Agent, Refused
from outside.processes import PATIENCE_S, Place, place_in

TOOLS = {
    *("workflow_list", "workflow_get", "workflow_next", "workflow_validate"),
    *("save_plan", "execute_plan", "status", "control", "record_compensation"),
    *("record_plan", "record_execution_start", "record_decision", "record_action", "query_ledger"),
}

WRITE_NOTE = """\
id: write-note
name: Write a note
version: 1.0.0
description: Draft a note, keep it in a file, and read it again.
inputs:
  name: {type: string}
steps:
  - id: draft
    title: Draft it
    prompt: Draft a note about {{ inputs.name }}.
    output: {type: object, required: [text], properties: {text: {type: string}}}
  - id: keep
    tool: file.write
    args: {path: '{{ inputs.name }}.txt', text: '{{ steps.draft.output.text }}'}
  - id: review
    title: Read it again
    prompt: Read {{ steps.keep.output.path }} again.
    confirm: true
"""
SHIP = """\
id: ship
name: Ship it
version: 1.0.0
description: Write what was shipped, once a person has agreed.
inputs:
  name: {type: string}
steps:
  - id: go
    approve: Ship {{ inputs.name }}?
  - id: ship
    tool: file.write
    args: {path: '{{ inputs.name }}.txt', text: shipped}
"""
FAILING_PLAN: Mapping[str, Any] = {
    "name": "Write two files, then read one that was not found",
    "steps": [
        {"id": "first", "tool": "file.write", "args": {"path": "first.txt", "text": "1"}},
        {"id": "second", "tool": "file.write", "args": {"path": "second.txt", "text": "2"}},
        {"id": "check", "tool": "file.read", "args": {"path": "missing.txt"}},
    ],
}


def stage(folder: Path) -> Place:
    """A home, and a project with two workflows."""
    place = place_in(folder)
    workflows = place.project / ".handrail" / "workflows"
    workflows.mkdir()
    (workflows / "write-note.yaml").write_text(WRITE_NOTE, encoding="utf-8")
    (workflows / "ship.yaml").write_text(SHIP, encoding="utf-8")
    return place


async def live(agent: Agent, place: Place, *, era: str, agrees: bool) -> None:
    """The whole story."""
    assert (agent.version == MODERN) is (era != "legacy")
    assert set(await agent.tools()) == TOOLS
    runs = [
        await follow_a_workflow(agent, place, agrees=agrees),
        await undo_a_plan(agent, place),
        await (ask_through_the_client(agent, place) if agrees else ask_beside_the_client(agent, place)),
    ]
    await prove(agent, place, runs)


async def follow_a_workflow(agent: Agent, place: Place, *, agrees: bool) -> str:
    """Find a workflow, start it, submit its steps; invalid output is not accepted."""
    found = await agent.call("workflow_list", query="write a note")
    assert found["workflows"][0]["id"] == "write-note"
    started = await agent.call("workflow_next", workflow="write-note", inputs={"name": "tea"}, goal="remember the tea")
    run: str = started["run"]
    assert (started["status"], started["step"]["id"]) == ("waiting", "draft")
    assert "about tea" in started["step"]["prompt"]
    refused = await agent.call("workflow_next", run=run, step="draft", output={"words": "Earl Grey"})
    assert refused["accepted"] is False
    assert refused["findings"]
    assert not (place.project / "tea.txt").exists()
    taken = await agent.call("workflow_next", run=run, step="draft", output={"text": "Earl Grey"})
    assert (taken["accepted"], taken["step"]["id"]) == (True, "review")
    assert (place.project / "tea.txt").read_text(encoding="utf-8") == "Earl Grey"
    again = await agent.call("workflow_next", run=run)
    assert again["step"]["id"] == "review"
    assert "remember the tea" in str(again["recap"])
    done = await _confirm(agent, run, agrees=agrees)
    assert (done["status"], done["progress"]) == ("completed", {"done": 3, "total": 3})
    return run


async def _confirm(agent: Agent, run: str, *, agrees: bool) -> Mapping[str, Any]:
    """Submit a step that the user must confirm: they are asked in the client, or the agent has to say that it asked."""
    handed = await agent.call("workflow_next", run=run, step="review", output="it is good")
    assert handed["accepted"] is agrees
    if agrees:
        assert any("'review'" in text for text in await agent.asked())
        return handed
    return await agent.call("workflow_next", run=run, step="review", output="it is good", confirmed=True)


async def undo_a_plan(agent: Agent, place: Place) -> str:
    """Run a plan whose last step fails, read what can be done, and have it undone."""
    saved = await agent.call("save_plan", plan=FAILING_PLAN)
    assert saved["waves"] == [["first"], ["second"], ["check"]]
    failed = await agent.call("execute_plan", plan=saved["plan"], wait="20s")
    run: str = failed["run"]
    assert (failed["status"], failed["failure"]["step"]) == ("waiting", "check")
    assert (place.project / "first.txt").exists()
    options = {option["action"]: option["next"] for option in failed["failure"]["options"]}
    assert {"retry", "skip", "compensate"} <= options.keys()
    chosen = options["compensate"]
    await agent.call(chosen["tool"], **{**chosen["arguments"], "reason": "the file will not come"})
    undone = await until(agent, run, "compensated")
    assert {step["id"]: step["status"] for step in undone["steps"]} == {
        "first": "compensated",
        "second": "compensated",
        "check": "failed",
    }
    assert not (place.project / "first.txt").exists()
    assert not (place.project / "second.txt").exists()
    return run


async def ask_through_the_client(agent: Agent, place: Place) -> str:
    """An approval that the person gives in the client's own form."""
    run = await _reach_approval(agent, "cake")
    await agent.call("control", run=run, action="approve", step="go", reason="the user wants it")
    assert any("cake" in text for text in await agent.asked())
    await until(agent, run, "completed")
    assert (place.project / "cake.txt").read_text(encoding="utf-8") == "shipped"
    return run


async def ask_beside_the_client(agent: Agent, place: Place) -> str:
    """An approval that the client can't ask for: the agent may not give it, a person gives it in a terminal."""
    run = await _reach_approval(agent, "bread")
    with pytest.raises(Refused) as refused:
        await agent.call("control", run=run, action="approve", step="go", reason="I think it is fine")
    assert (refused.value.data["name"], refused.value.data["code"]) == ("forbidden", -32004)
    assert "handrail approve" in refused.value.data["hint"]
    assert not (place.project / "bread.txt").exists()
    await _approve(place, run)
    await until(agent, run, "completed")
    assert (place.project / "bread.txt").read_text(encoding="utf-8") == "shipped"
    return run


async def prove(agent: Agent, place: Place, runs: Sequence[str]) -> None:
    """Read the journal, through the client and from the file."""
    for run in runs:
        answer = await agent.call("query_ledger", run=run, verify=True)
        assert answer["verified"]["ok"] is True
        assert [event["n"] for event in answer["events"]] == [*range(1, len(answer["events"]) + 1)]
        assert run in await agent.read(f"handrail://runs/{run}")
    with pytest.raises(Refused) as refused:
        await agent.call("status", run="run_nothing")
    assert (refused.value.data["name"], refused.value.data["code"]) == ("not_found", -32001)
    await place.verify()


async def until(agent: Agent, run: str, status: str) -> Mapping[str, Any]:
    """Poll until a run has the expected status."""
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await agent.call("status", run=run, detail="full"))["status"] != status:
            await asyncio.sleep(0.05)
    return answer


async def _reach_approval(agent: Agent, name: str) -> str:
    started = await agent.call("execute_plan", workflow="ship", inputs={"name": name}, wait="20s")
    assert started["status"] == "waiting"
    assert [(one["kind"], one["step"]) for one in started["waiting_for"]] == [("approval", "go")]
    run: str = started["run"]
    return run


async def _approve(place: Place, run: str) -> None:
    (asked,) = json.loads(await _handrail(place, "approvals", "--json"))["approvals"]
    await _handrail(place, "approve", run, "go", "--digest", asked["digest"], "--reason", "a person has looked")


async def _handrail(place: Place, *words: str) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "handrail", *words),
        env=place.environment,
        cwd=place.project,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    answer, said = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 0, said.decode()
    return answer
