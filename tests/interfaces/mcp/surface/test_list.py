"""The list of tools: what models read in every chat. Complete, in order, and cheap."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import mcp_types as mt
import pytest

from interfaces.mcp.surface.agent import ALL, ERAS, Place, data_of, joined, text_of

GUIDE = ["workflow_list", "workflow_get", "workflow_next", "workflow_validate"]
RUN = ["save_plan", "execute_plan", "status", "control", "record_compensation"]
JOURNAL = ["record_plan", "record_execution_start", "record_decision", "record_action", "query_ledger"]
NAMES = {"guide": GUIDE, "run": RUN, "journal": JOURNAL}
READING = {"workflow_list", "workflow_get", "workflow_validate", "status", "query_ledger"}
REQUIRED = {
    "workflow_list": set(),
    "workflow_get": {"id"},
    "workflow_next": set(),
    "workflow_validate": set(),
    "save_plan": {"plan"},
    "execute_plan": set(),
    "status": set(),
    "control": {"run", "action", "reason"},
    "record_compensation": {"run", "step", "description"},
    "record_plan": {"plan"},
    "record_execution_start": {"plan"},
    "record_decision": {"run", "decision", "reason"},
    "record_action": {"run", "description"},
    "query_ledger": set(),
}
ARGUMENTS = {
    "workflow_list": {"of", "query", "category", "tags", "limit", "cursor"},
    "workflow_get": {"id", "version", "detail"},
    "workflow_next": {
        *("workflow", "inputs", "goal", "run", "step", "output", "outcome", "vars", "note", "confirmed", "agent"),
    },
    "workflow_validate": {"definition", "run", "workflow", "step", "output"},
    "save_plan": {"plan", "note"},
    "execute_plan": {"plan", "workflow", "definition", "inputs", "dry_run", "wait", "idempotency_key"},
    "status": {"run", "detail"},
    "control": {"run", "action", "step", "reason", "by", "output", "dry_run"},
    "record_compensation": {"run", "step", "description", "outcome", "details"},
    "record_plan": {"plan"},
    "record_execution_start": {"plan", "inputs", "note"},
    "record_decision": {"run", "decision", "reason", "step", "alternatives", "details"},
    "record_action": {"run", "description", "step", "outcome", "kind", "output", "details"},
    "query_ledger": {
        *("run", "kinds", "step", "actor", "text", "since", "until", "verify", "limit", "cursor"),
    },
}
TOKENS_OF_ALL = 3_000
TOKENS_OF_A_SET = 1_300
TOKENS_OF_A_STEP = 60
INSTRUCTIONS_MAX = 2_000
NAME_MAX = 30


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def listed(place: Place, *toolsets: str, mode: str = "auto") -> mt.ListToolsResult:
    async with place.agent(*toolsets, mode=mode) as agent:
        return await agent.client.list_tools()


def tokens(value: Any) -> float:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":"))) / 4


@pytest.mark.parametrize("mode", ERAS)
async def test_all_fourteen_tools_are_listed_in_one_order_that_never_changes(place: Place, mode: str) -> None:
    first = await listed(place, *ALL, mode=mode)
    second = await listed(place, *reversed(ALL), mode=mode)
    assert [tool.name for tool in first.tools] == [*GUIDE, *RUN, *JOURNAL]
    assert first.tools == second.tools
    assert first.next_cursor is None


@pytest.mark.parametrize("chosen", [("guide",), ("run",), ("journal",), ("guide", "journal"), ("run", "journal")])
async def test_toolsets_are_listed_alone_or_together(place: Place, chosen: tuple[str, ...]) -> None:
    result = await listed(place, *chosen)
    assert [tool.name for tool in result.tools] == [
        name for toolset in ALL if toolset in chosen for name in NAMES[toolset]
    ]


async def test_a_tool_of_another_toolset_does_not_exist(place: Place) -> None:
    async with place.agent("journal") as agent:
        with pytest.raises(Exception, match="there is no tool 'status'"):
            await agent.client.call_tool("status", {})


async def test_every_tool_has_the_arguments_of_the_contract_and_no_others(place: Place) -> None:
    for tool in (await listed(place)).tools:
        assert tool.input_schema["properties"].keys() == ARGUMENTS[tool.name]
        assert set(tool.input_schema.get("required", ())) == REQUIRED[tool.name]
        assert tool.input_schema["additionalProperties"] is False


async def test_every_schema_is_a_schema_and_promises_an_object(place: Place) -> None:
    for tool in (await listed(place)).tools:
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == tool.input_schema["type"] == "object"
        for schema in (tool.input_schema, tool.output_schema):
            jsonschema_rs.Draft202012Validator(schema)
            jsonschema_rs.Draft7Validator(schema)
            assert "$ref" not in json.dumps(schema)


async def test_tools_are_annotated_as_read_only_or_destructive(place: Place) -> None:
    for tool in (await listed(place)).tools:
        hints = tool.annotations
        assert hints is not None
        assert hints.read_only_hint is (tool.name in READING)
        assert bool(hints.destructive_hint) is (tool.name in {"execute_plan", "control"})
        assert hints.idempotent_hint is None or not hints.read_only_hint


async def test_names_are_short_and_plain(place: Place) -> None:
    for tool in (await listed(place)).tools:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", tool.name)
        assert len(tool.name) <= NAME_MAX


async def test_every_description_says_first_when_to_call_the_tool(place: Place) -> None:
    for tool in (await listed(place)).tools:
        assert tool.description is not None
        assert tool.description.startswith("Call ")


async def test_the_whole_list_costs_at_most_3000_tokens_and_each_toolset_1300(place: Place) -> None:
    for chosen, most in ((ALL, TOKENS_OF_ALL), *(((name,), TOKENS_OF_A_SET) for name in ALL)):
        result = await listed(place, *chosen)
        assert tokens(result.model_dump(by_alias=True, exclude_none=True)) <= most


@pytest.mark.parametrize("mode", ERAS)
async def test_the_instructions_are_short_and_start_with_the_point(place: Place, mode: str) -> None:
    async with place.agent(mode="legacy" if mode == "legacy" else "auto") as agent:
        words = agent.client.instructions
        assert words is not None
        assert words.startswith("handrail keeps long tasks on track")
        assert len(words) <= INSTRUCTIONS_MAX
        assert agent.client.server_info is not None
        assert agent.client.server_info.name == "handrail"


async def test_the_instructions_name_only_tools_that_exist(place: Place) -> None:
    async with place.agent() as agent:
        named = set(re.findall(r"\b(?:workflow|record|save|execute|query)_\w+", agent.client.instructions or ""))
        assert named <= agent.offered


async def test_the_fixed_words_of_a_step_answer_cost_at_most_60_tokens(place: Place) -> None:
    """The fixed cost of every step: data and text together, without their values."""
    steps = [{"id": "a", "title": "First", "prompt": "P"}, {"id": "second", "title": "Title", "prompt": "Prompt"}]
    place.workflow({"id": "w", "version": "1.0.0", "steps": steps})
    async with place.agent() as agent:
        started = await agent.call("workflow_next", workflow="w")
        result = await agent.answer("workflow_next", {"run": started["run"], "step": "a", "output": "done"})
        data = data_of(result)
        assert data["step"] == {"id": "second", "title": "Title", "kind": "prompt", "prompt": "Prompt"}
        in_words = text_of(result)
        for value in (data["run"], data["status"], "second", "Title", "Prompt"):
            in_words = in_words.replace(value, "")
        in_data = json.dumps(_emptied(data), separators=(",", ":"))
        assert (len(in_data) + len(in_words)) / 4 <= TOKENS_OF_A_STEP


def _emptied(value: Any) -> Any:
    """The same without its values: keys and brackets."""
    if isinstance(value, dict):
        return {key: _emptied(one) for key, one in value.items()}
    return [_emptied(one) for one in value] if isinstance(value, list) else ""


async def test_two_clients_of_one_server_see_the_same_list(place: Place) -> None:
    async with place.serving() as server, joined(server, mode="legacy") as one, joined(server) as other:
        assert (await one.client.list_tools()).tools == (await other.client.list_tools()).tools
