"""The tasks extension: a run as a task, for clients that declare it; for all others a plain answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Literal

import mcp_types as mt
import pytest
from mcp.client import ClientExtension
from mcp.client.extension import ClaimContext, ResultClaim
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter

from handrail.assembly.secrets import secrets_of
from handrail.domain.run.command import SetVars
from handrail.engine.known_secrets import LOOK_EVERY_S
from handrail.interfaces.mcp.surface.runs.run_tasks import RunTasks
from interfaces.mcp.surface.agent import MODERN, Agent, Place, read, until, write

TASKS = "io.modelcontextprotocol/tasks"
SLOW = {"name": "Slow", "steps": [{"id": "s", "tool": "wait.for", "args": {"duration": "300ms"}}, write()]}
LONG = {"name": "Long", "steps": [write(), {"id": "s", "tool": "wait.for", "args": {"duration": "1h"}}]}
ASKING = {"name": "Ask", "steps": [{"id": "go", "approve": "Publish?"}, write()]}


class TaskResult(mt.Result):
    """A task as `tools/call` answers it."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    poll_interval_ms: int | None = None


async def _keep(result: TaskResult, _: ClaimContext) -> mt.CallToolResult:
    return mt.CallToolResult(content=[], structured_content={"task": result.task_id, "status": result.status})


class Tasks(ClientExtension):
    """A client that follows tasks."""

    identifier = TASKS

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskResult, resolve=_keep)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


class Params(mt.RequestParams):
    """What a request about a task carries."""

    task_id: str
    input_responses: dict[str, Any] | None = None


class Ask(mt.Request[Params, str]):
    """A request about a task."""

    method: str
    params: Params


async def ask(agent: Agent, method: str, task: str, **more: Any) -> dict[str, Any]:
    session: Any = agent.client.session
    asked = Ask(method=method, params=Params(task_id=task, **more))
    answer: dict[str, Any] = await session.send_request(asked, TypeAdapter(dict[str, Any]))
    return answer


async def started(agent: Agent, definition: dict[str, Any]) -> str:
    """The task that a waiting call is answered with."""
    session: Any = agent.client.session
    arguments = {"definition": definition, "wait": "25s"}
    result = await session.call_tool("execute_plan", arguments, allow_claimed=True)
    assert isinstance(result, TaskResult)
    return result.task_id


