"""The page in the window of a client, in a real browser: it shows the run, and an answer there goes the way of every
call of that client, or is not offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as mt
import pytest

from handrail.assembly.sole_server import sole_server
from interfaces.mcp.surface.agent import Agent, Place, data_of, joined, write
from interfaces.mcp.surface.views.test_app_page import APPROVAL_PAGE, APPS, RUN_PAGE
from outside.apps.host import Scene, app_host

URL = "http://127.0.0.1:7420"
PLAN: dict[str, Any] = {
    "name": "Ship a release",
    "steps": [write("notes", title="Write notes"), {"id": "go", "approve": "Publish <b>2.4.0</b>?"}, write("w", "b")],
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def page(agent: Agent, uri: str) -> str:
    (one,) = (await agent.client.read_resource(uri)).contents
    assert isinstance(one, mt.TextResourceContents)
    return one.text


def on_wire(result: mt.CallToolResult) -> dict[str, Any]:
    return result.model_dump(mode="json", by_alias=True, exclude_none=True)


async def test_a_person_answers_in_the_window_where_that_counts(place: Place) -> None:
    place.home_config('[approvals]\nchannels = ["app"]\n')
    async with (
        place.serving() as server,
        joined(server, name="desk", extensions=APPS) as agent,
        app_host(agent, place.folder / "browser") as host,
    ):
        result = await agent.answer("execute_plan", {"definition": PLAN, "wait": "10s"})
        run = data_of(result)["run"]
        steps = [{"see": "Publish <b>2.4.0</b>?"}, {"type": "looks good"}, {"press": "Approve"}, {"see": "Completed"}]
        seen = await host.shown(Scene(await page(agent, RUN_PAGE), {}, on_wire(result), steps))
        assert seen["problem"] == "", seen["text"]
        assert seen["said"][:2] == ["ui/initialize", "ui/notifications/initialized"]
        assert {call["name"] for call in host.calls} == {"status", "control"}
        assert "Write notes" in seen["text"]
        (event,) = (await agent.call("query_ledger", run=run, kinds=["approval_given"]))["events"]
        assert (event["data"]["channel"], event["data"]["reason"]) == ("app:desk", "looks good")


async def test_where_it_does_not_count_the_window_says_where_a_person_answers(place: Place) -> None:
    with sole_server(place.settings()) as announce:
        announce(URL, URL)
        async with (
            place.serving() as server,
            joined(server, extensions=APPS) as agent,
            app_host(agent, place.folder / "browser") as host,
        ):
            run = (await agent.call("execute_plan", definition=PLAN, wait="10s"))["run"]
            asked = {"run": run, "action": "approve", "step": "go", "reason": "the tests pass"}
            refused = await agent.answer("control", asked)
            assert refused.is_error
            steps = [{"see": "not in this window"}, {"press": "Answer in the console"}, {"hear": "ui/open-link"}]
            seen = await host.shown(Scene(await page(agent, APPROVAL_PAGE), asked, on_wire(refused), steps))
            assert seen["problem"] == "", seen["text"]
            assert f"handrail approve {run} go" in seen["text"]
            assert seen["needed"] <= seen["height"], "the window is as high as what it shows"
            assert "Approve" not in seen["buttons"]
            assert f"{URL}/approvals/{run}/go" in seen["said"]
            assert {call["name"] for call in host.calls} == {"status"}
            assert "approval_given" not in place.kinds(run)
