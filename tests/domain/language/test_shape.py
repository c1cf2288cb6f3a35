"""Shapes: what a JSON Schema lets us know about a value before there is one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.json import Json
from handrail.domain.language.shape import (
    ANY,
    BOOLEAN,
    NULL,
    NUMBER,
    SCHEMAS_MAX,
    STRING,
    Shape,
    array_shape,
    both,
    either,
    object_shape,
    shape_of,
    without_null,
)

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
SCHEMA_WORDS = st.sampled_from(
    ["type", "properties", "items", "additionalProperties", "enum", "const", "anyOf", "oneOf", "allOf", "$ref", "if"]
)
ODD_SCHEMAS = st.recursive(
    st.sampled_from(["string", "object", "array", "nonsense", True, False, None, 3]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCHEMA_WORDS, inner, max_size=4),
    max_leaves=25,
)


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        ({"type": "string"}, STRING),
        ({"type": "integer"}, NUMBER),
        ({"type": ["string", "null"]}, Shape(types=frozenset({"string", "null"}))),
        ({"const": True}, BOOLEAN),
        ({"enum": ["a", "b", None]}, Shape(types=frozenset({"string", "null"}))),
        ({"type": "string", "enum": ["a"]}, STRING),
        ({"type": "array", "items": {"type": "number"}}, array_shape(NUMBER)),
        ({"type": "array", "items": [{"type": "number"}, {"type": "string"}]}, array_shape()),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, Shape(types=frozenset({"string", "number"}))),
        ({"oneOf": [{"type": "string"}, {}]}, ANY),
        ({"allOf": [{"type": ["string", "null"]}, {"type": "string"}]}, STRING),
        ({"type": "nonsense"}, ANY),
        ({"type": "string", "$ref": "#/definitions/a"}, ANY),
        (True, ANY),
        (False, ANY),
        (None, ANY),
        ("string", ANY),
    ],
)
def test_a_schema_tells_the_types_of_a_value(schema: Any, shape: Shape) -> None:
    assert shape_of(schema) == shape


@pytest.mark.parametrize(
    ("schema", "is_open"),
    [
        ({"type": "object", "properties": {"a": {}}}, False),
        ({"properties": {"a": {}}}, False),
        ({"type": "object", "properties": {}}, False),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": False}, False),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, True),
        ({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}, True),
        ({"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}}, True),
        ({"type": "object", "properties": {"a": {}}, "if": {}, "then": {"properties": {"b": {}}}}, True),
        ({"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, False),
        ({"type": "object"}, True),
        ({}, True),
    ],
)
def test_an_object_whose_properties_are_listed_has_no_others_unless_it_says_so(schema: Any, is_open: bool) -> None:
    assert shape_of(schema).is_open is is_open


def test_the_fields_of_an_object_have_shapes_of_their_own() -> None:
    schema: Json = {"type": "object", "properties": {"file": {"type": "string"}, "lines": {"type": "integer"}}}
    assert shape_of(schema) == object_shape({"file": STRING, "lines": NUMBER})


def test_alternatives_know_the_fields_of_each_other() -> None:
    file: Json = {"type": "object", "properties": {"kind": {"type": "string"}, "path": {"type": "string"}}}
    link: Json = {"type": "object", "properties": {"kind": {"type": "null"}, "url": {"type": "string"}}}
    shape = shape_of({"oneOf": [file, link]})
    assert shape.fields == {"kind": either(STRING, NULL), "path": STRING, "url": STRING}
    assert not shape.is_open


def test_an_alternative_that_is_no_object_does_not_open_the_other() -> None:
    shape = shape_of({"anyOf": [{"type": "null"}, {"type": "object", "properties": {"a": {"type": "string"}}}]})
    assert shape.types == {"null", "object"}
    assert not shape.is_open


def test_parts_that_hold_together_add_their_fields() -> None:
    schema: Json = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "allOf": [{"properties": {"b": {"type": "number"}}}],
    }
    assert shape_of(schema) == object_shape({"a": STRING, "b": NUMBER})


def test_a_list_of_either_kind_holds_items_of_either_kind() -> None:
    assert either(array_shape(STRING), array_shape(NUMBER)) == array_shape(either(STRING, NUMBER))
    assert either(array_shape(STRING), array_shape()) == array_shape(ANY)


def test_types_that_exclude_each_other_leave_the_first() -> None:
    assert both(STRING, NUMBER) == STRING


def test_null_can_be_taken_out_of_a_shape() -> None:
    assert without_null(either(STRING, NULL)) == STRING
    assert without_null(NULL) == ANY


def test_an_unknown_shape_admits_everything_and_a_known_one_what_it_names() -> None:
    assert ANY.admits("string")
    assert STRING.admits("number", "string")
    assert not STRING.admits("number")


def test_a_schema_deeper_than_we_follow_is_unknown_below() -> None:
    schema: Any = {"type": "string"}
    for _ in range(3_000):
        schema = {"type": "array", "items": schema}
    assert shape_of(schema).types == {"array"}


def test_a_schema_that_repeats_its_parts_without_end_is_followed_only_so_far() -> None:
    shared: Any = {"type": "string"}
    for _ in range(20):
        shared = {"type": "object", "properties": {"left": shared, "right": shared}}
    seen = [shape_of(shared)]
    for shape in seen:
        seen.extend(shape.fields.values())
    assert len(seen) <= 2 * SCHEMAS_MAX


@given(ODD_SCHEMAS | JSON_VALUES)
def test_no_schema_however_odd_raises(schema: Any) -> None:
    assert isinstance(shape_of(schema), Shape)
