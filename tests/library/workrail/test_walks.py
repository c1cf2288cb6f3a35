"""Walks: files of theirs, as they are, from the first to the last step through the real server and engine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from interfaces.mcp.surface.agent import Agent, Place
from library.workrail.garden import FILES, Data, loop, step, workflow

STEPS_MAX = 60


@pytest.fixture
def place(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    shutil.copytree(FILES, place.project / ".handrail" / "workflows")
    return place


async def walked(agent: Agent, name: str, hand_ins: Mapping[str, Any]) -> tuple[list[str], Data]:
    """Do what is asked until nothing is; each step is handed in as it says, the last way for ever."""
    left: dict[str, list[Data]] = {name: one if isinstance(one, list) else [one] for name, one in hand_ins.items()}
    reply = await agent.call("workflow_next", workflow=name)
    path: list[str] = []
    for _ in range(STEPS_MAX):
        if "step" not in reply:
            return path, reply
        path.append(reply["step"]["id"])
        ways = left.get(path[-1].rpartition("].")[2], [{"output": "It is done."}])
        given = ways.pop(0) if len(ways) > 1 else ways[0]
        confirmed = {"confirmed": True} if reply["step"].get("confirm") else {}
        reply = await agent.call(
            "workflow_next", run=reply["run"], step=path[-1], **{"output": "done", **confirmed, **given}
        )
        assert reply["accepted"], reply
    raise AssertionError(f"it never ends: {path}")


@pytest.mark.parametrize(
    ("soil", "way"),
    [
        ({"soilKind": "HEAVY", "soilDepth": 30}, ["choose-the-spot", "add-sand", "plant-it"]),
        ({"soilKind": "sandy"}, ["choose-the-spot", "add-compost", "plant-it"]),
        ({}, ["choose-the-spot", "add-compost", "plant-it"]),
    ],
)
async def test_conditions_lead_the_way_of_v0_0_1(place: Place, soil: Data, way: list[str]) -> None:
    spot = {"output": "The spot is on the NORTH side, with stakes.", "vars": soil}
    async with place.agent() as agent:
        path, reply = await walked(agent, "plant-a-tree", {"choose-the-spot": spot, "plant-it": {"output": "planted"}})
    assert path == way
    assert reply["status"] == "completed"


async def test_criteria_and_confirmation_hold_a_step_of_v0_0_1_back(place: Place) -> None:
    async with place.agent() as agent:
        reply = await agent.call("workflow_next", workflow="plant-a-tree")
        assert reply["clarify"] == ["Which kind of tree?", "How much room is there?"]
        assert reply["step"]["role"].startswith("You are a gardener")
        assert "<gardenName>" in reply["step"]["prompt"]
        run, first = reply["run"], reply["step"]["id"]
        refused = await agent.call("workflow_next", run=run, step=first, output="Here", confirmed=True)
        assert not refused["accepted"]
        assert {one["rule"] for one in refused["findings"]} == {"contains", "matches", "length"}
        good = "The spot is on the south side."
        unconfirmed = await agent.call("workflow_next", run=run, step=first, output=good)
        assert [one["rule"] for one in unconfirmed["findings"]] == ["confirm"]
        reply = await agent.call("workflow_next", run=run, step=first, output=good, confirmed=True)
        assert reply["step"]["id"] == "add-compost"
        reply = await agent.call("workflow_next", run=run, step="add-compost", output="mixed")
        assert "Templates like {% raw %} and {{#each}} and {{ }} stay as they are." in reply["step"]["prompt"]
        refused = await agent.call("workflow_next", run=run, step="plant-it", output="planted and uprooted")
        assert [one["rule"] for one in refused["findings"]] == ["none_of"]
        reply = await agent.call("workflow_next", run=run, step="plant-it", output="{{done}}")
        assert reply["status"] == "completed"


async def test_four_kinds_of_loops_go_round_in_v0_1_0(place: Place) -> None:
    beds = [{"name": "A", "kind": "roses"}, {"name": "B", "kind": "roses"}]
    hand_ins: dict[str, Any] = {
        "look-around": {"vars": {"beds": beds, "canCount": 2, "weedsLeft": True, "dryOutside": "yes"}},
        "weed-one-bed": [{}, {"vars": {"weedsLeft": "no"}}],
        "water-once": [{}, {"vars": {"dryOutside": "No"}}],
    }
    async with place.agent() as agent:
        path, reply = await walked(agent, "garden-rounds", hand_ins)
    assert reply["status"] == "completed"
    assert path == [
        "look-around",
        *("weeding[0].weed-one-bed", "weeding[1].weed-one-bed"),
        *("watering[0].water-once", "watering[1].water-once"),
        *("filling[0].fill-one", "filling[1].fill-one"),
        *("knocking[0].knock", "knocking[1].knock", "knocking[2].knock"),
        *("each-bed[0].look-after", "each-bed[0].cover", "each-bed[1].look-after"),
    ]


async def test_loops_that_have_nothing_to_do_are_passed_in_v0_1_0(place: Place) -> None:
    async with place.agent() as agent:
        path, reply = await walked(agent, "garden-rounds", {"look-around": {"vars": {"dryOutside": False}}})
    assert reply["status"] == "completed"
    assert path == ["look-around", "knocking[0].knock", "knocking[1].knock", "knocking[2].knock"]


async def test_a_step_decides_how_long_a_loop_of_v0_2_0_goes_on(place: Place) -> None:
    hand_ins: dict[str, Any] = {
        "step-1-measure": {"output": {"width": 3}},
        "decide": [
            {"output": {"decision": "continue"}},
            {"output": {"decision": "stop"}, "vars": {"weather": "Rain", "mood": "bad", "topic": "hedges"}},
        ],
    }
    async with place.agent() as agent:
        path, reply = await walked(agent, "garden/plan-a-bed", hand_ins)
        run = await agent.call("status", run=reply["run"], detail="full")
    assert path == [
        "step-1-measure",
        *("drawing[0].draw", "drawing[0].decide", "drawing[1].draw", "drawing[1].decide"),
        "ask",
    ]
    assert run["status"] == "completed"


async def test_fragments_and_values_are_shown_in_v0_2_0(place: Place) -> None:
    async with place.agent() as agent:
        reply = await agent.call(
            "workflow_next", workflow="garden/plan-a-bed", vars={"weather": "RAIN", "topic": "hedges"}
        )
        run = reply["run"]
        refused = await agent.call("workflow_next", run=run, step="step-1-measure", output={"height": 3})
        assert [one["rule"] for one in refused["findings"]] == ["schema"]
        await agent.call("workflow_next", run=run, step="step-1-measure", output={"width": 3})
        await agent.call("workflow_next", run=run, step="drawing[0].draw", output="x")
        reply = await agent.call("workflow_next", run=run, step="drawing[0].decide", output={"decision": "stop"})
        assert "Take an umbrella." in reply["step"]["prompt"]
        assert "Ask about hedges." in reply["step"]["prompt"]


@pytest.mark.parametrize(("weather", "is_open"), [("sunny", True), ("fog", False)])
async def test_everything_of_v0_3_0_is_walked(place: Place, weather: str, is_open: bool) -> None:
    ready = {"kind": "wr.assessment", "assessmentId": "readiness", "dimensions": {"paths": "yes"}}
    assess = {"output": ready, "vars": {"weather": weather}}
    hand_ins = {"invite": {"vars": {"guestCount": 12}}, "assess": assess}
    async with place.agent() as agent:
        path, reply = await walked(agent, "garden/open-day", hand_ins)
    assert path == ["invite", "prepare", "assess", *(["open"] if is_open else [])]
    assert reply["status"] == "completed"


@pytest.mark.parametrize(("decision", "rounds"), [("stop", 0), ("continue", 1)])
async def test_a_decision_before_a_loop_is_heeded(place: Place, decision: str, rounds: int) -> None:
    contract = {"outputContract": {"contractRef": "wr.contracts.loop_control"}}
    rounds_ = loop("while", step("decide", **contract), conditionSource={"kind": "artifact_contract"})
    place.workflow(workflow(step("init", **contract), rounds_, step("last"), id="decided"))
    hand_ins = {"init": {"output": {"decision": decision}}, "decide": {"output": {"decision": "stop"}}}
    async with place.agent() as agent:
        path, reply = await walked(agent, "decided", hand_ins)
    assert reply["status"] == "completed"
    assert path == ["init", *["rounds[0].decide"] * rounds, "last"]


async def test_nested_loops_and_decisions_inside_of_them_are_walked(place: Place) -> None:
    decide = step("decide", outputContract={"contractRef": "wr.contracts.loop_control"})
    inner = loop("until", step("dig"), decide, identity="inner", condition={"var": "never"})
    place.workflow(workflow(loop("forEach", inner, items="beds", identity="outer"), id="nested"))
    again = [{"output": {"decision": "continue"}}, {"output": {"decision": "stop"}}]
    async with place.agent() as agent:
        reply = await agent.call("workflow_next", workflow="nested", vars={"beds": ["a", "b"]})
        path: list[str] = []
        for _ in range(STEPS_MAX):
            if "step" not in reply:
                break
            path.append(reply["step"]["id"])
            given = again[len(path) // 2 - 1] if path[-1].endswith("decide") and len(path) <= 4 else again[1]
            reply = await agent.call("workflow_next", run=reply["run"], step=path[-1], **given)
    assert reply["status"] == "completed"
    assert path == [
        *("outer[0].inner[0].dig", "outer[0].inner[0].decide", "outer[0].inner[1].dig", "outer[0].inner[1].decide"),
        *("outer[1].inner[0].dig", "outer[1].inner[0].decide"),
    ]
