"""The limits of checks in the schema that an agent is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handrail.domain.checks.finding import Severity
from handrail.domain.checks.visible_limits import with_limits
from handrail.domain.definition.model import Check, Prompt
from handrail.domain.errors import Invalid

TEXT = {"type": "object", "required": ["t"], "properties": {"t": {"type": "string"}, "l": {"type": "array"}}}


def as_it_is(parameters: Any) -> Any:
    return parameters


def shown(
    output: Mapping[str, Any] | None, *checks: tuple[str, dict[str, Any]], fill: Any = as_it_is, **more: Any
) -> Any:
    made = tuple(Check(rule=rule, parameters=parameters, **more) for rule, parameters in checks)
    return with_limits(Prompt(prompt="x", output=output, checks=made), fill)


@pytest.mark.parametrize(
    ("rule", "parameters", "limits"),
    [
        ("length", {"min": 3, "max": 9}, {"minLength": 3, "maxLength": 9}),
        ("matches", {"pattern": "^v"}, {"pattern": "^v"}),
        ("matches", {"pattern": "^v", "flags": "i"}, {"matches": "/^v/i"}),
        ("equals", {"value": "yes"}, {"const": "yes"}),
    ],
)
def test_a_limit_is_in_the_schema_of_the_part_that_it_is_about(
    rule: str, parameters: dict[str, Any], limits: dict[str, Any]
) -> None:
    seen = shown(TEXT, (rule, {"of": "t", **parameters}))
    assert seen["properties"] == {"t": {"type": "string", **limits}, "l": {"type": "array"}}
    assert TEXT["properties"]["t"] == {"type": "string"}, "the definition itself stays as it is"  # type: ignore[index]
    assert shown({"type": "string"}, (rule, parameters)) == {"type": "string", **limits}


def test_the_length_of_lists_and_objects_is_in_items_and_members() -> None:
    assert shown(TEXT, ("length", {"of": "l", "min": 1}))["properties"]["l"] == {"type": "array", "minItems": 1}
    assert shown({"type": "object"}, ("length", {"max": 2})) == {"type": "object", "maxProperties": 2}


def test_what_a_check_reads_is_required_even_without_a_schema() -> None:
    assert shown(None, ("equals", {"of": "a.b", "value": True})) == {
        "required": ["a"],
        "properties": {"a": {"required": ["b"], "properties": {"b": {"const": True}}}},
    }
    assert shown(TEXT, ("length", {"of": "l", "min": 1}))["required"] == ["t", "l"]


def test_of_two_limits_the_stricter_counts_and_patterns_count_together() -> None:
    schema = {"type": "string", "minLength": 5, "maxLength": 5, "pattern": "a"}
    assert shown(schema, ("length", {"min": 3, "max": 9}), ("matches", {"pattern": "b"})) == {
        **schema,
        "allOf": [{"pattern": "b"}],
    }
    assert shown(schema, ("length", {"min": 7}))["minLength"] == 7


@pytest.mark.parametrize(
    ("rule", "parameters", "more"),
    [
        ("length", {"of": "t", "min": 3}, {"when": "output.t != ''"}),
        ("length", {"of": "t", "min": 3}, {"severity": Severity.MINOR}),
        ("length", {"of": "l[0]", "min": 3}, {}),
        ("length", {"of": "t", "min": "many"}, {}),
        ("length", {"of": "t", "min": True}, {}),
        ("matches", {"of": "t", "pattern": 1}, {}),
        ("equals", {"of": "t"}, {}),
        ("contains", {"of": "t", "text": "x"}, {}),
    ],
)
def test_what_may_not_apply_or_can_not_be_written_is_left_out(
    rule: str, parameters: dict[str, Any], more: dict[str, Any]
) -> None:
    assert shown(TEXT, (rule, parameters), **more) == TEXT


def test_a_schema_that_is_no_object_stays_as_it_is() -> None:
    odd: dict[str, Any] = {"properties": {"t": True}}
    assert shown(odd, ("length", {"of": "t", "min": 1})) == odd
    assert shown({"properties": 7}, ("length", {"of": "t", "min": 1})) == {"properties": 7}


def test_templates_are_filled_in_and_those_that_need_the_output_are_left_out() -> None:
    def filled(parameters: Any) -> Any:
        return {**parameters, "value": "report.md"}

    def needs_output(_: Any) -> Any:
        raise Invalid("there is no name 'output'")

    asked = ("equals", {"of": "t", "value": "{{ inputs.report }}"})
    assert shown(TEXT, asked, fill=filled)["properties"]["t"] == {"type": "string", "const": "report.md"}
    assert shown(TEXT, asked, fill=needs_output) == TEXT
