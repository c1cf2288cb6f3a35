"""Repetition: a call whose answer was lost can be made again, exactly as it was. It is safe, and the answer says so."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import mcp_types as mt
import pytest
from mcp.client import ClientRequestContext

from interfaces.mcp.surface.agent import ERAS, Agent, Place, read, write

PLAN = {"name": "My work", "steps": ["one", "two"]}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    steps = [{"id": "a", "prompt": "A.", "output": {"type": "object"}}, {"id": "b", "prompt": "B."}]
    place.workflow({"id": "w", "steps": steps})
    return place


async def twice(agent: Agent, place: Place, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The second answer to the same call, which has written nothing."""
    await agent.call(tool, **arguments)
    before = place.events()
    again = await agent.call(tool, **arguments)
    assert place.events() == before
    return again


async def started(agent: Agent) -> str:
    await agent.call("record_plan", plan=PLAN)
    return str((await agent.call("record_execution_start", plan="my-work"))["run"])


@pytest.mark.parametrize(
    "handed",
    [
        {"output": {"x": 1}},
        {"output": {"x": 1}, "vars": {"v": 1}, "note": "n"},
        {"outcome": "skipped", "note": "n"},
        {"outcome": "failed", "note": "n"},
    ],
)
async def test_a_submission_that_is_repeated_is_accepted_as_before(place: Place, handed: dict[str, Any]) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        again = await twice(agent, place, "workflow_next", run=run, step="a", **handed)
        assert (again["accepted"], again["repeated"]) == (True, True)


