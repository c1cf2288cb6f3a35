"""Hostile arguments, generated from the schemas: always an answer with one of our codes, and nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import INPUTS, KNOWN, Agent, Place, data_of, text_of

DEPTH = 90


def nested(depth: int, *, as_list: bool) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if as_list else {"k": value}
    return value


VALUES: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "zero": 0,
    "minus": -1,
    "int": 7,
    "big_int": 2**63,
    "huge_int": 2**200,
    "endless_int": 10**4_000,
    "float": 1.5,
    "tiny": 5e-324,
    "empty": "",
    "space": " \t\n",
    "string": "x",
    "long": "x" * 25_000,
    "nul": "a\x00b",
    "only_nul": "\x00",
    "controls": "\x01\x1b[31m\x7f\x85",
    "bidi": "a\u202eb\u2066c",
    "combining": "e" + "\u0301" * 500,
    "astral": "\U0001f9d7\U0010ffff",
    "noncharacter": "\ufffe\uffff",
    "separators": "a\u2028b\u2029c\ufeff",
    "template": "{{ inputs }}{% for x in y %}",
    "path": "../../etc/passwd",
    "sql": "'; drop table event; --",
    "brackets": "a[0].b[",
    "dots": ".....",
    "list": [],
    "list_of_null": [None],
    "list_of_long": ["x" * 300] * 300,
    "deep_list": nested(DEPTH, as_list=True),
    "object": {},
    "odd_keys": {"": 1, "\x00": 2, "__proto__": 3, "x" * 1_000: 4, "a.b[0]": 5},
    "deep_object": nested(DEPTH, as_list=False),
    "wide_object": {f"k{n}": n for n in range(2_000)},
}
VALID: Mapping[str, Mapping[str, Any]] = {
    "workflow_list": {},
    "workflow_get": {"id": "w"},
    "workflow_next": {},
    "workflow_validate": {"workflow": "w", "step": "a", "output": 1},
    "save_plan": {"plan": {"name": "P", "steps": []}},
    "execute_plan": {"workflow": "w", "dry_run": True},
    "status": {},
    "control": {"run": "run_nothere", "action": "pause", "reason": "r"},
    "record_compensation": {"run": "run_nothere", "step": "a", "description": "d"},
    "record_plan": {"plan": {"name": "P", "steps": []}},
    "record_execution_start": {"plan": "nothing"},
    "record_decision": {"run": "run_nothere", "decision": "d", "reason": "r"},
    "record_action": {"run": "run_nothere", "description": "d"},
    "query_ledger": {},
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.workflow({"id": "w", "inputs": {}, "steps": [{"id": "a", "prompt": "A."}]})
    return place


def calls(tool: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """For every argument every value, beside arguments that are fine."""
    for name in KNOWN[tool].input["properties"]:
        for label, value in VALUES.items():
            yield f"{name}={label}", {**VALID[tool], name: value}
    for name in KNOWN[tool].input.get("required", ()):
        yield f"no {name}", {key: value for key, value in VALID[tool].items() if key != name}
    for name in ("extra", "", "\x00", "Run", "run ", "__class__", "x" * 1_000):
        yield f"and {name[:10]!r}", {**VALID[tool], name: 1}


@pytest.mark.parametrize("tool", KNOWN)
async def test_any_argument_gets_an_answer_and_nothing_is_written(place: Place, tool: str) -> None:
    async with place.agent() as agent:
        await agent.call("status")
        before = place.events()
        for label, arguments in calls(tool):
            result = await agent.answer(tool, arguments)  # holds the shape of errors and the size
            assert data_of(result).get("name") != "internal", (label, text_of(result))
            if list(INPUTS[tool].iter_errors(arguments)):
                assert data_of(result)["name"] == "invalid", label
                assert data_of(result)["findings"], label
            if result.is_error:
                assert place.events() == before, label
        assert place.events() == before


@pytest.mark.parametrize("tool", KNOWN)
async def test_what_is_wrong_is_named_with_its_place(place: Place, tool: str) -> None:
    async with place.agent() as agent:
        wrong: dict[str, Any] = {name: {"not": "this"} for name in KNOWN[tool].input["properties"]}
        wrong |= {"output": 1, "details": "x", "inputs": 1, "vars": 1, "plan": 1, "definition": 1, "nonsense": 1}
        wrong = {name: value for name, value in wrong.items() if name in KNOWN[tool].input["properties"]}
        refused = await agent.refused(tool, "invalid", **wrong, nonsense=1)
        places = {finding["where"].split(".")[0].split("[")[0] for finding in refused["findings"]}
        assert places == {*wrong, "nonsense"} - {"output"}


@pytest.mark.parametrize("value", VALUES, ids=list(VALUES))
async def test_any_output_is_accepted_or_refused(place: Place, value: str) -> None:
    """Outputs, vars, notes and details are free text of the caller: they may be odd, but never break anything."""
    async with place.agent() as agent:
        await agent.call("record_plan", plan={"name": "Rec", "steps": ["one", "two"]})
        run = (await agent.call("record_execution_start", plan="rec"))["run"]
        guided = (await agent.call("workflow_next", workflow="w"))["run"]
        odd = VALUES[value]
        details = odd if isinstance(odd, dict) else {"k": odd}
        for tool, arguments in (
            ("record_decision", {"run": run, "decision": "d", "reason": "r", "details": details}),
            ("record_action", {"run": run, "description": "d", "step": "step-1", "outcome": "done", "output": odd}),
            ("workflow_next", {"run": guided, "step": "a", "output": odd, "vars": details}),
        ):
            result = await agent.answer(tool, arguments)
            assert data_of(result).get("name", "") in {"", "invalid", "limited"}, (tool, text_of(result))
        await _still_fine(agent, run)
        await _still_fine(agent, guided)


async def _still_fine(agent: Agent, run: str) -> None:
    await agent.call("status", run=run, detail="full")
    assert (await agent.call("query_ledger", run=run, verify=True))["verified"]["ok"]
    await agent.call("workflow_next", run=run)


async def test_half_a_character_breaks_nothing(place: Place) -> None:
    async with place.agent() as agent:
        run = (await agent.call("workflow_next", workflow="w"))["run"]
        for tool, arguments in (
            ("workflow_next", {"run": run, "step": "a", "output": "\ud800"}),
            ("record_decision", {"run": run, "decision": "\udfff", "reason": "r"}),
            ("status", {"run": "\ud800"}),
            ("workflow_list", {"query": "\ud800"}),
            ("workflow_get", {"id": "\ud800"}),
            ("query_ledger", {"text": "\ud800"}),
            ("save_plan", {"plan": {"name": "\ud800", "steps": [{"id": "a", "prompt": "\ud800"}]}}),
        ):
            result = await agent.client.call_tool(tool, arguments)
            assert data_of(result).get("name") != "internal", tool