async def reached(agent: Agent, task: str, *statuses: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        answer = await ask(agent, "tasks/get", task)
        return answer if answer["status"] in statuses else None

    return await until(look)


async def test_a_waiting_call_is_answered_with_a_task_whose_id_is_the_run(place: Place) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        task = await started(agent, SLOW)
        assert task.startswith("run_")
        working = await ask(agent, "tasks/get", task)
        assert working["taskId"] == task
        assert working["status"] in {"working", "completed"}
        ended = await reached(agent, task, "completed")
        assert ended["result"]["structuredContent"]["status"] == "completed"
        assert ended["result"]["structuredContent"]["run"] == task
        assert ended["createdAt"] <= ended["lastUpdatedAt"]
        assert (await agent.call("status", run=task))["status"] == "completed"


async def test_a_question_of_a_task_shows_no_secret_that_was_stored_since(place: Place) -> None:
    place.home_config('secrets_in = "file"\n')
    async with place.agent(mode=MODERN, extensions=[Tasks()], elicitation_callback=silent) as agent:
        task = await started(agent, {"name": "Ask", "steps": [{"id": "go", "approve": "Use zQ7-Xk_92aB3?"}]})
        assert "zQ7-Xk_92aB3" in str(await reached(agent, task, "input_required"))
        secrets_of(place.settings()).keep("TOKEN", "zQ7-Xk_92aB3", ["*"])
        await asyncio.sleep(2 * LOOK_EVERY_S)
        asked = str(await ask(agent, "tasks/get", task))
        assert ("zQ7-Xk_92aB3" in asked, "Use [redacted]?" in asked) == (False, True)


async def test_without_the_extension_the_answer_is_plain(place: Place) -> None:
    async with place.agent(mode=MODERN) as agent:
        ended = await agent.call("execute_plan", definition=SLOW, wait="20s")
        assert ended["status"] == "completed"


async def test_without_wait_the_answer_is_plain_even_with_the_extension(place: Place) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        assert (await agent.call("execute_plan", definition=SLOW))["run"]


async def test_an_approval_is_a_question_of_the_task_and_its_answer_moves_the_run(place: Place) -> None:
    for answer, end in (("approve", "completed"), ("reject", "waiting")):
        async with place.agent(mode=MODERN, extensions=[Tasks()], elicitation_callback=silent) as agent:
            task = await started(agent, ASKING)
            asked = await reached(agent, task, "input_required")
            (key,) = asked["inputRequests"]
            assert "Publish?" in str(asked["inputRequests"][key])
            response = {"action": "accept", "content": {"answer": answer, "reason": "I looked"}}
            await ask(agent, "tasks/update", task, input_responses={key: response})
            await agent.until(task, end)
            kind = "approval_given" if answer == "approve" else "approval_rejected"
            (event,) = (await agent.call("query_ledger", run=task, kinds=[kind]))["events"]
            assert event["actor"].startswith("person:")
            assert event["data"]["reason"] == "I looked"
            assert event["data"]["channel"] == "task:claude"
            assert "w: file.write" in str(asked["inputRequests"][key]), "the user sees what follows"
            await ask(agent, "tasks/update", task, input_responses={key: response})  # too late, and harmless
            assert place.kinds(task).count(kind) == 1


async def test_a_question_that_was_not_answered_stays(place: Place) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()], elicitation_callback=silent) as agent:
        task = await started(agent, ASKING)
        (key,) = (await reached(agent, task, "input_required"))["inputRequests"]
        before = place.events(task)
        for responses in ({key: {"action": "cancel"}}, {"other": {"action": "accept"}}, {}, {key: "nonsense"}):
            await ask(agent, "tasks/update", task, input_responses=responses)
        assert place.events(task) == before
        await reached(agent, task, "input_required")


YES = {"action": "accept", "content": {"answer": "approve"}}


async def silent(_: Any, _params: Any) -> mt.ElicitResult:
    return mt.ElicitResult(action="cancel")


async def test_an_answer_counts_only_under_the_key_that_the_question_came_with(place: Place) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()], elicitation_callback=silent) as agent:
        task = await started(agent, ASKING)
        (key,) = (await reached(agent, task, "input_required"))["inputRequests"]
        other = await started(agent, ASKING)
        (others,) = (await reached(agent, other, "input_required"))["inputRequests"]
        for forged in ("go", "go#", f"go#{'0' * 32}", others):
            with pytest.raises(MCPError, match="asks for something else"):
                await ask(agent, "tasks/update", task, input_responses={forged: YES})
        assert "approval_given" not in place.kinds(task)
        await ask(agent, "tasks/update", task, input_responses={key: YES})
        await agent.until(task, "completed")


