"""Resources, prompts and completions: what clients show; each is also available through a tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as mt
import pytest

from handrail.library.schemas.structure import schema_text
from interfaces.mcp.surface.agent import ERAS, Agent, Place, write

WORKFLOW = {
    "id": "review",
    "name": "Review a change",
    "description": "Read it, judge it.",
    "inputs": {"change": {"type": "string", "description": "which"}, "depth": {"type": "integer", "default": 1}},
    "steps": [{"id": "look", "prompt": "Read {{ inputs.change }}."}, write()],
}
OWN = ["plan_task", "handle_failure", "review_run", "resume_work"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.workflow(WORKFLOW)
    return place


async def content(agent: Agent, uri: str) -> mt.TextResourceContents:
    (one,) = (await agent.client.read_resource(uri)).contents
    assert isinstance(one, mt.TextResourceContents)
    assert str(one.uri) == uri
    return one


async def data(agent: Agent, uri: str) -> Any:
    one = await content(agent, uri)
    assert one.mime_type == "application/json"
    return json.loads(one.text)


@pytest.mark.parametrize("mode", ERAS)
async def test_what_can_be_read_is_listed(place: Place, mode: str) -> None:
    async with place.agent(mode=mode) as agent:
        listed = (await agent.client.list_resources()).resources
        assert [str(one.uri) for one in listed] == [
            *("handrail://guide", "handrail://schema/workflow", "handrail://runs", "handrail://workflows/review"),
        ]
        templates = (await agent.client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in templates] == [
            "handrail://workflows/{id}",
            "handrail://runs/{run}",
            "handrail://runs/{run}/journal",
            "handrail://runs/{run}/graph",
        ]
        for one in listed:
            assert (await agent.client.read_resource(str(one.uri))).contents


@pytest.mark.parametrize("mode", ERAS)
async def test_each_of_the_seven_resources_can_be_read(place: Place, mode: str) -> None:
    async with place.agent(mode=mode) as agent:
        run = (await agent.call("workflow_next", workflow="review", inputs={"change": "#1"}))["run"]
        guide = await content(agent, "handrail://guide")
        assert guide.mime_type == "text/markdown"
        for name in agent.offered - {"record_compensation"}:
            assert name in guide.text
        assert await data(agent, "handrail://schema/workflow") == json.loads(schema_text())
        shown = await agent.call("workflow_get", id="review", detail="full")
        assert await data(agent, "handrail://workflows/review") == shown["definition"]
        (listed,) = (await data(agent, "handrail://runs"))["runs"]
        assert listed["run"] == run
        seen = [await data(agent, f"handrail://runs/{run}"), await agent.call("status", run=run, detail="full")]
        for one in seen:
            assert one["steps"][0].pop("waited_ms", 0) >= 0, "the agent has the step, so this grows from look to look"
        assert seen[0] == seen[1]
        journal = await data(agent, f"handrail://runs/{run}/journal")
        assert journal["events"] == (await agent.call("query_ledger", run=run))["events"]
        graph = await content(agent, f"handrail://runs/{run}/graph")
        assert graph.mime_type == "text/vnd.mermaid"
        assert graph.text.startswith("flowchart")


async def test_a_graph_shows_how_far_the_run_is(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="review", inputs={"change": "#1"}))["run"]
        before = (await content(agent, f"handrail://runs/{run}/graph")).text
        await agent.call("workflow_next", run=run, step="look", output=1)
        after = (await content(agent, f"handrail://runs/{run}/graph")).text
        assert "completed" not in before
        assert "completed" in after


async def test_a_marketplace_workflow_has_a_slash_in_its_uri(place: Place) -> None:
    place.workflow({**WORKFLOW, "id": "acme/review"})
    async with place.agent() as agent:
        assert (await data(agent, "handrail://workflows/acme/review"))["id"] == "acme/review"


async def test_a_long_journal_continues_with_the_tool(place: Place) -> None:
    async with place.agent() as agent:
        await agent.call("record_plan", plan={"name": "P", "steps": ["one"]})
        run = (await agent.call("record_execution_start", plan="p"))["run"]
        for n in range(520):
            await agent.call("record_decision", run=run, decision=f"d{n}", reason="r")
        journal = await data(agent, f"handrail://runs/{run}/journal")
        more = await agent.call("query_ledger", run=run, cursor=journal["cursor"])
        assert [event["n"] for event in journal["events"]] == list(range(1, 501))
        assert [event["n"] for event in more["events"]] == list(range(501, 522))


@pytest.mark.parametrize("mode", ERAS)
async def test_our_prompts_and_every_workflow_are_listed(place: Place, mode: str) -> None:
    async with place.agent(mode=mode) as agent:
        prompts = (await agent.client.list_prompts()).prompts
        assert [one.name for one in prompts] == [*OWN, "review"]
        review = prompts[-1]
        assert (review.title, review.description) == ("Review a change", "Read it, judge it.")
        assert [(one.name, one.required) for one in review.arguments or ()] == [("change", True), ("depth", False)]


async def text(agent: Agent, name: str, **arguments: str) -> str:
    (message,) = (await agent.client.get_prompt(name, arguments)).messages
    assert message.role == "user"
    assert isinstance(message.content, mt.TextContent)
    return message.content.text


async def test_our_prompts_name_what_they_are_about_and_tools_that_exist(place: Place) -> None:
    async with place.agent() as agent:
        assert "ship it" in await text(agent, "plan_task", task="ship it")
        for name in ("handle_failure", "review_run", "resume_work"):
            assert "run_abc" in await text(agent, name, run="run_abc")
        for name in OWN:
            words = await text(agent, name)
            assert any(tool in words for tool in agent.offered)


async def test_braces_in_an_argument_are_only_words(place: Place) -> None:
    async with place.agent() as agent:
        assert "{task} {0} {run.__class__}" in await text(agent, "plan_task", task="{task} {0} {run.__class__}")


async def test_a_workflow_as_a_prompt_says_how_to_start_it_with_what_was_given(place: Place) -> None:
    async with place.agent() as agent:
        words = await text(agent, "review", change="#42", unknown="x")
        assert "- change: #42" in words
        assert "unknown" not in words
        assert '"workflow": "review"' in words


async def test_a_workflow_named_like_one_of_our_prompts_does_not_hide_it(place: Place) -> None:
    place.workflow({"id": "plan_task", "steps": [{"id": "a", "prompt": "A."}]})
    async with place.agent() as agent:
        names = [one.name for one in (await agent.client.list_prompts()).prompts]
        assert names == [*OWN, "review"]


async def complete(agent: Agent, ref: Any, name: str, value: str) -> list[str]:
    return (await agent.client.complete(ref, {"name": name, "value": value})).completion.values


@pytest.mark.parametrize("mode", ERAS)
async def test_ids_of_runs_and_workflows_are_completed(place: Place, mode: str) -> None:
    place.workflow({**WORKFLOW, "id": "release"})
    place.workflow({**WORKFLOW, "id": "pre-review"})
    async with place.agent(mode=mode) as agent:
        runs = [
            (await agent.call("workflow_next", workflow="review", inputs={"change": "#1"}))["run"] for _ in range(2)
        ]
        by_prompt = mt.PromptReference(type="ref/prompt", name="handle_failure")
        by_uri = mt.ResourceTemplateReference(type="ref/resource", uri="handrail://runs/{run}")
        for ref in (by_prompt, by_uri):
            assert set(await complete(agent, ref, "run", "")) == set(runs)
            assert await complete(agent, ref, "run", runs[0]) == [runs[0]]
            assert await complete(agent, ref, "run", "nothing") == []
        workflows = mt.ResourceTemplateReference(type="ref/resource", uri="handrail://workflows/{id}")
        assert await complete(agent, workflows, "id", "re") == ["release", "review", "pre-review"]
        assert await complete(agent, workflows, "colour", "re") == []


async def test_completions_are_bounded(place: Place) -> None:
    for n in range(150):
        place.workflow({"id": f"workflow-{n:03}", "steps": [{"id": "a", "prompt": "A."}]})
    async with place.agent() as agent:
        ref = mt.ResourceTemplateReference(type="ref/resource", uri="handrail://workflows/{id}")
        result = (await agent.client.complete(ref, {"name": "id", "value": "workflow"})).completion
        assert len(result.values) == 100


async def test_lists_of_hundreds_are_paged_without_loss(place: Place) -> None:
    for n in range(450):
        place.workflow({"id": f"workflow-{n:03}", "steps": [{"id": "a", "prompt": "A."}]})
    async with place.agent() as agent:
        names: list[str] = []
        cursor: str | None = None
        while True:
            page = await agent.client.list_prompts(cursor=cursor)
            names += [one.name for one in page.prompts]
            if page.next_cursor is None:
                break
            cursor = page.next_cursor
        assert names == [*OWN, "review", *(f"workflow-{n:03}" for n in range(450))]
