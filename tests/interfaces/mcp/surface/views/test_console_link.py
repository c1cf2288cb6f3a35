"""The link to the console in answers: there while a server of this home is up, plain, and for nothing."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail.assembly.sole_server import sole_server
from handrail.interfaces.mcp.surface.views import console_link
from handrail.interfaces.mcp.surface.views.console_link import ConsoleLink
from interfaces.mcp.surface.agent import Place, data_of, text_of, write

URL = "http://127.0.0.1:7420"
STEPS = [{"id": "a", "title": "First", "prompt": "P"}, {"id": "second", "title": "Title", "prompt": "Prompt"}]
TOKENS_OF_A_STEP = 60


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.workflow({"id": "w", "version": "1.0.0", "steps": STEPS})
    return place


@contextmanager
def serving(place: Place, console: str = URL) -> Iterator[None]:
    """A server of this home that has said where it is."""
    with sole_server(place.settings()) as announce:
        announce(URL, console)
        yield


@pytest.fixture
def looks_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console_link, "KEPT_S", 0.0)


@pytest.mark.usefixtures("looks_each_time")
async def test_answers_about_a_run_link_to_its_page_while_a_server_is_up(place: Place) -> None:
    async with place.agent() as agent:
        started = await agent.call("workflow_next", workflow="w")
        assert "console" not in started
        run = started["run"]
        with serving(place):
            answers = [
                await agent.call("workflow_next", run=run),
                await agent.call("status", run=run),
                await agent.call("control", run=run, action="pause", reason="r"),
                await agent.call("control", run=run, action="resume", reason="r"),
            ]
            assert {one["console"] for one in answers} == {f"{URL}/runs/{run}"}
            executed = await agent.call("execute_plan", definition={"name": "P", "steps": [write()]}, wait="5s")
            assert executed["console"] == f"{URL}/runs/{executed['run']}"
            assert "console" not in await agent.call("status"), "a list of runs has no page of one"
            refused = await agent.refused("status", "not_found", run="run_22222222")
            assert "console" not in refused
        assert "console" not in await agent.call("status", run=run)


async def test_an_agent_that_may_not_approve_reads_where_a_person_can(place: Place) -> None:
    asking = {"name": "P", "steps": [{"id": "ok", "approve": "Ship it?"}, write(id="w")]}
    with serving(place):
        async with place.agent() as agent:
            run = (await agent.call("execute_plan", definition=asking, wait="5s"))["run"]
            refused = await agent.refused("control", "forbidden", run=run, action="approve", reason="me")
            assert refused["hint"].endswith(f"in the console: {URL}/runs/{run}")
            said = await agent.said("status", run=run)
    assert said.index("Ship it?") < said.index("a person answers with") < said.index("; then: ")


async def test_the_fixed_words_of_a_step_answer_with_the_link_cost_at_most_60_tokens(place: Place) -> None:
    with serving(place):
        async with place.agent() as agent:
            first = await agent.answer("workflow_next", {"workflow": "w"})
            run = data_of(first)["run"]
            assert text_of(first).endswith(f"\nconsole {URL}/runs/{run}"), "the agent can tell its user"
            result = await agent.answer("workflow_next", {"run": run, "step": "a", "output": "done"})
    assert data_of(result)["console"] == f"{URL}/runs/{run}"
    in_words = text_of(result)
    for value in (run, "waiting", "second", "Title", "Prompt"):
        in_words = in_words.replace(value, "")
    in_data = json.dumps(_emptied(data_of(result)), separators=(",", ":"))
    assert (len(in_data) + len(in_words)) / 4 <= TOKENS_OF_A_STEP


def _emptied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _emptied(one) for key, one in value.items()}
    return [_emptied(one) for one in value] if isinstance(value, list) else ""


@pytest.mark.parametrize(
    "address",
    ["", "http://127.0.0.1:7420/?ticket=abc", "http://me:secret@127.0.0.1:7420", "javascript:alert(1)", "http://a b"],
)
async def test_an_address_that_is_not_plain_is_no_link(place: Place, address: str) -> None:
    with serving(place, address):
        assert await ConsoleLink(place.settings()).of("run_22222222") == ""


async def test_a_server_that_is_just_starting_or_has_died_is_no_link(place: Place) -> None:
    settings = place.settings()
    with sole_server(settings):
        assert await ConsoleLink(settings).of("run_22222222") == "", "it has not said yet where it is"
    (place.home / "server.json").write_text(f'{{"url":"{URL}","pid":1,"started":"","project":"","console":"{URL}"}}')
    assert await ConsoleLink(settings).of("run_22222222") == "", "its file stayed behind, its lock did not"


async def test_a_hundred_calls_look_once_and_never_on_the_event_loop(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = ConsoleLink(place.settings())
    looked: list[bool] = []

    def slow(_: object) -> None:
        looked.append(True)
        time.sleep(0.2)

    monkeypatch.setattr(console_link, "running_server", slow)
    started_s = time.perf_counter()
    look = asyncio.ensure_future(link.of("run_22222222"))
    await asyncio.sleep(0)
    assert [await link.of("run_22222222") for _ in range(100)] == [""] * 100
    assert time.perf_counter() - started_s < 0.1, "calls that come meanwhile wait for nothing"
    await look
    assert looked == [True]
