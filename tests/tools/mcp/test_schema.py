"""Schemas of servers, honest and hostile: arguments are judged, in any draft, and never for long."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from handrail.tools.mcp.values.schema import (
    PATTERNS_MAX,
    SCHEMA_BYTES_MAX,
    STEPS_EXPLAINED_MAX,
    WALK_DEPTH_MAX,
    ServerSchema,
)

UNUSABLE = "the server's schema for this tool can't be used"
EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
"""As a well-known library writes it into schemas."""


def nested(depth: int, **inner: Any) -> dict[str, Any]:
    value: dict[str, Any] = inner
    for _ in range(depth):
        value = {"c": value}
    return value


def doubling(word: str, rounds: int, end: Mapping[str, Any]) -> Mapping[str, Any]:
    parts = {f"p{number}": {word: [{"$ref": f"#/$defs/p{number + 1}"}] * 2} for number in range(rounds)}
    return {"$ref": "#/$defs/p0", "$defs": {**parts, f"p{rounds}": end}}


def branching(word: str) -> Mapping[str, Any]:
    again = {"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["missing"]}
    return {"$ref": "#/$defs/n", "$defs": {"n": {word: [again, {**again, "title": "twice"}]}}}


def test_arguments_are_held_against_the_schema_and_each_place_is_named() -> None:
    schema = ServerSchema(
        {
            "type": "object",
            "properties": {"name": {"type": "string"}, "many": {"type": "array", "items": {"type": "integer"}}},
            "required": ["name"],
            "additionalProperties": False,
        }
    )
    assert schema.misfits({"name": "a", "many": [1]}) == []
    assert schema.misfits({"nam": "a", "many": ["x"]}) == [
        '`many.0`: the value is not of type "integer"',
        "`nam` is unknown; did you mean `name`?",
        "`name` is missing",
    ]


def test_a_schema_is_of_the_draft_that_it_names_and_else_of_the_newest() -> None:
    fourth = {"$schema": "http://json-schema.org/draft-04/schema#"}
    limit = {"properties": {"a": {"minimum": 1, "exclusiveMinimum": True}}}
    assert ServerSchema({**fourth, **limit}).misfits({"a": 1})
    assert UNUSABLE in ServerSchema(limit).misfits({"a": 2})[0]
    assert ServerSchema({"properties": {"a": {"prefixItems": [{"type": "string"}]}}}).misfits({"a": [1]})
    assert ServerSchema({"dependentSchemas": {"a": {"required": ["b"]}}}).misfits({"a": 1})


def test_patterns_may_look_around_but_not_for_long() -> None:
    schema = ServerSchema({"properties": {"mail": {"pattern": EMAIL}, "loop": {"pattern": "^(?!x)(a|a)*(?<!b)$"}}})
    assert schema.misfits({"mail": "a@b.de"}) == []
    assert schema.misfits({"mail": "a..b@c.de"})
    began = time.monotonic()
    assert schema.misfits({"loop": "a" * 5_000 + "!"})
    assert time.monotonic() - began < 2


def test_a_recursive_schema_of_an_honest_server_is_followed() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"c": {"$ref": "#/$defs/node"}, "name": {"type": "string"}},
                "patternProperties": {"^x-": {"type": "string"}},
                "propertyNames": {"maxLength": 10},
                "additionalProperties": False,
            }
        },
    }
    schema = ServerSchema(tree)
    assert schema.misfits(nested(20, name="deep")) == []
    assert "c.c.name" in schema.misfits(nested(2, name=1))[0]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "https://example.com/schema.json"}, "leads outside of it"),
        ({"$ref": "file:///etc/passwd"}, "leads outside of it"),
        ({"$ref": "#anchor", "$defs": {"a": {"$anchor": "anchor"}}}, "leads outside of it"),
        ({"$dynamicRef": "#x", "$dynamicAnchor": "x"}, "leads outside of it"),
        ({"properties": {"a": {"$id": "http://x/", "$ref": "#/$defs/b"}}}, "an id of its own"),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"id": "http://x/"}}},
            "an id of its own",
        ),
        ({"$ref": "#/$defs/nowhere"}, ""),
        ({"$schema": "https://example.com/draft-99"}, "Unknown meta-schema"),
        ({"$schema": 5}, "string"),
        ({"type": "strange"}, "the value"),
        ({"properties": 3}, "object"),
        ({"properties": {"a": {"pattern": "("}}}, "regex"),
        ({"properties": {"a": {"pattern": "(a{1000}){1000}"}}}, "regex"),
        ({"properties": {str(n): {"pattern": "a"} for n in range(PATTERNS_MAX + 1)}}, "too many patterns"),
        ({"patternProperties": {str(n): {} for n in range(PATTERNS_MAX + 1)}}, "too many patterns"),
        ({"description": "x" * SCHEMA_BYTES_MAX}, "too large"),
        (nested(50_000), "nested deeper than 255 levels"),
        (nested(255), "nested deeper than 255 levels"),
        ({"enum": [nested(253)]}, "nested deeper than 255 levels"),
        ({"$ref": "#"}, "takes too long"),
        ({"allOf": [{"$ref": "#/allOf/0"}]}, "takes too long"),
        (doubling("allOf", 40, {"type": "object"}), "takes too long"),
        (doubling("anyOf", 40, {"type": "string"}), "takes too long"),
        (branching("anyOf"), "takes too long"),
    ],
)
def test_a_schema_that_can_not_be_used_is_a_misfit_that_says_so(schema: Mapping[str, Any], words: str) -> None:
    began = time.monotonic()
    (misfit,) = ServerSchema(schema).misfits(nested(25, x=1))
    assert misfit.startswith(UNUSABLE), misfit
    assert words in misfit
    assert time.monotonic() - began < 30


def test_a_schema_that_refers_to_itself_is_left_before_it_takes_all_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    followed = 0
    follow = ServerSchema._next

    def counting(schema: ServerSchema, *pair: Any) -> Any:
        nonlocal followed
        followed += 1
        return follow(schema, *pair)

    monkeypatch.setattr(ServerSchema, "_next", counting)
    assert "takes too long" in ServerSchema({"$ref": "#"}).misfits({})[0]
    assert followed <= WALK_DEPTH_MAX


def test_a_misfit_that_is_expensive_to_explain_is_reported_without_its_location() -> None:
    schema = ServerSchema(branching("anyOf"))
    assert schema.misfits(nested(STEPS_EXPLAINED_MAX.bit_length(), x=1)) == [
        "the arguments do not fit the tool's schema"
    ]
    assert "arguments" in schema.misfits(nested(2, x=1))[0]


def test_every_word_that_leads_further_counts() -> None:
    whole = {
        "not": {"required": ["never"]},
        "if": {"required": ["a"]},
        "then": {"properties": {"a": {"type": "integer"}}},
        "else": True,
        "dependencies": {"a": {"required": ["list"]}},
        "properties": {"list": {"items": [{"type": "string"}], "additionalItems": {"type": "integer"}}},
        "additionalProperties": {"contains": {"const": 1}},
        "$schema": "http://json-schema.org/draft-07/schema#",
    }
    assert ServerSchema(whole).misfits({"a": 1, "list": ["x", 1, 2], "rest": [0, 1]}) == []
    assert ServerSchema({"unevaluatedProperties": False, "allOf": [{"properties": {"a": True}}]}).misfits({"b": 1})
    odd = {"allOf": [True], "properties": {"$ref": {"type": "string"}}, "$ref": "#/allOf/0"}
    assert ServerSchema(odd).misfits({"$ref": "x"}) == []


def test_arguments_that_are_not_plain_json_are_a_misfit() -> None:
    assert "not plain JSON" in ServerSchema({}).misfits({"a": object()})[0]
    assert "not plain JSON" in ServerSchema({}).misfits(nested(20_000))[0]


def test_a_schema_as_deep_as_the_validator_goes_is_used() -> None:
    assert ServerSchema(nested(254)).misfits({}) == []
    assert ServerSchema({"enum": [nested(252), {}]}).misfits({}) == []
