"""Approvals and confirmations: an agent can't give them; the user can, in either protocol era."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mcp_types as mt
import pytest
from mcp.client import ClientRequestContext
from mcp.shared.exceptions import MCPError

from handrail.domain.errors import Forbidden
from handrail.interfaces.mcp.shell_caller import SdkCaller
from handrail.interfaces.mcp.surface.caller import UserQuestion
from interfaces.mcp.surface.agent import ERAS, MODERN, Agent, Place, data_of, joined, until, write

ASKING = {
    "name": "Ask",
    "inputs": {"what": {"type": "string"}},
    "steps": [{"id": "go", "approve": "Publish {{ inputs.what }}?"}, write()],
}
CONFIRM = {"id": "w", "steps": [{"id": "a", "prompt": "A.", "confirm": True}]}


class Person:
    """A user who always gives the same answer."""

    def __init__(self, action: str, content: Mapping[str, Any] | None = None) -> None:
        self.action, self.content = action, content
        self.asked: list[str] = []

    async def __call__(self, _: ClientRequestContext, params: mt.ElicitRequestParams) -> mt.ElicitResult:
        self.asked.append(params.message)
        assert isinstance(params, mt.ElicitRequestFormParams)
        assert params.requested_schema["type"] == "object"
        return mt.ElicitResult.model_validate({"action": self.action, "content": self.content})


async def asked_by(agent: Agent, arguments: Mapping[str, Any], **more: Any) -> Any:
    """The result of a control call whose question the client doesn't answer itself."""
    session: Any = agent.client.session
    return await session.call_tool("control", dict(arguments), allow_input_required=True, **more)