async def test_a_submission_that_is_repeated_by_a_named_agent_is_accepted_as_before(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w", agent="ann"))["run"]
        again = await twice(agent, place, "workflow_next", run=run, step="a", output={}, agent="ann")
        assert again["repeated"] is True


async def test_the_last_submission_of_a_run_can_be_repeated_too(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("workflow_next", run=run, step="a", output={})
        again = await twice(agent, place, "workflow_next", run=run, step="b", output="the end")
        assert (again["status"], again["repeated"]) == ("completed", True)


async def test_a_submission_with_another_output_is_no_repetition(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("workflow_next", run=run, step="a", output={"x": 1})
        refused = await agent.refused("workflow_next", "conflict", run=run, step="a", output={"x": 2})
        assert "another output" in refused["message"]
        assert refused["next"] == {"tool": "workflow_next", "arguments": {"run": run}}


async def test_the_same_submission_many_times_at_once_is_accepted_once(place: Place) -> None:
    async with place.agent() as one, place.agent() as other:
        run = (await one.call("workflow_next", workflow="w"))["run"]
        answers = await asyncio.gather(
            *(agent.call("workflow_next", run=run, step="a", output={"x": 1}) for agent in (one, other) * 10)
        )
        assert all(answer["accepted"] for answer in answers)
        assert place.kinds(run).count("step_completed") == 1


@pytest.mark.parametrize("tool", ["save_plan", "record_plan"])
async def test_a_plan_that_is_saved_again_is_the_same_version(place: Place, tool: str) -> None:
    async with place.agent() as agent:
        again = await twice(agent, place, tool, plan={"name": "P", "steps": [write()]})
        assert (again["version"], again["repeated"]) == (1, True)


@pytest.mark.parametrize(
    ("definition", "control"),
    [
        ({"steps": [{"id": "p", "prompt": "P."}]}, {"action": "pause"}),
        ({"steps": [{"id": "p", "prompt": "P."}]}, {"action": "cancel"}),
        ({"steps": [write(), {"id": "p", "prompt": "P."}]}, {"action": "compensate"}),
        ({"steps": [read(), {"id": "p", "prompt": "P."}]}, {"action": "skip", "step": "r"}),
        ({"steps": [read(), {"id": "p", "prompt": "P."}]}, {"action": "skip"}),
    ],
)
async def test_a_control_that_is_repeated_says_so(place: Place, definition: Any, control: dict[str, str]) -> None:
    async with place.agent() as agent:
        run = (await agent.call("execute_plan", definition={"name": "P", **definition}, wait="10s"))["run"]
        await agent.call("control", run=run, **control, reason="r")
        await agent.until(run, "paused", "cancelled", "compensated", "waiting")
        before = place.events()
        again = await agent.call("control", run=run, **control, reason="r")
        assert again["repeated"] is True
        assert place.events() == before


async def test_resume_that_is_repeated_says_so(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("control", run=run, action="pause", reason="p")
        again = await twice(agent, place, "control", run=run, action="resume", reason="r")
        assert again["repeated"] is True


async def test_retry_that_is_repeated_after_the_next_failure_is_a_new_retry(place: Place) -> None:
    """Its first answer reported the retry; what has failed since is another failure, and may be tried again."""
    async with place.agent() as agent:
        run = (await agent.call("execute_plan", definition={"name": "P", "steps": [read()]}, wait="10s"))["run"]
        for count in (1, 2):
            await agent.call("control", run=run, action="retry", reason="r")
            await agent.until(run, "waiting")
            assert place.kinds(run).count("step_retried") == count


async def test_a_fork_that_is_repeated_is_the_same_fork(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        first = await agent.call("control", run=run, action="fork", step="a", reason="r")
        again = await agent.call("control", run=run, action="fork", step="a", reason="r")
        assert (again["run"], again["repeated"]) == (first["run"], True)
        other = await agent.call("control", run=run, action="fork", step="a", reason="another reason")
        assert other["run"] != first["run"]


async def test_an_action_that_others_have_undone_is_no_repetition(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        for action in ("pause", "resume", "pause"):
            assert "repeated" not in await agent.call("control", run=run, action=action, reason="r")


@pytest.mark.parametrize("outcome", ["compensated", "not_needed", "failed"])
async def test_a_compensation_that_is_recorded_again_says_so(place: Place, outcome: str) -> None:
    undo = {"tool": "file.delete", "args": {"path": "never-there.txt"}}
    plan = {"name": "P", "on_failure": "compensate", "steps": [write(undo=undo), read()]}
    async with place.agent() as agent:
        run = (await agent.call("execute_plan", definition=plan, wait="10s"))["run"]
        await agent.until(run, "compensation_failed")
        noted = {"run": run, "step": "w", "description": "by hand", "outcome": outcome}
        again = await twice(agent, place, "record_compensation", **noted)
        assert again["repeated"] is True


@pytest.mark.parametrize(
    "said",
    [
        {"decision": "d", "reason": "r"},
        {"decision": "d", "reason": "r", "step": "step-1", "alternatives": ["a"], "details": {"k": [1]}},
    ],
)
async def test_a_decision_that_is_recorded_again_says_so(place: Place, said: dict[str, Any]) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        again = await twice(agent, place, "record_decision", run=run, **said)
        assert again["repeated"] is True
        assert int(again["receipt"].split(":")[0]) == place.events(run)


async def test_a_control_with_space_around_its_reason_is_recognized(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        for reason in (" lunch\n", "password=hunter2hunter2"):
            again = await twice(agent, place, "control", run=run, action="pause", reason=reason)
            assert again["repeated"] is True
            await agent.call("control", run=run, action="resume", reason=reason)


@pytest.mark.parametrize("mode", ERAS)
async def test_an_approval_that_is_repeated_says_so_and_the_user_is_not_asked_again(place: Place, mode: str) -> None:
    asked = []

    async def person(_: ClientRequestContext, params: mt.ElicitRequestParams) -> mt.ElicitResult:
        asked.append(params.message)
        return mt.ElicitResult(action="accept", content={"answer": "approve"})

    plan = {"name": "P", "steps": [{"id": "go", "approve": "Go?"}, {"id": "p", "prompt": "P."}]}
    async with place.agent(mode=mode, elicitation_callback=person) as agent:
        run = (await agent.call("execute_plan", definition=plan, wait="10s"))["run"]
        await agent.call("control", run=run, action="approve", step="go", reason="r")
        await agent.until(run, "waiting")
        again = await agent.call("control", run=run, action="approve", step="go", reason="r")
        assert again["repeated"] is True
        assert len(asked) == 1
        assert place.kinds(run).count("approval_given") == 1


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"kind": "notified"},
        {"step": "step-1", "outcome": "started"},
        {"step": "step-1", "outcome": "done"},
        {"step": "step-1", "outcome": "done", "output": {"x": 1}, "details": {"y": 2}},
        {"step": "step-1", "outcome": "failed"},
        {"step": "step-1", "outcome": "skipped"},
        {"kind": "stopped"},
    ],
)
async def test_an_action_that_is_recorded_again_says_so(place: Place, said: dict[str, Any]) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        again = await twice(agent, place, "record_action", run=run, description="did it", **said)
        assert again["repeated"] is True


async def test_a_step_that_is_done_is_not_done_again_in_other_words(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        await agent.call("record_action", run=run, description="did it", step="step-1", outcome="done")
        await agent.call("record_decision", run=run, decision="d", reason="r")
        again = await agent.call("record_action", run=run, description="did it", step="step-1", outcome="done")
        assert again["repeated"] is True
        await agent.refused("record_action", "conflict", run=run, description="more", step="step-1", outcome="done")


async def test_the_same_words_later_are_no_repetition(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        for decision in ("left", "right", "left"):
            answer = await agent.call("record_decision", run=run, decision=decision, reason="r")
            assert "repeated" not in answer
        assert place.kinds(run).count("decision_recorded") == 3


async def test_the_same_words_of_another_agent_are_no_repetition(place: Place) -> None:
    async with place.agent(name="ann") as ann, place.agent(name="bob") as bob:
        run = await started(ann)
        for agent in (ann, bob):
            answer = await agent.call("record_decision", run=run, decision="go", reason="r")
            assert "repeated" not in answer


async def test_a_repetition_after_a_restart_is_one(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        await agent.call("record_decision", run=run, decision="go", reason="r")
    async with place.agent() as agent:
        assert (await agent.call("record_decision", run=run, decision="go", reason="r"))["repeated"] is True


async def test_text_with_a_redacted_secret_is_recognized(place: Place) -> None:
    """What is stored without its secret must still be recognized as the same."""
    async with place.agent() as agent:
        run = await started(agent)
        said = {"decision": "use password=hunter2hunter2", "reason": "Authorization: Bearer abcdefghijklmnop"}
        again = await twice(agent, place, "record_decision", run=run, **said)
        assert again["repeated"] is True


async def test_who_submits_a_step_of_a_recorded_run_gets_the_call_that_reports_it(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        refused = await agent.refused("workflow_next", "conflict", run=run, step="step-1", output={})
        assert "is only recorded" in refused["message"]
        assert refused["next"]["tool"] == "record_action"
        await agent.call(refused["next"]["tool"], **refused["next"]["arguments"])
        (done,) = (await agent.call("query_ledger", run=run, kinds=["step_completed"]))["events"]
        assert done["step"] == "step-1"


async def test_a_report_after_the_end_of_a_recorded_run_is_a_note(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        await agent.call("record_action", run=run, description="no more", kind="stopped")
        late = await agent.call("record_action", run=run, description="it was done", step="step-1", outcome="done")
        assert late["status"] == "cancelled"
        assert late["note"] == "recorded as a note: step-1 stays pending"
        found = await agent.call("query_ledger", run=run, kinds=["action"], text="it was done")
        assert len(found["events"]) == 1


async def test_the_texts_of_recorded_steps_stay_visible_and_a_failed_one_shows_in_status(place: Place) -> None:
    async with place.agent() as agent:
        await agent.call("record_plan", plan={"name": "Fix", "steps": ["reproduce it", "mend it"]})
        begun = await agent.call("record_execution_start", plan="fix")
        run = begun["run"]
        assert begun["steps"] == {"step-1": "reproduce it"}
        done = await agent.call("record_action", run=run, description="did", step="step-1", outcome="done")
        assert done["steps"] == {"step-2": "mend it"}
        assert "failure" not in await agent.call("status", run=run)
        await agent.call("record_action", run=run, description="it broke", step="step-2", outcome="failed")
        seen = await agent.call("status", run=run, detail="full")
        assert [step["text"] for step in seen["steps"]] == ["reproduce it", "mend it"]
        assert seen["waiting_for"][0]["text"] == "mend it"
        assert (seen["failure"]["step"], seen["failure"]["message"]) == ("step-2", "it broke")
        (option,) = seen["failure"]["options"]
        assert option["next"]["tool"] == "record_action"
        said = await agent.said("status", run=run)
        assert "failed: step-2: it broke" in said
        assert "waits for an agent on step-2: mend it" in said
        await agent.call(option["next"]["tool"], **option["next"]["arguments"])
        assert (await agent.call("status", run=run))["status"] == "completed"


async def test_a_failed_recorded_step_names_only_calls_that_the_agent_can_make(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent)
        await agent.call("record_action", run=run, description="it broke", step="step-1", outcome="failed")
    for toolsets, tools in ((("run",), []), (("run", "journal"), ["record_action"])):
        async with place.agent(*toolsets) as agent:
            failure = (await agent.call("status", run=run))["failure"]
            assert [option["next"]["tool"] for option in failure.get("options", ())] == tools
    async with place.agent("guide") as agent:
        assert not (await agent.call("workflow_next", run=run))["failure"].get("options")
