"""What a change of a workflow means for those who use it."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.compatibility import Weight, bump, changes, is_enough, next_version

OLD: dict[str, Any] = {
    "id": "ship",
    "name": "Ship",
    "version": "1.2.0",
    "inputs": {"version": {"type": "string"}, "mode": {"enum": ["a", "b"], "default": "a"}},
    "steps": [
        {"id": "notes", "prompt": "Write.", "output": {"type": "object", "properties": {"file": {"type": "string"}}}},
        {"id": "build", "each": "[1]", "steps": [{"id": "make", "prompt": "Make."}]},
    ],
    "outputs": {"file": "steps.notes.output.file"},
}
NOTES: dict[str, Any] = OLD["steps"][0]
LOOP: dict[str, Any] = OLD["steps"][1]
INPUTS: dict[str, Any] = OLD["inputs"]


def with_notes(**keys: Any) -> dict[str, Any]:
    return {"steps": [{**NOTES, **keys}, LOOP]}


def with_file(**keys: Any) -> dict[str, Any]:
    return with_notes(output={**NOTES["output"], **keys})


@pytest.mark.parametrize(
    ("change", "where", "weight"),
    [
        ({"inputs": {"mode": INPUTS["mode"]}}, "inputs.version", Weight.BREAKING),
        ({"inputs": {**INPUTS, "more": {"type": "string"}}}, "inputs.more", Weight.BREAKING),
        ({"inputs": {**INPUTS, "more": {"default": 1}}}, "inputs.more", Weight.MINOR),
        ({"inputs": {**INPUTS, "mode": {"enum": ["a", "b"]}}}, "inputs.mode", Weight.BREAKING),
        ({"inputs": {**INPUTS, "mode": {"enum": ["a", "b"], "default": "b"}}}, "inputs.mode", Weight.MINOR),
        ({"inputs": {**INPUTS, "mode": {"enum": ["a", "b", "c"], "default": "a"}}}, "inputs.mode", Weight.MINOR),
        ({"inputs": {**INPUTS, "mode": {"enum": ["a"], "default": "a"}}}, "inputs.mode", Weight.BREAKING),
        ({"inputs": {**INPUTS, "version": {"type": "integer"}}}, "inputs.version", Weight.BREAKING),
        ({"inputs": {**INPUTS, "version": {"type": "string", "description": "x"}}}, "inputs.version", Weight.PATCH),
        ({"steps": [NOTES]}, "steps.build", Weight.BREAKING),
        ({"steps": [NOTES, {**LOOP, "steps": ["Make."]}]}, "steps.build.make", Weight.BREAKING),
        ({"steps": [*OLD["steps"], "Tell."]}, "steps.step-3", Weight.MINOR),
        ({"steps": [{"id": "notes", "tool": "a.b"}, LOOP]}, "steps.notes", Weight.BREAKING),
        (with_notes(prompt="Write well."), "steps.notes.prompt", Weight.PATCH),
        (with_notes(when="true"), "steps.notes.when", Weight.MINOR),
        (with_file(properties={"file": {"type": "integer"}}), "steps.notes.output", Weight.BREAKING),
        (with_file(required=["file"]), "steps.notes.output", Weight.BREAKING),
        (with_file(properties={"file": {"type": "string"}, "b": {}}), "steps.notes.output", Weight.MINOR),
        (with_file(properties={"file": {"type": "string", "title": "x"}}), "steps.notes.output", Weight.PATCH),
        ({"outputs": {}}, "outputs.file", Weight.BREAKING),
        ({"outputs": {**OLD["outputs"], "more": "1"}}, "outputs.more", Weight.MINOR),
        ({"on_failure": "stop"}, "on_failure", Weight.MINOR),
        ({"name": "Ship it"}, "name", Weight.PATCH),
        ({"id": "sail"}, "id", Weight.BREAKING),
    ],
)
def test_a_change_has_its_place_and_its_weight(change: dict[str, Any], where: str, weight: Weight) -> None:
    found = changes(definition_from(OLD), definition_from({**OLD, **change}))
    assert (where, weight) in {(one.where, one.weight) for one in found}
    assert bump(found) is weight, found


def test_the_same_twice_has_not_changed() -> None:
    assert bump(changes(definition_from(OLD), definition_from(OLD))) is None


@pytest.mark.parametrize(
    ("version", "weight", "wanted"),
    [
        ("1.2.3", Weight.BREAKING, "2.0.0"),
        ("1.2.3", Weight.MINOR, "1.3.0"),
        ("1.2.3", Weight.PATCH, "1.2.4"),
        ("0.2.3", Weight.BREAKING, "0.3.0"),
        ("0.2.3", Weight.MINOR, "0.2.4"),
        ("0.2.3", Weight.PATCH, "0.2.4"),
        ("1.2.3", None, "1.2.3"),
        ("", Weight.BREAKING, ""),
    ],
)
def test_a_change_asks_for_a_version(version: str, weight: Weight | None, wanted: str) -> None:
    assert next_version(version, weight) == wanted


def test_a_version_that_is_too_low_is_not_enough() -> None:
    assert not is_enough("1.2.0", "1.3.0", Weight.BREAKING)
    assert is_enough("1.2.0", "2.0.0", Weight.BREAKING)
    assert not is_enough("1.2.0", "", Weight.PATCH)