def yes(**more: Any) -> Person:
    return Person("accept", {"answer": "approve", **more})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_an_agent_can_not_approve_its_own_run(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        for action in ("approve", "reject"):
            refused = await agent.refused("control", "forbidden", run=run, action=action, step="go", reason="fine")
            assert refused["code"] == -32004
            assert "handrail approve" in refused["hint"]
        assert (await agent.call("status", run=run))["status"] == "waiting"
        assert not (place.project / "a.txt").exists()


async def test_an_agent_may_approve_if_the_configuration_says_so(place: Place) -> None:
    place.config("agents_may_approve = true\n")
    async with place.agent() as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        await agent.call("control", run=run, action="approve", step="go", reason="fine")
        await agent.until(run, "completed")


@pytest.mark.parametrize("mode", ERAS)
async def test_the_user_is_asked_and_their_yes_counts(place: Place, mode: str) -> None:
    person = yes(reason="looks good")
    async with place.agent(mode=mode, elicitation_callback=person) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        await agent.call("control", run=run, action="approve", step="go", reason="the tests pass")
        await agent.until(run, "completed")
        (asked,) = person.asked
        assert "Publish it?" in asked
        assert "w: file.write (reversible, has an undo)" in asked, "the user sees what follows"
        assert run in asked
        (event,) = (await agent.call("query_ledger", run=run, kinds=["approval_given"]))["events"]
        assert event["actor"].startswith("person:")
        assert event["data"]["reason"] == "looks good"
        assert event["data"]["channel"] == "elicitation:claude"


@pytest.mark.parametrize(("length", "is_asked"), [(4_000, True), (21_000, False)])
async def test_the_user_is_asked_only_where_everything_can_be_shown(place: Place, length: int, is_asked: bool) -> None:
    person = yes(reason="looks good")
    write = {"tool": "file.write", "args": {"path": "a.txt", "text": f"{'x' * length} its end"}}
    plan = {"id": "long", "steps": [{"id": "go", "approve": "Go?"}, {"id": "w", **write}]}
    async with place.agent(elicitation_callback=person) as agent:
        run = (await agent.call("execute_plan", definition=plan, wait="10s"))["run"]
        approve = {"run": run, "action": "approve", "step": "go", "reason": "fine"}
        if is_asked:
            await agent.call("control", **approve)
            await agent.until(run, "completed")
            assert "its end" in person.asked[0]
        else:
            refused = await agent.refused("control", "forbidden", **approve)
            assert (f"handrail approve {run}" in refused["hint"], person.asked) == (True, [])


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("person", [Person("accept", {"answer": "reject", "reason": "not yet"}), Person("decline")])
async def test_the_user_can_say_no_whatever_the_agent_asked_for(place: Place, mode: str, person: Person) -> None:
    async with place.agent(mode=mode, elicitation_callback=person) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        rejected = await agent.call("control", run=run, action="approve", step="go", reason="the tests pass")
        assert rejected["status"] == "waiting"
        assert rejected["failure"]["step"] == "go"
        (event,) = (await agent.call("query_ledger", run=run, kinds=["approval_rejected"]))["events"]
        assert event["actor"].startswith("person:")
        assert event["data"]["reason"]
        assert not (place.project / "a.txt").exists()


async def broken(_: ClientRequestContext, __: mt.ElicitRequestParams) -> mt.ErrorData:
    return mt.ErrorData(code=mt.INTERNAL_ERROR, message="no window to show it in")


async def test_what_is_no_answer_to_a_form_is_not_the_users_word() -> None:
    class Session:
        async def elicit_form(self, *_: object) -> mt.ElicitResult:
            return mt.ElicitResult.model_validate({"action": "perhaps"})

    context: Any = SimpleNamespace(session=Session(), protocol_version="2025-11-25", request_id=1)
    with pytest.raises(Forbidden, match="not asked"):
        await SdkCaller(context).ask("approval", UserQuestion(text="Go?", form={}), about="it")


async def test_a_client_that_answers_the_question_with_an_error_has_asked_nobody(place: Place) -> None:
    place.workflow(CONFIRM)
    async with place.agent(mode="legacy", elicitation_callback=broken) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        events = place.events(run)
        refused = await agent.refused("control", "forbidden", run=run, action="approve", step="go", reason="fine")
        assert "the user was not asked" in refused["message"]
        assert "no window" not in str(refused)  # a stranger's words
        assert place.events(run) == events
        guided = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.refused("workflow_next", "forbidden", run=guided, step="a", output="x")


@pytest.mark.parametrize("mode", ERAS)
async def test_a_user_who_does_not_answer_has_decided_nothing(place: Place, mode: str) -> None:
    async with place.agent(mode=mode, elicitation_callback=Person("cancel")) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        events = place.events(run)
        await agent.refused("control", "forbidden", run=run, action="approve", step="go", reason="the tests pass")
        assert place.events(run) == events
        assert (await agent.call("status", run=run))["waiting_for"][0]["kind"] == "approval"


@pytest.mark.parametrize("content", [None, {}, {"answer": "maybe"}, {"answer": True}, {"answer": ["approve"]}])
async def test_only_a_clear_yes_is_a_yes(place: Place, content: Any) -> None:
    async with place.agent(elicitation_callback=Person("accept", content)) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        result = await agent.answer("control", {"run": run, "action": "approve", "step": "go", "reason": "r"})
        assert "approval_given" not in place.kinds(run), result
        assert not (place.project / "a.txt").exists()


async def test_the_one_approval_that_is_open_need_not_be_named(place: Place) -> None:
    person = yes()
    async with place.agent(elicitation_callback=person) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        await agent.call("control", run=run, action="approve", reason="the tests pass")
        await agent.until(run, "completed")
        assert len(person.asked) == 1


async def test_the_user_is_asked_only_about_open_approvals(place: Place) -> None:
    person = yes()
    async with place.agent(elicitation_callback=person) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        for step in ("w", "nothing", ""):
            arguments = {"run": run, "action": "approve", "reason": "r", "step": step}
            if step:
                result = await agent.answer("control", arguments)
                assert result.is_error, step
        assert person.asked == []
        await agent.refused("control", "not_found", run="run_nothere", action="approve", reason="r")


async def test_in_the_modern_era_the_question_is_the_answer_and_the_client_calls_again(place: Place) -> None:
    async with place.agent(mode=MODERN, elicitation_callback=yes()) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        arguments = {"run": run, "action": "approve", "step": "go", "reason": "r"}
        asked = await asked_by(agent, arguments)
        assert isinstance(asked, mt.InputRequiredResult)
        assert asked.input_requests is not None
        answers = {key: _approve() for key in asked.input_requests}
        done = await asked_by(agent, arguments, input_responses=answers, request_state=asked.request_state)
        assert isinstance(done, mt.CallToolResult)
        assert data_of(done)["run"] == run
        await agent.until(run, "completed")


def _approve() -> mt.ElicitResult:
    return mt.ElicitResult(action="accept", content={"answer": "approve"})


async def test_an_answer_counts_only_for_what_was_shown(place: Place) -> None:
    """The state of one question, sent with a call about another, is not an answer to it."""
    async with place.agent(mode=MODERN, elicitation_callback=yes()) as agent:
        runs = [
            (await agent.call("execute_plan", definition=ASKING, inputs={"what": what}, wait="10s"))["run"]
            for what in ("the draft", "the secrets")
        ]
        draft, secrets = ({"run": run, "action": "approve", "step": "go", "reason": "r"} for run in runs)
        asked = await asked_by(agent, draft)
        with pytest.raises(MCPError) as refused:
            await asked_by(agent, secrets, input_responses={"approval": _approve()}, request_state=asked.request_state)
        assert refused.value.code == mt.INVALID_PARAMS
        assert not any("approval_given" in place.kinds(run) for run in runs)


async def test_an_answer_to_a_question_that_was_asked_before_is_asked_for_again(place: Place) -> None:
    """The step was rejected and is asked again: a yes to the first question is not a yes to the second."""
    person = yes()
    async with place.agent(mode=MODERN, elicitation_callback=person) as agent:
        plan = {"name": "P", "steps": [{"id": "go", "approve": "Publish?", "expires": "1d"}]}
        run = (await agent.call("execute_plan", definition=plan, wait="10s"))["run"]
        arguments = {"run": run, "action": "approve", "step": "go", "reason": "r"}
        first = await asked_by(agent, arguments)
        person.content = {"answer": "reject"}
        await agent.call("control", run=run, action="reject", step="go", reason="not yet")
        await agent.call("control", run=run, action="retry", step="go", reason="ask again")
        await agent.until(run, "waiting")
        answers = {"input_responses": {"approval": _approve()}, "request_state": first.request_state}
        again = await asked_by(agent, arguments, **answers)
        assert isinstance(again, mt.InputRequiredResult)
        assert "approval_given" not in place.kinds(run)


async def test_an_answer_without_its_sealed_state_is_asked_for_again(place: Place) -> None:
    async with place.agent(mode=MODERN, elicitation_callback=yes()) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        arguments = {"run": run, "action": "approve", "step": "go", "reason": "r"}
        forged = {"approval": _approve()}
        again = await asked_by(agent, arguments, input_responses=forged)
        assert isinstance(again, mt.InputRequiredResult)
        with pytest.raises(MCPError) as tampered:
            await asked_by(agent, arguments, input_responses=forged, request_state="made up")
        assert tampered.value.code == mt.INVALID_PARAMS
        assert "approval_given" not in place.kinds(run)


async def test_a_question_outlives_the_server_that_asked_it(place: Place) -> None:
    async with place.agent(mode=MODERN, elicitation_callback=yes()) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        arguments = {"run": run, "action": "approve", "step": "go", "reason": "r"}
        asked = await asked_by(agent, arguments)
    async with place.agent(mode=MODERN, elicitation_callback=yes()) as agent:
        answers = {"approval": _approve()}
        done = await asked_by(agent, arguments, input_responses=answers, request_state=asked.request_state)
        assert isinstance(done, mt.CallToolResult)
        await agent.until(run, "completed")


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("person", "accepted"),
    [
        (Person("accept", {"agree": True}), True),
        (Person("accept", {"agree": False}), False),
        (Person("accept", {}), False),
        (Person("decline"), False),
        (Person("cancel"), False),
    ],
)
async def test_a_step_to_be_confirmed_is_shown_to_the_user(
    place: Place, mode: str, person: Person, accepted: bool
) -> None:
    place.workflow(CONFIRM)
    async with place.agent(mode=mode, elicitation_callback=person) as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        handed = await agent.call("workflow_next", run=run, step="a", output={"what": "I did"})
        assert handed["accepted"] is accepted
        assert "I did" in person.asked[-1]
        decisions = (await agent.call("query_ledger", run=run, kinds=["decision_recorded"]))["events"]
        assert len(decisions) == accepted
        person.asked.clear()


