"""`status`, `control` and `record_compensation`: every action, legal and not, and what is reported about it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import PATIENCE_S, Agent, Place, read, write

PROMPT = {"name": "P", "steps": [{"id": "a", "prompt": "A."}, {"id": "b", "prompt": "B."}]}
BROKEN = {"name": "Broken", "steps": [write(), read()]}
ACTIONS = ("pause", "resume", "cancel", "retry", "skip", "accept", "compensate", "approve", "reject")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def started(agent: Agent, definition: dict[str, Any]) -> str:
    return str((await agent.call("execute_plan", definition=definition, wait="10s"))["run"])


async def test_a_summary_and_a_full_status_are_as_the_contract_shows(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, BROKEN)
        seen = await agent.call("status", run=run)
        assert seen.keys() == {
            *("run", "workflow", "status", "progress", "waiting_for", "failure", "started", "receipt"),
        }
        assert (seen["status"], seen["progress"]) == ("waiting", {"done": 1, "total": 2})
        (waits,) = seen["waiting_for"]
        assert (waits["kind"], waits["step"]) == ("decision", "r")
        assert waits["since"].endswith("Z")
        failure = seen["failure"]
        assert (failure["step"], failure["category"], failure["attempts"]) == ("r", "not_found", 1)
        assert [option["action"] for option in failure["options"]] == ["retry", "skip", "compensate", "cancel"]
        assert failure["options"][2]["means"] == "undo w"
        full = await agent.call("status", run=run, detail="full")
        assert full.keys() == {*seen.keys(), "steps"}
        steps = {step["id"]: step for step in full["steps"]}
        assert steps["w"].keys() >= {"id", "title", "kind", "status", "attempts", "started", "ended", "by"}
        assert (steps["w"]["status"], steps["w"]["by"], "proof" in steps["w"]) == ("completed", "handrail", False)
        assert (steps["r"]["status"], steps["r"]["category"]) == ("failed", "not_found")


async def test_the_text_of_a_failed_run_says_what_happened_and_lists_every_option(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, BROKEN)
        words = await agent.said("status", run=run)
        assert "not_found" in words
        for action in ("retry", "skip", "compensate", "cancel"):
            assert f'"action":"{action}"' in words


async def test_every_option_that_status_lists_can_be_called_as_it_is(place: Place) -> None:
    async with place.agent() as agent:
        for number in range(4):
            run = await started(agent, BROKEN)
            option = (await agent.call("status", run=run))["failure"]["options"][number]
            await agent.call(option["next"]["tool"], **option["next"]["arguments"])
            ends = {"retry": "waiting", "skip": "completed", "compensate": "compensated", "cancel": "cancelled"}
            await agent.until(run, ends[option["action"]])


async def test_without_a_run_the_open_ones_are_listed(place: Place) -> None:
    async with place.agent() as agent:
        assert await agent.call("status") == {"runs": [], "total": 0}
        run = await started(agent, PROMPT)
        (one,) = (await agent.call("status"))["runs"]
        assert (one["run"], one["status"], one["waiting_for"][0]["step"]) == (run, "waiting", "a")


async def test_pause_and_resume(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, PROMPT)
        paused = await agent.call("control", run=run, action="pause", reason="lunch")
        assert (paused["status"], paused["reason"]) == ("paused", "lunch")
        resumed = await agent.call("control", run=run, action="resume", reason="back")
        assert resumed["status"] in {"running", "waiting"}
        await agent.until(run, "waiting")


async def test_cancel_offers_to_undo_what_was_done(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, {"name": "P", "steps": [write(), {"id": "p", "prompt": "P."}]})
        cancelled = await agent.call("control", run=run, action="cancel", reason="off")
        assert cancelled["status"] == "cancelled"
        (option,) = cancelled["options"]
        assert (option["action"], option["means"]) == ("compensate", "undo w")
        await agent.call(option["next"]["tool"], **option["next"]["arguments"])
        await agent.until(run, "compensated")
        assert not (place.project / "a.txt").exists()


async def test_cancel_is_final_and_can_be_repeated(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, PROMPT)
        await agent.call("control", run=run, action="cancel", reason="off")
        events = place.events(run)
        again = await agent.call("control", run=run, action="cancel", reason="off")
        assert again["status"] == "cancelled"
        assert place.events(run) == events
        refused = await agent.refused("control", "conflict", run=run, action="resume", reason="on")
        assert "legal now: fork" in refused["hint"] or "fork" in refused["hint"]


async def test_retry_skip_and_the_reason_is_kept(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, BROKEN)
        await agent.call("control", run=run, action="retry", reason="perhaps now", by="ann")
        await agent.until(run, "waiting")
        await agent.call("control", run=run, action="skip", step="r", reason="not needed")
        await agent.until(run, "completed")
        found = await agent.call("query_ledger", run=run, kinds=["step_retried", "step_skipped"])
        assert [event["data"]["reason"] for event in found["events"]] == ["perhaps now (for ann)", "not needed"]


async def test_a_fork_shares_what_was_done_before_the_step_and_names_what_it_does_not_undo(place: Place) -> None:
    async with place.agent() as agent:
        plan = {"name": "P", "steps": [write("a", "a.txt"), write("b", "b.txt"), {"id": "c", "prompt": "C."}]}
        run = await started(agent, plan)
        forked = await agent.call("control", run=run, action="fork", step="b", reason="another way")
        assert forked["run"] != run
        assert forked["fork"] == {"run": run, "step": "b", "effects": ["b"]}
        again = await agent.until(forked["run"], "waiting")
        assert {step["id"]: step["status"] for step in again["steps"]}["a"] == "completed"
        assert place.kinds(forked["run"]).count("attempt_started") == 1
        assert (await agent.call("status", run=run))["status"] == "waiting"


@pytest.mark.parametrize("action", ["fork", "retry", "skip", "accept"])
async def test_a_step_that_is_not_there_is_not_found(place: Place, action: str) -> None:
    async with place.agent() as agent:
        run = await started(agent, PROMPT)
        await agent.refused("control", "not_found", run=run, action=action, step="z", reason="r")


@pytest.mark.parametrize(
    ("state", "legal"),
    [
        ("waiting", {"pause", "cancel", "compensate"}),
        ("paused", {"resume", "cancel", "compensate"}),
        ("completed", set()),
        ("cancelled", {"cancel", "compensate"}),
    ],
)
async def test_an_action_that_is_not_legal_is_a_conflict_that_says_what_is(
    place: Place, state: str, legal: set[str]
) -> None:
    async with place.agent() as agent:
        for action in ACTIONS:
            run = await _run_that_is(agent, state)
            result = await agent.answer("control", {"run": run, "action": action, "reason": "why not"})
            if action in legal:
                assert not result.is_error, (action, result)
                continue
            data = result.structured_content or {}
            assert data["name"] == ("forbidden" if data["code"] == -32004 else "conflict"), (action, data)
            if data["name"] == "conflict":
                assert "legal now: " in data["hint"]
                assert data["next"] == {"tool": "status", "arguments": {"run": run}}


async def _run_that_is(agent: Agent, state: str) -> str:
    run = await started(agent, {"name": "P", "steps": [{"id": "a", "prompt": "A."}]})
    match state:
        case "paused":
            await agent.call("control", run=run, action="pause", reason="r")
        case "cancelled":
            await agent.call("control", run=run, action="cancel", reason="r")
        case "completed":
            await agent.call("workflow_next", run=run, step="a", output=1)
    return run


async def test_a_run_that_does_not_exist_is_not_found_with_the_nearest(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, PROMPT)
        refused = await agent.refused("control", "not_found", run=run[:-1], action="pause", reason="r")
        assert refused["next"] == {"tool": "status", "arguments": {}}
        looked = await agent.refused("status", "not_found", run=run[:-1])
        assert run in looked["hint"]


async def test_a_reason_is_needed(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, PROMPT)
        for reason in ("", "  ", "\n"):
            await agent.refused("control", "invalid", run=run, action="pause", reason=reason)
        assert (await agent.call("status", run=run))["status"] == "waiting"


async def test_the_step_must_be_named_if_there_are_several(place: Place) -> None:
    plan = {"name": "P", "steps": [read("a", after=[]), read("b", after=[])]}
    async with place.agent() as agent:
        run = await started(agent, plan)
        refused = await agent.refused("control", "invalid", run=run, action="retry", reason="r")
        assert refused["message"].startswith("which step to retry? ")


async def test_accept_settles_a_step_whose_effect_is_unknown(place: Place) -> None:
    asked = asyncio.Event()

    async def never_answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(never_answer, "127.0.0.1", 0) as silent:
        port = silent.sockets[0].getsockname()[1]
        place.config(f'[http]\nallow = ["127.0.0.1:{port}"]\n')
        post = {"id": "s", "tool": "http.request", "args": {"method": "POST", "url": f"http://127.0.0.1:{port}/"}}
        place.workflow({"id": "w", "steps": [post, {"id": "p", "prompt": "It was {{ steps.s.output.body }}."}]})
        with place.beside("run", "start", "w") as starting:
            run = await asyncio.to_thread(starting.line)
            async with asyncio.timeout(PATIENCE_S):
                await asked.wait()
            starting.kill()
    async with place.agent() as agent:
        seen = await agent.until(run, "waiting")
        assert [option["action"] for option in seen["failure"]["options"]] == ["retry", "accept", "skip", "cancel"]
        assert "category" not in seen["failure"]
        await agent.call("control", run=run, action="accept", step="s", reason="I saw it", output={"body": "there"})
        resumed = await agent.call("workflow_next", run=run)
        assert resumed["step"]["prompt"] == "It was there."


async def test_a_dry_run_says_what_an_action_would_do_and_changes_nothing(place: Place) -> None:
    async with place.agent() as agent:
        run = await started(agent, BROKEN)
        before = await agent.call("status", run=run)
        seen = await agent.call("control", run=run, action="compensate", reason="r", dry_run=True)
        assert (seen["status"], seen["legal"], seen["allowed"]) == ("dry_run", True, True)
        assert [(one["step"], one["tool"], one["is_undo"]) for one in seen["calls"]] == [("w", "file.write", True)]
        refused = await agent.call("control", run=run, action="approve", step="r", reason="r", dry_run=True)
        assert (refused["legal"], refused["allowed"]) == (False, False)
        assert await agent.call("status", run=run) == before
