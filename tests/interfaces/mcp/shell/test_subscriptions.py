"""Subscriptions: every subscriber is notified of a change, in either era, whether this process made it or another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as mt
import pytest
from mcp import MCPDeprecationWarning
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, ServerEvent

from handrail.interfaces.mcp import shell_subscribers
from interfaces.mcp.surface.agent import MODERN, PATIENCE_S, Agent, Place, joined

WORKFLOW = {"id": "w", "steps": [{"id": "a", "prompt": "A."}, {"id": "b", "prompt": "B."}]}
RUNS = "handrail://runs"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.workflow(WORKFLOW)
    return place


class Heard:
    """The notifications that a client got."""

    def __init__(self) -> None:
        self.uris: set[str] = set()
        self.news = asyncio.Event()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, mt.ResourceUpdatedNotification):
            self.tell(str(message.params.uri))

    def tell(self, uri: str) -> None:
        self.uris.add(uri)
        self.news.set()

    async def until(self, *uris: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.uris.issuperset(uris):
                self.news.clear()
                await self.news.wait()


async def subscribe(agent: Agent, *uris: str) -> None:
    for uri in uris:
        with pytest.warns(MCPDeprecationWarning):
            await agent.client.subscribe_resource(uri)


async def unsubscribe(agent: Agent, uri: str) -> None:
    with pytest.warns(MCPDeprecationWarning):
        await agent.client.unsubscribe_resource(uri)


async def first(stream: AsyncIterator[ServerEvent], wanted: ServerEvent) -> None:
    """Wait for an event of a stream."""
    with anyio.fail_after(PATIENCE_S):
        async for event in stream:
            if event == wanted:
                return


async def test_in_the_modern_era_a_stream_tells_of_runs_that_this_process_changes(place: Place) -> None:
    async with place.agent(mode=MODERN) as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        addresses = [f"{RUNS}/{run}", f"{RUNS}/{run}/journal", f"{RUNS}/{run}/graph", RUNS]
        for uri in addresses:
            async with agent.client.listen(resource_subscriptions=[uri]) as stream:
                assert stream.honored.resource_subscriptions == [uri]
                await agent.call("record_decision", run=run, decision=uri, reason="r")
                await first(stream, ResourceUpdated(uri=uri))


async def test_a_stream_tells_only_of_what_it_was_asked_for(place: Place) -> None:
    async with place.agent(mode=MODERN) as agent:
        runs = [(await agent.call("workflow_next", workflow="w"))["run"] for _ in range(2)]
        async with agent.client.listen(resource_subscriptions=[f"{RUNS}/{runs[1]}"]) as stream:
            for run in runs:
                await agent.call("record_decision", run=run, decision="d", reason="r")
            with anyio.fail_after(PATIENCE_S):
                assert await anext(stream) == ResourceUpdated(uri=f"{RUNS}/{runs[1]}")


async def test_a_stream_hears_of_what_another_process_does(place: Place) -> None:
    async with place.agent(mode=MODERN) as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        uri = f"{RUNS}/{run}"
        async with agent.client.listen(resource_subscriptions=[uri]) as stream:
            with place.beside("run", "pause", run, "--reason", "lunch") as pausing:
                code, _, err = await asyncio.to_thread(pausing.end)
            assert code == 0, err
            await first(stream, ResourceUpdated(uri=uri))
        assert (await agent.call("status", run=run))["status"] == "paused"


async def test_a_workflow_that_is_added_changes_prompts_and_resources(place: Place) -> None:
    async with place.agent(mode=MODERN) as agent:
        before = {one.name for one in (await agent.client.list_prompts()).prompts}
        async with agent.client.listen(prompts_list_changed=True, resources_list_changed=True) as stream:
            place.workflow({**WORKFLOW, "id": "new"})
            await first(stream, PromptsListChanged())
            await first(stream, ResourcesListChanged())
        after = {one.name for one in (await agent.client.list_prompts()).prompts}
        assert after - before == {"new"}


async def test_in_the_handshake_era_a_subscription_tells_of_runs_that_this_process_changes(place: Place) -> None:
    heard = Heard()
    async with place.agent(mode="legacy", message_handler=heard) as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        wanted = [f"{RUNS}/{run}", f"{RUNS}/{run}/journal", RUNS]
        await subscribe(agent, *wanted)
        await agent.call("workflow_next", run=run, step="a", output=1)
        await heard.until(*wanted)
        assert heard.uris == set(wanted)


async def test_in_the_handshake_era_a_subscription_hears_of_what_another_process_does(place: Place) -> None:
    heard = Heard()
    async with place.agent(mode="legacy", message_handler=heard) as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        await subscribe(agent, f"{RUNS}/{run}")
        with place.beside("run", "pause", run, "--reason", "lunch") as pausing:
            code, _, err = await asyncio.to_thread(pausing.end)
        assert code == 0, err
        await heard.until(f"{RUNS}/{run}")


async def test_a_subscription_that_has_ended_tells_no_more(place: Place) -> None:
    heard = Heard()
    async with place.agent(mode="legacy", message_handler=heard) as agent:
        runs = [(await agent.call("workflow_next", workflow="w"))["run"] for _ in range(2)]
        uris = [f"{RUNS}/{run}" for run in runs]
        await subscribe(agent, *uris)
        await unsubscribe(agent, uris[0])
        for run in runs:
            await agent.call("record_decision", run=run, decision="d", reason="r")
        await heard.until(uris[1])
        assert heard.uris == {uris[1]}


async def test_a_client_can_subscribe_again_right_after_it_ended_its_last_subscription(place: Place) -> None:
    heard = Heard()
    async with place.agent(mode="legacy", message_handler=heard) as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        uri = f"{RUNS}/{run}"
        for n in range(5):
            await subscribe(agent, uri)
            heard.uris.clear()
            await agent.call("record_decision", run=run, decision=str(n), reason="r")
            await heard.until(uri)
            await unsubscribe(agent, uri)


async def test_every_client_hears_what_it_asked_for_and_one_that_leaves_disturbs_no_other(place: Place) -> None:
    heard = [Heard(), Heard()]
    async with place.serving() as server, _listening(server, heard[0]) as stays:
        async with _listening(server, heard[1]) as leaves:
            run = (await stays.call("workflow_next", workflow="w"))["run"]
            for agent in (stays, leaves):
                await subscribe(agent, f"{RUNS}/{run}")
            await stays.call("record_decision", run=run, decision="one", reason="r")
            for one in heard:
                await one.until(f"{RUNS}/{run}")
        heard[0].uris.clear()
        await stays.call("record_decision", run=run, decision="two", reason="r")
        await heard[0].until(f"{RUNS}/{run}")


async def test_a_client_that_left_without_a_word_is_forgotten(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shell_subscribers, "SUBSCRIBED_MAX", 1)
    async with place.serving() as server:
        for _ in range(3):  # each finds the one place free again
            async with _listening(server, Heard()) as agent:
                for _ in range(2):
                    await subscribe(agent, RUNS)
                    await unsubscribe(agent, RUNS)
                await subscribe(agent, RUNS)


@asynccontextmanager
async def _listening(server: Any, heard: Heard) -> AsyncIterator[Agent]:
    async with joined(server, mode="legacy", message_handler=heard) as agent:
        yield agent


async def test_a_stream_on_a_store_that_can_not_be_opened_yet_hears_later(place: Place) -> None:
    place.home.write_text("not a folder")
    async with place.agent(mode=MODERN) as agent, agent.client.listen(resource_subscriptions=[RUNS]) as stream:
        place.home.unlink()
        with anyio.fail_after(PATIENCE_S):
            while (await agent.answer("status", {})).is_error:
                await asyncio.sleep(0.05)
            while True:
                await agent.call("workflow_next", workflow="w")
                with anyio.move_on_after(1):
                    assert await anext(stream) == ResourceUpdated(uri=RUNS)
                    break