async def test_what_the_agent_says_the_user_agreed_to_is_not_asked_again(place: Place) -> None:
    place.workflow(CONFIRM)
    person = Person("decline")
    async with place.agent(elicitation_callback=person) as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        assert (await agent.call("workflow_next", run=run, step="a", output=1, confirmed=True))["accepted"]
        assert person.asked == []


async def test_an_approval_for_a_group_is_not_given_by_somebody_else(place: Place) -> None:
    place.home_config('[groups]\nmanagers = ["somebody-else"]\n')
    plan = {"name": "P", "steps": [{"id": "go", "approve": "Go?", "by": ["managers"]}]}
    async with place.agent(elicitation_callback=yes()) as agent:
        run = (await agent.call("execute_plan", definition=plan, wait="10s"))["run"]
        refused = await agent.refused("control", "forbidden", run=run, action="approve", reason="r")
        assert "managers" in refused["message"]


async def test_an_approval_is_given_from_another_client_in_the_meantime(place: Place) -> None:
    async with (
        place.serving() as server,
        joined(server, elicitation_callback=yes()) as one,
        joined(server, elicitation_callback=yes(), mode="legacy") as other,
    ):
        run = (await one.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        await other.call("control", run=run, action="approve", reason="r")
        await one.until(run, "completed")
        again = await one.call("control", run=run, action="approve", step="go", reason="later")
        assert again["repeated"] is True
        assert place.kinds(run).count("approval_given") == 1


@pytest.mark.parametrize("mode", ERAS)
async def test_an_elicitation_that_the_client_answers_with_an_error_is_a_refusal(place: Place, mode: str) -> None:
    async def broken(_: ClientRequestContext, _params: mt.ElicitRequestParams) -> mt.ErrorData:
        return mt.ErrorData(code=mt.INTERNAL_ERROR, message="no user here")

    async with place.agent(mode=mode, elicitation_callback=broken) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        arguments = {"run": run, "action": "approve", "step": "go", "reason": "r"}
        if mode == MODERN:  # a client without sessions sends no error on: its own call fails
            with pytest.raises(MCPError):
                await agent.answer("control", arguments)
        else:
            await agent.refused("control", "forbidden", **arguments)
        assert "approval_given" not in place.kinds(run)
        assert (await agent.call("status", run=run))["waiting_for"][0]["step"] == "go"


async def test_an_approval_for_nobody_who_is_known_here_is_refused_and_the_hint_names_no_setting(place: Place) -> None:
    plan = {"name": "P", "steps": [{"id": "go", "approve": "Go?", "by": ["managers"]}]}
    person = yes()
    async with place.agent(elicitation_callback=person) as agent:
        saved = await agent.call("save_plan", plan=plan)
        (finding,) = [one for one in saved["findings"] if one["rule"] == "unknown_approver"]
        assert "no person or group is known here as managers" in finding["message"]
        run = (await agent.call("execute_plan", definition=plan, wait="10s"))["run"]
        refused = await agent.refused("control", "forbidden", run=run, action="approve", reason="r")
        assert "no person or group is known here by that name" in refused["message"]
        assert "config" not in str(refused)
        assert person.asked == [], "nobody is asked for an answer that does not count"


async def test_where_a_passphrase_is_required_the_user_is_not_even_asked_through_the_client(place: Place) -> None:
    place.home_config("[approvals]\npassphrase = true\n")
    person = yes()
    async with place.agent(elicitation_callback=person) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        refused = await agent.refused("control", "forbidden", run=run, action="approve", step="go", reason="r")
        assert "an answer by elicitation:claude does not count" in refused["message"]
        assert person.asked == []


async def test_a_channel_that_does_not_count_is_refused(place: Place) -> None:
    place.home_config('[approvals]\nchannels = ["terminal"]\n')
    async with place.agent(elicitation_callback=yes()) as agent:
        run = (await agent.call("execute_plan", definition=ASKING, inputs={"what": "it"}, wait="10s"))["run"]
        refused = await agent.refused("control", "forbidden", run=run, action="approve", step="go", reason="r")
        assert "an answer by elicitation does not count here: only by terminal" in refused["message"]


async def test_who_had_an_agent_start_the_run_may_not_answer_if_the_step_says_so(place: Place) -> None:
    plan = {"name": "P", "steps": [{"id": "go", "approve": "Go?", "not_by": "starter"}]}
    async with place.agent(elicitation_callback=yes()) as agent:
        run = (await agent.call("execute_plan", definition=plan, wait="10s"))["run"]
        (event,) = (await agent.call("query_ledger", run=run, kinds=["run_started"]))["events"]
        assert event["data"]["behalf"].startswith("person:")
        refused = await agent.refused("control", "forbidden", run=run, action="approve", reason="r")
        assert "started this run" in refused["message"]


async def test_what_an_agent_sees_of_an_approval_is_short_and_names_the_command_for_a_person(place: Place) -> None:
    steps = [{"id": "go", "approve": "Go?"}, *(write(f"w{n}") for n in range(6))]
    async with place.agent() as agent:
        run = (await agent.call("execute_plan", definition={"name": "P", "steps": steps}, wait="10s"))["run"]
        status = await agent.call("status", run=run)
        (one,) = status["waiting_for"]
        assert one["digest"].startswith("sha256:")
        assert one["command"] == f"handrail approve {run} go"
        assert len(one["effects"]) == 4
        assert one["effects"][-1] == "and 3 more steps"
        (listed,) = (await agent.call("status"))["runs"]
        assert "effects" not in listed["waiting_for"][0]


async def test_a_value_that_an_agent_changes_while_the_user_looks_makes_the_answer_a_conflict(place: Place) -> None:
    steps = [
        {"id": "p", "prompt": "P."},
        {"id": "go", "approve": "Publish {{ vars.v }}?"},
        write(),
        {"id": "q", "prompt": "Q.", "after": []},
    ]
    async with place.serving() as server, joined(server) as agent:
        place.workflow({"id": "w", "steps": steps})
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("workflow_next", run=run, step="p", output=1, vars={"v": "1.0"})

        async def meanwhile(_: ClientRequestContext, params: mt.ElicitRequestParams) -> mt.ElicitResult:
            assert "Publish 1.0?" in params.message
            await agent.call("workflow_next", run=run, step="q", output=1, vars={"v": "6.66"})
            return mt.ElicitResult(action="accept", content={"answer": "approve"})

        async with joined(server, elicitation_callback=meanwhile, mode="legacy") as other:
            await until(partial(_waiting, agent, run))
            await other.refused("control", "conflict", run=run, action="approve", step="go", reason="r")
        assert place.kinds(run).count("approval_withdrawn") == 1
        assert "approval_given" not in place.kinds(run)
        (one,) = await until(partial(_waiting, agent, run))
        assert one["text"] == "Publish 6.66?"


async def _waiting(agent: Agent, run: str) -> list[Any] | None:
    waiting = (await agent.call("status", run=run)).get("waiting_for", ())
    return [one for one in waiting if one["kind"] == "approval"] or None
