"""Each of the three systems that handrail grew from, by an agent who has nothing but that system's tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import Place, read, text_of, write

REVIEW = {
    "id": "review",
    "name": "Review a change",
    "version": "1.2.0",
    "description": "Read a change, judge it, and say so.",
    "category": "quality",
    "tags": ["review", "code"],
    "inputs": {"change": {"type": "string", "description": "which change"}},
    "preconditions": ["the tests are green"],
    "clarify": ["Which change?"],
    "guidance": ["Be kind."],
    "steps": [
        {
            "id": "look",
            "title": "Read it",
            "prompt": "Read {{ inputs.change }}.",
            "role": "You are a careful reader.",
            "guidance": ["Read the tests first."],
            "output": {"type": "object", "required": ["risk"], "properties": {"risk": {"enum": ["low", "high"]}}},
            "model": {"tier": "strong", "why": "long to read"},
        },
        {"id": "note", "tool": "file.write", "args": {"path": "risk.txt", "text": "{{ steps.look.output.risk }}"}},
        {"id": "deep", "prompt": "Look for races.", "when": "steps.look.output.risk == 'high'"},
        {"id": "say", "prompt": "Tell the author.", "confirm": True},
    ],
    "outputs": {"risk": "steps.look.output.risk"},
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_a_workflow_agent_works_with_the_four_workflow_tools_alone(place: Place) -> None:
    place.workflow(REVIEW)
    place.workflow({"id": "cook", "description": "Make soup.", "steps": [{"id": "a", "prompt": "Cut onions."}]})
    async with place.agent("guide") as agent:
        found = await agent.call("workflow_list", query="review this change please")
        assert [one["id"] for one in found["workflows"]] == ["review"]
        assert found["workflows"][0] == {
            "id": "review",
            "name": "Review a change",
            "version": "1.2.0",
            "category": "quality",
            "description": "Read a change, judge it, and say so.",
            "tags": ["review", "code"],
            "steps": 4,
        }
        seen = await agent.call("workflow_get", id="review")
        assert seen["inputs"].keys() == {"change"}
        assert [(step["id"], step["kind"]) for step in seen["steps"]] == [
            *[("look", "prompt"), ("note", "tool"), ("deep", "prompt"), ("say", "prompt")]
        ]
        started = await agent.call("workflow_next", workflow="review", inputs={"change": "#42"}, goal="ship it")
        run = started["run"]
        assert started["step"]["prompt"] == "Read #42."
        bad = await agent.call("workflow_validate", run=run, step="look", output={"risk": "none"})
        assert not bad["valid"]
        refused = await agent.call("workflow_next", run=run, step="look", output={"risk": "none"})
        assert (refused["accepted"], refused["tries"]) == (False, 1)
        assert refused["findings"][0]["where"] == "output.risk"
        good = await agent.call("workflow_validate", run=run, step="look", output={"risk": "low"})
        assert good["valid"]
        last = await agent.call("workflow_next", run=run, step="look", output={"risk": "low"})
        assert last["accepted"]
        assert last["step"]["id"] == "say"
        assert (place.project / "risk.txt").read_text() == "low"
        ended = await agent.call("workflow_next", run=run, step="say", output="told", confirmed=True)
        assert (ended["status"], ended["outputs"]) == ("completed", {"risk": "low"})
        assert (await agent.call("workflow_next"))["runs"] == []


async def test_a_new_chat_resumes_with_the_four_workflow_tools_alone(place: Place) -> None:
    place.workflow(REVIEW)
    async with place.agent("guide", name="first") as agent:
        started = await agent.call("workflow_next", workflow="review", inputs={"change": "#42"}, goal="ship it")
        await agent.call("workflow_next", run=started["run"], step="look", output={"risk": "high"}, vars={"who": "ann"})
    async with place.agent("guide", name="second") as agent:
        (open_run,) = (await agent.call("workflow_next"))["runs"]
        assert (open_run["run"], open_run["goal"]) == (started["run"], "ship it")
        resumed = await agent.call("workflow_next", run=open_run["run"])
        assert resumed["recap"]["goal"] == "ship it"
        assert resumed["recap"]["done"] == ["look", "note"]
        assert resumed["recap"]["vars"] == {"who": "ann"}
        assert resumed["guidance"] == ["Be kind."]
        assert resumed["step"]["id"] == "deep"


async def test_a_workflow_agent_is_only_offered_calls_that_it_can_make(place: Place) -> None:
    steps = [write(), read(after=["w"]), {"id": "p", "prompt": "Go on.", "after": ["r"]}]
    place.workflow({"id": "breaks", "steps": steps})
    async with place.agent("guide") as agent:  # every answer is held against what is offered
        failed = await agent.call("workflow_next", workflow="breaks")
        assert failed["failure"]["step"] == "r"
        assert "control" not in await agent.said("workflow_next", run=failed["run"])
        refused = await agent.refused("workflow_next", "conflict", run=failed["run"], step="p", output=1)
        assert refused["next"] == {"tool": "workflow_next", "arguments": {"run": failed["run"]}}


@pytest.mark.parametrize("action", ["retry", "skip"])
async def test_a_workflow_agent_can_retry_or_skip_its_own_failure(place: Place, action: str) -> None:
    place.workflow({"id": "w", "steps": [{"id": "a", "prompt": "A."}]})
    async with place.agent("guide") as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        failed = await agent.call("workflow_next", run=run, step="a", outcome="failed", note="no access")
        assert failed["status"] == "waiting"
        ways = {option["action"]: option["next"] for option in failed["failure"]["options"]}
        assert ways.keys() == {"retry", "skip"}
        ended = await agent.call(ways[action]["tool"], **ways[action]["arguments"])
        assert (ended["accepted"], ended["status"]) == (True, "completed")


PLAN: dict[str, Any] = {
    "name": "Deploy",
    "steps": [
        write("config", "config.txt", "new"),
        {
            "id": "mail",
            "tool": "value.set",
            "args": {"value": "sent"},
            "effect": "irreversible",
        },
        read("check", "health.txt"),
    ],
}


async def test_a_ledger_agent_plans_fails_and_undoes_with_its_five_tools_alone(place: Place) -> None:
    (place.project / "config.txt").write_text("old")
    async with place.agent("run") as agent:
        saved = await agent.call("save_plan", plan=PLAN, note="first try")
        assert (saved["plan"], saved["version"]) == ("deploy", 1)
        assert saved["waves"] == [["config"], ["mail"], ["check"]]
        failed = await agent.call("execute_plan", plan="deploy", wait="10s")
        run = failed["run"]
        assert failed["status"] == "waiting"
        assert (place.project / "config.txt").read_text() == "new"
        seen = await agent.call("status", run=run)
        assert seen["waiting_for"][0]["kind"] == "decision"
        assert (seen["failure"]["step"], seen["failure"]["category"]) == ("check", "not_found")
        ways = {option["action"]: option["next"] for option in seen["failure"]["options"]}
        assert ways.keys() == {"retry", "skip", "compensate", "cancel"}
        arguments = {**ways["compensate"]["arguments"], "reason": "the release is off"}
        await agent.call(ways["compensate"]["tool"], **arguments)
        ended = await agent.until(run, "compensated")
        assert (place.project / "config.txt").read_text() == "old"
        how = {step["id"]: step.get("compensation") for step in ended["steps"]}
        assert how == {"config": "executed", "mail": "none", "check": None}
        assert ended["not_compensated"] == ["mail"]
        noted = await agent.call("record_compensation", run=run, step="mail", description="sent an apology")
        assert noted["run"] == run
        assert noted["receipt"]
        after = await agent.until(run, "compensated")
        assert {step["id"]: step.get("compensation") for step in after["steps"]}["mail"] == "recorded"
        assert "not_compensated" not in after


async def test_a_ledger_agent_marks_an_undo_that_failed_as_done_by_hand(place: Place) -> None:
    undo = {"tool": "file.delete", "args": {"path": "never-there.txt"}}
    plan = {"name": "Stuck", "on_failure": "compensate", "steps": [write(undo=undo), read()]}
    async with place.agent("run") as agent:
        await agent.call("save_plan", plan=plan)
        run = (await agent.call("execute_plan", plan="stuck", wait="10s"))["run"]
        stuck = await agent.until(run, "compensation_failed")
        assert stuck["failure"]["step"] == "w"
        assert {option["action"] for option in stuck["failure"]["options"]} == {"retry", "skip", "record_compensation"}
        (place.project / "a.txt").unlink()
        noted = await agent.call("record_compensation", run=run, step="w", description="deleted by hand")
        assert noted["status"] == "compensated"
        ended = await agent.until(run, "compensated")
        assert ended["steps"][0]["compensation"] == "recorded"


async def test_a_ledger_agent_fixes_the_cause_and_retries(place: Place) -> None:
    async with place.agent("run") as agent:
        run = (await agent.call("execute_plan", definition={"name": "P", "steps": [read()]}, wait="10s"))["run"]
        (place.project / "missing.txt").write_text("here now")
        await agent.call("control", run=run, action="retry", step="r", reason="it is there now")
        await agent.until(run, "completed")


async def test_a_journal_agent_keeps_its_record_with_its_five_tools_alone(place: Place) -> None:
    async with place.agent("journal") as agent:
        plan = await agent.call("record_plan", plan={"name": "Fix #42", "steps": ["reproduce it", "fix it"]})
        assert plan["waves"] == [["step-1"], ["step-2"]]
        started = await agent.call("record_execution_start", plan=plan["plan"], note="crash on empty file")
        run = started["run"]
        assert (started["status"], started["ready"]) == ("waiting", ["step-1"])
        chosen = await agent.call(
            "record_decision",
            run=run,
            decision="test first",
            reason="it came back twice",
            step="step-1",
            alternatives=["fix blindly"],
        )
        assert chosen["receipt"].split(":")[0] == "2"
        await agent.call("record_action", run=run, description="wrote a test", step="step-1", outcome="started")
        answer = await agent.call(
            "record_action", run=run, description="it fails", step="step-1", outcome="done", output={"test": "t.py"}
        )
        assert answer["ready"] == ["step-2"]
        await agent.call("record_action", run=run, description="told the team", kind="notified")
        ended = await agent.call("record_action", run=run, description="fixed", step="step-2", outcome="done")
        assert (ended["status"], ended["ready"]) == ("completed", [])
        found = await agent.call("query_ledger", run=run, kinds=["decision_recorded"], verify=True)
        (event,) = found["events"]
        assert event["data"] == {
            "decision": "test first",
            "reason": "it came back twice",
            "alternatives": ["fix blindly"],
        }
        assert (event["step"], event["actor"]) == ("step-1", "agent:claude")
        assert found["verified"]["ok"]
        assert found["verified"]["events"] == place.events(run)


async def test_a_journal_agent_is_only_offered_calls_that_it_can_make(place: Place) -> None:
    async with place.agent("journal") as agent:
        await agent.refused("record_decision", "not_found", run="run_nothere", decision="d", reason="r")
        plan = await agent.call("record_plan", plan={"name": "Fix", "steps": ["one", "two"]})
        started = await agent.call("record_execution_start", plan=plan["plan"])
        answer = await agent.answer(
            "record_action", {"run": started["run"], "description": "d", "step": "step-2", "outcome": "done"}
        )
        assert answer.is_error
        assert "query_ledger" in text_of(answer)


async def test_a_journal_agent_may_plan_with_tools_that_handrail_does_not_know(place: Place) -> None:
    steps = [{"id": "a", "tool": "jira.close", "args": {"key": "X-1"}}]
    async with place.agent() as agent:
        plan = await agent.call("record_plan", plan={"name": "Own tools", "steps": steps})
        started = await agent.call("record_execution_start", plan=plan["plan"])
        assert started["ready"] == ["a"]
        refused = await agent.refused("save_plan", "invalid", plan={"name": "Own tools", "steps": steps})
        assert "jira.close" in refused["findings"][0]["message"]