async def test_an_answer_does_not_count_if_the_question_changes_while_it_is_taken(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = RunTasks._answer

    async def after_a_change(tasks: RunTasks, program: Any, task: str, one: Any, *more: Any) -> None:
        dispatch = program.writer.dispatch
        await dispatch.grant(task, SetVars(vars={"t": "EVIL"}), actor="agent:claude")
        async with asyncio.timeout(20):
            while (await dispatch.current(task)).step("go").digest in {"", one.digest}:  # until it is asked again
                await asyncio.sleep(0.01)
        await taken(tasks, program, task, one, *more)

    monkeypatch.setattr(RunTasks, "_answer", after_a_change)
    async with place.agent(mode=MODERN, extensions=[Tasks()], elicitation_callback=silent) as agent:
        changing = {"name": "P", "steps": [{"id": "go", "approve": "Publish?"}, write("w", text="{{ vars.t }}")]}
        task = await started(agent, changing)
        (key,) = (await reached(agent, task, "input_required"))["inputRequests"]
        with pytest.raises(MCPError, match="has changed since you looked"):
            await ask(agent, "tasks/update", task, input_responses={key: YES})
        assert "approval_given" not in place.kinds(task)


async def test_a_client_that_can_not_ask_its_user_is_given_no_question_and_can_answer_none(place: Place) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        task = await started(agent, ASKING)
        waiting = await reached(agent, task, "completed")
        assert waiting["result"]["structuredContent"]["waiting_for"][0]["command"] == f"handrail approve {task} go"
        with pytest.raises(MCPError, match="can't ask its user"):
            await ask(agent, "tasks/update", task, input_responses={"go": YES})
        assert "approval_given" not in place.kinds(task)


async def test_where_a_passphrase_is_required_an_answer_of_a_task_does_not_count(place: Place) -> None:
    place.home_config("[approvals]\npassphrase = true\n")
    async with place.agent(mode=MODERN, extensions=[Tasks()], elicitation_callback=silent) as agent:
        task = await started(agent, ASKING)
        (key,) = (await reached(agent, task, "input_required"))["inputRequests"]
        with pytest.raises(MCPError, match="an answer by task:claude does not count: approvals need a passphrase"):
            await ask(agent, "tasks/update", task, input_responses={key: YES})
        assert "approval_given" not in place.kinds(task)


async def test_a_run_that_waits_for_a_decision_is_the_callers_turn(place: Place) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        task = await started(agent, {"name": "P", "steps": [write(), read()]})
        answer = await reached(agent, task, "completed")
        status = answer["result"]["structuredContent"]
        assert status["status"] == "waiting"
        assert {option["action"] for option in status["failure"]["options"]} >= {"retry", "compensate"}


async def test_a_task_that_is_cancelled_ends_the_run_and_can_be_cancelled_again(place: Place) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        task = await started(agent, LONG)
        await ask(agent, "tasks/cancel", task)
        await reached(agent, task, "cancelled")
        assert (await agent.call("status", run=task))["status"] == "cancelled"
        before = place.events(task)
        await ask(agent, "tasks/cancel", task)
        assert place.events(task) == before


async def test_a_task_outlives_the_server_that_started_it(place: Place) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        task = await started(agent, SLOW)
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        await reached(agent, task, "completed")


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_a_task_that_is_unknown_is_a_protocol_error(place: Place, method: str) -> None:
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        for task in ("run_nothere", "", "\x00", "x" * 5_000):
            with pytest.raises(MCPError) as refused:
                await ask(agent, method, task)
            assert refused.value.code == mt.INVALID_PARAMS


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
async def test_tasks_are_for_clients_that_declare_them(place: Place, method: str) -> None:
    async with place.agent(mode=MODERN) as agent:
        run = (await agent.call("execute_plan", definition=LONG))["run"]
        with pytest.raises(MCPError) as refused:
            await ask(agent, method, run)
        assert refused.value.code == mt.MISSING_REQUIRED_CLIENT_CAPABILITY
        assert (await agent.call("status", run=run))["status"] == "running"


async def test_a_store_that_can_not_be_opened_is_no_unknown_task(place: Place) -> None:
    place.home.write_text("not a folder")
    async with place.agent(mode=MODERN, extensions=[Tasks()]) as agent:
        with pytest.raises(MCPError) as refused:
            await ask(agent, "tasks/get", "run_x")
        assert refused.value.code == mt.INTERNAL_ERROR
        assert "can't be" in refused.value.message


async def test_a_client_of_the_handshake_era_gets_a_plain_answer_whatever_it_declares(place: Place) -> None:
    async with place.agent(mode="legacy", extensions=[Tasks()]) as agent:
        ended = await agent.call("execute_plan", definition=SLOW, wait="20s")
        assert ended["status"] == "completed"
