"""Contracts and assessments: a step is done when what they ask for is there, and blocks until then."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.library.schemas.author_schema import check_against, check_schema
from handrail.library.workrail.contracts import FORMS
from interfaces.mcp.surface.agent import Place
from library.workrail.garden import Data, faults, first, loop, notes, step, workflow

INSTANT = "2026-01-02T03:04:05.678Z"
GOOD: dict[str, Data] = {
    "coding_handoff": {
        "kind": "wr.coding_handoff",
        "version": 1,
        "keyDecisions": ["one store"],
        "knownLimitations": [],
        "testsAdded": ["tests/a.py"],
        "filesChanged": ["a.py"],
        "correctedAssumptions": [{"assumed": "x", "actual": "y"}],
    },
    "discovery_handoff": {
        "kind": "wr.discovery_handoff",
        "version": 1,
        "selectedDirection": "one store",
        "designDocPath": "",
        "confidenceBand": "high",
        "keyInvariants": ["nothing is lost"],
    },
    "shaping_handoff": {
        "kind": "wr.shaping_handoff",
        "version": 1,
        "pitchPath": "/p/pitch.md",
        "selectedShape": "small",
        "appetite": "two days",
        "keyConstraints": [],
        "rabbitHoles": [],
        "outOfScope": [],
        "validationChecklist": ["tests pass"],
    },
    "differentiation_handoff": {
        "kind": "wr.differentiation_handoff",
        "version": 1,
        "schemaVersion": "1.0.0",
        "generatedAt": INSTANT,
        "evidenceFreshness": {"oldestCapturedAt": INSTANT, "newestCapturedAt": INSTANT},
        "validationChecklist": [],
        "shapingHandoff": {
            "rawIdea": "i",
            "problem": "p",
            "baseline": "b",
            "appetiteHint": "small_batch",
            "noGosHints": [],
            "constraints": {"teamSize": 2, "technicalCapabilities": ["python"]},
            "evidenceTopK": ["123e4567-e89b-12d3-a456-426614174000"],
            "defensibilityClaim": {"power": "Branding", "cannibalization": "none"},
        },
    },
    "gate_verdict": {
        "kind": "wr.gate_verdict",
        "version": 1,
        "verdict": "approved",
        "confidence": "low",
        "rationale": "It meets each of the criteria.",
    },
    "review_verdict": {
        "kind": "wr.review_verdict",
        "verdict": "minor",
        "confidence": "high",
        "findings": [{"severity": "nit", "summary": "a name", "file": "a.py"}],
        "summary": "one nit",
    },
}


def contracted(name: str, **more: Any) -> Data:
    return workflow(step(outputContract={"contractRef": f"wr.contracts.{name}", **more}))


def is_right(schema: Any, output: Any) -> bool:
    return not check_against(schema, output)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_contract_is_met_by_its_artifact_in_a_list_or_alone(name: str) -> None:
    schema = first(contracted(name))["output"]
    assert not check_schema(schema)
    good = GOOD[name]
    assert is_right(schema, good)
    assert is_right(schema, {"artifacts": [{"kind": "wr.other"}, good], "notes": "done"})
    assert not notes(contracted(name))


@pytest.mark.parametrize("name", sorted(FORMS))
def test_a_contract_is_not_met_without_its_artifact_or_one_of_its_fields(name: str) -> None:
    schema = first(contracted(name))["output"]
    good, optional = GOOD[name], ("correctedAssumptions",)
    wrong: list[Any] = ["done", {}, [], {"artifacts": []}, {"artifacts": [{"kind": "wr.other"}]}, {"artifacts": good}]
    for output in wrong:
        assert not is_right(schema, output), output
    for key in good.keys() - set(optional):
        less = {one: value for one, value in good.items() if one != key}
        assert not is_right(schema, less), key
        assert not is_right(schema, {"artifacts": [less]}), key
        assert not is_right(schema, {"artifacts": [{**good, key: {}}]}), key
    assert not is_right(schema, {**good, "more": 1})


def test_a_contract_that_is_optional_or_unknown_is_only_shown() -> None:
    for data in (contracted("coding_handoff", required=False), contracted("of_the_future")):
        assert "output" not in first(data)
        assert "does not check it" in notes(data)["steps[0].outputContract"]


SOIL = {"id": "soil", "dimensions": [{"id": "depth", "levels": ["low", "high"]}, {"id": "kind", "levels": ["a", "b"]}]}
LIGHT = {"id": "light", "dimensions": [{"id": "hours", "levels": ["low", "high"]}]}
LOW = {"when": {"anyEqualsLevel": "low"}, "effect": {"kind": "require_followup", "guidance": "Dig deeper."}}


def assessed(*refs: str, consequences: Any = (LOW,), **more: Any) -> Data:
    asked = step(assessmentRefs=list(refs), assessmentConsequences=list(consequences), **more)
    return workflow(asked, assessments=[SOIL, LIGHT])


def judged(name: str = "soil", **dimensions: Any) -> Data:
    return {"kind": "wr.assessment", "assessmentId": name, "dimensions": dimensions}


@pytest.mark.parametrize(
    ("output", "fits"),
    [
        (judged(depth="high", kind="a"), True),
        (judged(depth="low", kind="A"), True),
        (judged(depth={"level": "High", "rationale": "seen"}, kind="a"), True),
        ({"kind": "wr.assessment", "dimensions": {"depth": "high", "kind": "b"}}, True),
        ({"artifacts": [judged(depth="high", kind="b")]}, True),
        (judged(depth="high"), False),
        (judged(depth="middle", kind="a"), False),
        (judged(depth={"rationale": "seen"}, kind="a"), False),
        (judged("light", depth="high", kind="a"), False),
        ("It is fine.", False),
    ],
)
def test_an_assessment_is_submitted_with_all_its_dimensions(output: Any, fits: bool) -> None:
    assert is_right(first(assessed("soil"))["output"], output) is fits


@pytest.mark.parametrize(
    ("output", "is_done"),
    [
        (judged(depth="high", kind="a"), True),
        (judged(depth="LOW", kind="a"), False),
        (judged(depth={"level": "low"}, kind="a"), False),
        ({"artifacts": [judged(depth="high", kind="a")]}, True),
        ({"artifacts": [judged(depth="low", kind="a")]}, False),
    ],
)
def test_a_level_with_a_consequence_blocks_with_its_guidance(output: Any, is_done: bool) -> None:
    (check,) = first(assessed("soil"))["checks"]
    assert check["message"] == "Dig deeper."
    assert is_right(check["schema"], output) is is_done


def test_a_consequence_may_concern_one_assessment_or_one_dimension() -> None:
    of_light = {**LOW, "when": {"anyEqualsLevel": "low", "forAssessment": "light"}}
    data = assessed("soil", "light", consequences=[of_light])
    output = first(data)["output"]
    low_soil = {"artifacts": [judged(depth="low", kind="a"), judged("light", hours="high")]}
    low_light = {"artifacts": [judged(depth="high", kind="a"), judged("light", hours="low")]}
    assert is_right(output, low_soil)
    assert not is_right(output, {"artifacts": low_soil["artifacts"][:1]})
    (check,) = first(data)["checks"]
    assert [is_right(check["schema"], one) for one in (low_soil, low_light)] == [True, False]
    old = {**LOW, "when": {"dimensionId": "kind", "equalsLevel": "b"}}
    (check,) = first(assessed("soil", consequences=[old]))["checks"]
    assert [is_right(check["schema"], judged(depth="low", kind=kind)) for kind in ("a", "b")] == [True, False]


@pytest.mark.parametrize(
    ("consequence", "why"),
    [
        ({"effect": LOW["effect"]}, "does not say when"),
        ({"when": {}}, "names no level"),
        ({**LOW, "effect": {"kind": "explode"}}, "is not what can follow"),
    ],
)
def test_a_consequence_that_means_nothing_is_a_fault(consequence: Data, why: str) -> None:
    ((_, message),) = faults(assessed("soil", consequences=[consequence]))
    assert why in message


def test_a_step_may_have_a_contract_or_decide_about_a_loop_and_be_assessed() -> None:
    both = assessed("soil", consequences=(), outputContract={"contractRef": "wr.contracts.gate_verdict"})
    schema, soil = first(both)["output"], judged(depth="high", kind="a")
    assert is_right(schema, {"artifacts": [soil, GOOD["gate_verdict"]]})
    assert not is_right(schema, {"artifacts": [soil]})
    decide = step("decide", assessmentRefs=["light"], outputContract={"contractRef": "wr.contracts.loop_control"})
    rounds = loop("while", decide, conditionSource={"kind": "artifact_contract"})
    inner = first(workflow(rounds, assessments=[LIGHT]))["steps"][0]
    assert is_right(inner["output"], {"decision": "stop"})
    assert not is_right(inner["checks"][0]["schema"], {"decision": "stop"})


async def test_an_agent_is_held_until_contract_and_assessment_are_right(tmp_path: Any) -> None:
    place = Place(tmp_path)
    place.workflow({**assessed("soil"), "id": "soiled"})
    async with place.agent() as agent:
        reply = await agent.call("workflow_next", workflow="soiled")
        run = reply["run"]
        assert "Submit an object with `artifacts`" in reply["step"]["prompt"]
        refused = await agent.call("workflow_next", run=run, step="dig", output="It is fine.")
        assert not refused["accepted"]
        low = judged(depth="low", kind="a")
        refused = await agent.call("workflow_next", run=run, step="dig", output=low)
        assert [one["message"] for one in refused["findings"]] == ["Dig deeper."]
        reply = await agent.call("workflow_next", run=run, step="dig", output=judged(depth="high", kind="a"))
        assert reply["status"] == "completed"
