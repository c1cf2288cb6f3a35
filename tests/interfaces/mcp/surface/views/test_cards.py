"""Cards in a client's window: they show what is asked; an answer there counts only where the owner says so, only with
the seal of the card, and never because an agent says so."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import mcp_types as mt
import pytest

from handrail.assembly.secrets import secrets_of
from handrail.interfaces.mcp.surface.views.cards import CARD_SIZE_MAX
from interfaces.mcp.surface.agent import ERAS, Agent, Place, data_of, joined, text_of, until, write
from interfaces.mcp.surface.test_asking import yes
from interfaces.mcp.surface.views.test_app_page import APPS

COUNTS = '[approvals]\nchannels = ["terminal", "app"]\n'
STEPS = [{"id": "go", "approve": "Publish {{ inputs.what }}?"}, *(write(f"w{n}", f"{n}.txt") for n in range(5))]
ASKING: dict[str, Any] = {"name": "Ask", "inputs": {"what": {"type": "string"}}, "steps": STEPS}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def asked(agent: Agent, what: str = "it", **more: Any) -> tuple[str, mt.CallToolResult]:
    """A run that waits for an answer, and the answer that shows it."""
    plan = {"definition": ASKING, "inputs": {"what": what}, "wait": "10s"}
    result = await agent.answer("execute_plan", {**plan, **more})
    return data_of(result)["run"], result


def card_of(result: mt.CallToolResult) -> dict[str, Any]:
    assert result.meta is not None
    (card,) = result.meta["handrail/cards"]
    return dict(card)


async def waiting_card(agent: Agent, run: str) -> dict[str, Any] | None:
    """The card of a run, once it asks."""
    result = await agent.answer("status", {"run": run})
    return card_of(result) if "handrail/cards" in (result.meta or {}) else None


def answer(run: str, card: str, action: str = "approve", **more: Any) -> dict[str, Any]:
    return {"run": run, "step": "go", "action": action, "reason": "looks good", "card": card, **more}


@pytest.mark.parametrize("mode", ERAS)
async def test_where_the_owner_says_nothing_the_card_shows_all_and_takes_no_answer(place: Place, mode: str) -> None:
    async with place.agent(mode=mode, extensions=APPS) as agent:
        run, result = await asked(agent)
        card = card_of(result)
        assert (card["text"], card["command"]) == ("Publish it?", f"handrail approve {run} go")
        assert [one["step"] for one in card["effects"]] == [f"w{n}" for n in range(5)], "not only the first few"
        assert card["digest"] == data_of(result)["waiting_for"][0]["digest"]
        assert "an answer by app does not count here" in card["why_not"]
        assert "card" not in card
        for seal in ("made-up", "0" * 32):
            refused = await agent.refused("control", "forbidden", **answer(run, seal))
            assert "config" not in str(refused)
        assert "approval_given" not in place.kinds(run)


@pytest.mark.parametrize("mode", ERAS)
async def test_where_the_owner_lets_it_count_an_answer_with_the_seal_is_recorded(place: Place, mode: str) -> None:
    place.home_config(COUNTS)
    async with place.agent(mode=mode, extensions=APPS, name="claude-desktop") as agent:
        run, result = await asked(agent)
        card = card_of(result)
        assert "why_not" not in card
        assert card["card"] not in text_of(result) + json.dumps(data_of(result)), "what models see has no seal"
        await agent.call("control", **answer(run, card["card"]))
        await agent.until(run, "completed")
        (event,) = (await agent.call("query_ledger", run=run, kinds=["approval_given"]))["events"]
        assert event["actor"].startswith("person:")
        assert event["data"]["channel"] == "app:claude-desktop"
        assert (event["data"]["digest"], event["data"]["reason"]) == (card["digest"], "looks good")
        again = await agent.call("control", **answer(run, card["card"]))
        assert again["repeated"] is True
        assert place.kinds(run).count("approval_given") == 1


async def test_the_card_has_each_call_in_full_and_a_long_body_does_not_hide_the_address(place: Place) -> None:
    place.home_config(COUNTS)
    call = {"body": "b" * 600, "method": "POST", "url": "https://attacker.example.net/orders"}
    steps = [STEPS[0], {"id": "order", "tool": "http.request", "effect": "irreversible", "args": call}]
    async with place.agent(extensions=APPS) as agent:
        _, result = await asked(agent, definition={**ASKING, "steps": steps})
        (ahead,) = card_of(result)["ahead"]
        assert ahead["args"] == call
        steps[1]["args"] = {**call, "body": "b" * (CARD_SIZE_MAX + 1)}
        _, result = await asked(agent, definition={**ASKING, "steps": steps})
        assert "card" not in card_of(result), "what does not fit can't be answered"


async def test_a_no_on_the_card_is_a_no(place: Place) -> None:
    place.home_config(COUNTS)
    async with place.agent(extensions=APPS) as agent:
        run, result = await asked(agent)
        await agent.call("control", **answer(run, card_of(result)["card"], "reject"))
        assert place.kinds(run).count("approval_rejected") == 1


async def test_also_there_an_agent_can_not_approve_its_own_run(place: Place) -> None:
    """Without the seal it is the agent that answers; and no seal but that of this card, for this client, is one."""
    place.home_config(COUNTS)
    async with place.serving() as server, joined(server, extensions=APPS) as agent:
        run, result = await asked(agent)
        other, shown = await asked(agent, "another")
        await agent.refused("control", "forbidden", run=run, action="approve", step="go", reason="r")
        async with joined(server, extensions=APPS, name="another-client") as stranger:
            seals = [
                "made-up",
                "é",
                card_of(shown)["card"],
                card_of(await stranger.answer("status", {"run": run}))["card"],
            ]
            for seal in seals:
                await agent.refused("control", "conflict", **answer(run, seal))
        await agent.refused("control", "invalid", **answer(run, card_of(result)["card"], "cancel"))
        await agent.refused("control", "conflict", **answer(other, card_of(result)["card"]))
        assert not {"approval_given", "run_cancelled"} & {*place.kinds(run), *place.kinds(other)}


async def test_the_seal_of_a_question_that_has_changed_counts_no_more(place: Place) -> None:
    place.home_config(COUNTS)
    place.workflow(
        {
            "id": "w",
            "steps": [
                {"id": "p", "prompt": "P."},
                {"id": "go", "approve": "Publish {{ vars.v }}?"},
                write(),
                {"id": "q", "prompt": "Q.", "after": []},
            ],
        }
    )
    async with place.agent(extensions=APPS) as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await agent.call("workflow_next", run=run, step="p", output=1, vars={"v": "1.0"})
        old = await until(partial(waiting_card, agent, run))
        assert old["text"] == "Publish 1.0?"
        await agent.call("workflow_next", run=run, step="q", output=1, vars={"v": "6.66"})
        await agent.refused("control", "conflict", **answer(run, old["card"]))
        new = await until(partial(waiting_card, agent, run))
        assert (new["text"], new["card"] != old["card"]) == ("Publish 6.66?", True)
        assert "approval_given" not in place.kinds(run)
        await agent.call("control", **answer(run, new["card"]))
        assert place.kinds(run).count("approval_given") == 1


@pytest.mark.parametrize(
    ("config", "plan", "why"),
    [
        ("passphrase = true\n", {}, "approvals need a passphrase here"),
        ("", {"by": ["managers"]}, "this is for managers"),
        ("", {"not_by": "starter"}, "started this run"),
    ],
)
async def test_everything_else_that_is_asked_of_an_answer_is_asked_here_too(
    place: Place, config: str, plan: dict[str, Any], why: str
) -> None:
    place.home_config(COUNTS + config)
    definition = {"name": "P", "steps": [{"id": "go", "approve": "Go?", **plan}]}
    async with place.agent(extensions=APPS) as agent:
        run, result = await asked(agent, definition=definition, inputs={})
        assert why in card_of(result)["why_not"]
        refused = await agent.refused("control", "forbidden", **answer(run, "0" * 32))
        assert why in refused["message"]


async def test_a_form_of_the_client_is_not_shown_for_an_answer_on_the_card(place: Place) -> None:
    place.home_config('[approvals]\nchannels = ["app", "elicitation"]\n')
    person = yes()
    async with place.agent(extensions=APPS, elicitation_callback=person) as agent:
        run, result = await asked(agent)
        await agent.call("control", **answer(run, card_of(result)["card"]))
        await agent.until(run, "completed")
        assert person.asked == []


async def test_what_is_too_long_to_show_can_not_be_answered(place: Place) -> None:
    place.home_config(COUNTS)
    async with place.agent(extensions=APPS) as agent:
        run, result = await asked(agent, "x" * (CARD_SIZE_MAX + 1_000))
        card = card_of(result)
        assert "there is more to read" in card["why_not"]
        assert ("card" in card, "effects" in card, card["unshown"]) == (False, False, 5)
        assert card["command"] == f"handrail approve {run} go"


async def test_a_client_that_shows_no_pages_gets_no_cards(place: Place) -> None:
    place.home_config(COUNTS)
    async with place.agent() as agent:
        _, result = await asked(agent)
        assert "handrail/cards" not in (result.meta or {})


async def test_a_card_has_no_secret(place: Place) -> None:
    async with place.agent(extensions=APPS) as agent:
        run, _ = await asked(agent, "hunter22")
        secrets_of(place.settings(secrets_in="file")).keep("KEY", "hunter22", None)
    async with place.agent(extensions=APPS) as agent:
        shown = await agent.answer("status", {"run": run})
        assert "hunter22" not in shown.model_dump_json()
        assert card_of(shown)["text"].startswith("Publish ")
