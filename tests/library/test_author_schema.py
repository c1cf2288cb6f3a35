"""Values against the schemas that authors write, and schemas that must not be used."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.checks.finding import Flaw, Severity
from handrail.domain.json import Json
from handrail.library.documents.document import FINDINGS_MAX
from handrail.library.schemas.author_schema import check_schema, compiled
from handrail.library.schemas.schema_references import reference_flaws
from handrail.library.schemas.structure import check_against

CPU_S_MAX = 2.0


def line_of(flaw: Flaw) -> str:
    assert flaw.severity is Severity.CRITICAL
    assert flaw.fix
    return f"{flaw.rule}: {flaw.message} ({flaw.fix})"


ONE_OF_TWO: Json = {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}
CASES: list[tuple[Json, Json, str]] = [
    ({"type": "string"}, 5, 'type: a string is expected here, not the number 5 (put it in quotes: "5")'),
    ({"type": "string"}, True, 'type: a string is expected here, not `true` (put it in quotes: "true")'),
    (
        {"type": ["integer", "null"]},
        "5",
        "type: a whole number or null is expected here, not the text `5` (remove the quotes)",
    ),
    (
        {"type": "boolean"},
        "On",
        "type: true or false is expected here, not the text `On` (write true or false, without quotes)",
    ),
    ({"type": "array"}, 5, "type: a list is expected here, not the number 5 (make it a list: [5])"),
    ({"type": "array"}, True, "type: a list is expected here, not `true` (write a list)"),
    ({"type": "object"}, None, "type: an object is expected here, not nothing (write a value, or remove the key)"),
    ({"enum": ["red", 5]}, "rad", "choice: the text `rad` is not a choice here (did you mean `red`? choose red or 5)"),
    ({"enum": ["red"]}, [], "choice: a list is not a choice here (choose red)"),
    ({"const": 5}, 6, "choice: the number 6 is not the one value that is allowed here (write 5)"),
    ({"required": ["a"]}, {}, "missing_key: `a` is missing (add `a`)"),
    (
        {"required": ["a"], "properties": {"a": {"examples": [1]}}},
        {},
        "missing_key: `a` is missing (add `a`; write it like 1)",
    ),
    ({"required": ["a"], "properties": {"a": True}}, {}, "missing_key: `a` is missing (add `a`)"),
    ({"pattern": "^a+$"}, "b", "pattern: the text `b` does not fit the pattern `^a+$` (write it as the schema says)"),
    (
        {"pattern": "^a+$", "description": "some a"},
        "b",
        "pattern: the text `b` does not fit the pattern `^a+$` (expected: some a)",
    ),
    (
        {"minimum": 3, "maximum": 5},
        2,
        "range: the number 2 is out of range (write a number of at least 3 and at most 5)",
    ),
    ({"exclusiveMinimum": 3}, 3, "range: the number 3 is out of range (write a number of more than 3)"),
    ({"exclusiveMaximum": 3}, 3, "range: the number 3 is out of range (write a number of less than 3)"),
    ({"multipleOf": 2}, 3, "range: the number 3 is not a multiple of 2 (write a multiple of it)"),
    ({"minLength": 3}, "ab", "length: the text has 2 characters (at least 3 wanted)"),
    ({"minItems": 1}, [], "length: the list is empty (at least 1 wanted)"),
    ({"minProperties": 2}, {"a": 1}, "length: the object has 1 keys (at least 2 wanted)"),
    ({"maxLength": 3}, "abcd", "length: the text has 4 characters (at most 3 are allowed)"),
    ({"maxItems": 1}, [1, 2], "length: the list has 2 items (at most 1 are allowed)"),
    ({"maxProperties": 0}, {"a": 1}, "length: the object has 1 keys (at most 0 are allowed)"),
    ({"items": [{}], "additionalItems": False}, [1, 2], "length: the list has too many items (at most 1 are allowed)"),
    ({"uniqueItems": True}, [{"a": 1}, 2, {"a": 1}], 'duplicate: `{"a": 1}` appears twice (remove one of the two)'),
    ({"contains": {"const": 1}}, [2], "form: the list has no item of the one form that is needed (add one)"),
    ({"not": {}}, 1, "form: the number 1 is not allowed here (write another value)"),
    (False, 1, "form: the number 1 is not allowed here (remove it)"),
    ({"format": "email"}, "x", "format: the text `x` is not of the format `email` (write it as the format says)"),
    (
        {"contentEncoding": "base64"},
        "?",
        "form: the text `?` does not fit `contentEncoding` (write it as the schema says)",
    ),
    (
        {"anyOf": [{"type": "integer", "minimum": 5}, {"type": "string"}]},
        [],
        (
            "form: a list fits none of the allowed forms "
            "(for the nearest form: a whole number is expected here, not a list)"
        ),
    ),
    (
        {"anyOf": [False]},
        2,
        "form: the number 2 fits none of the allowed forms (for the nearest form: the number 2 is not allowed here)",
    ),
    ({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {}, "missing_key: `a` or `b` is missing (add one of them)"),
    (
        ONE_OF_TWO,
        {},
        "missing_key: exactly one of a or b is expected here (add one of them)",
    ),
    (
        ONE_OF_TWO,
        {"a": 1, "b": 2},
        "unknown_key: `a` and `b` can't be used together (keep one of them)",
    ),
    (
        {"oneOf": [{"required": ["a", "b"]}, {"type": "string"}]},
        {"a": 1},
        "form: an object fits none of the allowed forms (for the nearest form: `b` is missing)",
    ),
    (
        {"oneOf": [{}, {"type": "integer"}]},
        5,
        "form: the number 5 fits more than one of the allowed forms (make it fit one only)",
    ),
]


@pytest.mark.parametrize(("schema", "value", "said"), CASES)
def test_what_does_not_fit_a_schema_is_reported_in_our_words(schema: Json, value: Json, said: str) -> None:
    assert [line_of(flaw) for flaw in check_against(schema, value)] == [said]


def test_what_fits_has_no_flaws() -> None:
    schema: Json = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert check_against(schema, {"a": "a" * 5_000}) == []
    assert [flaw.rule for flaw in check_against(schema, {"a": "a" * 5_000 + "b"})] == ["pattern"]


def test_flaws_stand_at_their_place_below_that_of_the_value() -> None:
    schema: Json = {
        "properties": {
            "list": {"items": {"type": "string"}},
            "closed": {"properties": {"name": {}}, "additionalProperties": False},
        },
        "propertyNames": {"maxLength": 6},
    }
    value: Json = {"list": ["a", 1], "closed": {"nam": 1, "1": 2}, "longest": {}}
    found = check_against(schema, value, path=("output",))
    assert [(flaw.path, flaw.on_key, flaw.fix) for flaw in found] == [
        (("output", "closed", "nam"), True, "did you mean `name`?"),
        (("output", "closed", "1"), True, "known: name"),
        (("output", "list", 1), False, 'put it in quotes: "1"'),
        (("output", "longest"), True, "write it as the schema says"),
    ]


def test_flaws_are_listed_up_to_a_bound() -> None:
    assert len(check_against({"items": {"type": "string"}}, list(range(5_000)))) == FINDINGS_MAX


def test_a_value_that_is_no_json_is_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):  # deep enough to end the process, if the validator were let in
        deep = [deep]
    values: list[Any] = [deep, "\ud800", {1, 2}]
    for value in values:
        (flaw,) = check_against({"items": {"$ref": "#"}}, value, path=("a",))
        assert (flaw.path, flaw.rule, flaw.fix) == (("a",), "type", "give plain JSON")


def test_a_schema_that_can_t_be_used_is_reported_instead_of_used() -> None:
    (flaw,) = check_against({"type": "strnig"}, 5, path=("output",))
    assert (flaw.rule, flaw.path, flaw.fix) == ("schema", ("output",), "did you mean `string`?")
    assert flaw.message == "the schema can't be used: the text `strnig` is not a type of JSON Schema"
    assert [flaw.rule for flaw in check_against(5, 5)] == ["schema"]
    assert [flaw.rule for flaw in check_against({"enum": ["\ud800"]}, 5)] == ["schema"]


# References


def doubling(levels: int) -> dict[str, Json]:
    """Every level refers to the one below twice."""
    definitions: dict[str, Json] = {"a0": {"type": "string"}}
    for level in range(1, levels):
        definitions[f"a{level}"] = {"allOf": [{"$ref": f"#/definitions/a{level - 1}"}] * 2}
    return {"definitions": definitions, "$ref": f"#/definitions/a{levels - 1}"}


def chain(levels: int) -> Json:
    """Every level refers to the one below once."""
    definitions: dict[str, Json] = {f"a{level}": {"$ref": f"#/definitions/a{level - 1}"} for level in range(1, levels)}
    return {"definitions": {**definitions, "a0": {"type": "string"}}, "$ref": f"#/definitions/a{levels - 1}"}


TREE: Json = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "name": {"type": "string"}},
}
LIST: Json = {"anyOf": [{"type": "null"}, {"properties": {"next": {"$ref": "#"}}}]}
FORKED: Json = {"anyOf": [{"properties": {"x": {"$ref": "#"}}}, {"properties": {"x": {"$ref": "#"}}}]}
POINTERS: Json = {
    "definitions": {"a/b": {"items": [{}, {"type": "string"}]}, "m~n": {"type": "string"}, "ö": {"type": "string"}},
    "properties": {
        "p": {"$ref": "#/definitions/a~1b/items/1"},
        "q": {"$ref": "#/definitions/m~0n"},
        "r": {"$ref": "#/definitions/%C3%B6"},
    },
}


@pytest.mark.parametrize(
    "schema", [TREE, LIST, POINTERS, {"$ref": "#"}, {"$id": "https://example.com/a", "type": "string"}]
)
def test_references_inside_a_schema_may_be_used(schema: Json) -> None:
    assert check_schema(schema) == []


def test_references_are_followed_when_a_value_is_checked() -> None:
    wrong: Json = {"left": {"right": {"name": 5}}}
    assert [flaw.path for flaw in check_against(TREE, wrong)] == [("left", "right", "name")]
    assert [flaw.path for flaw in check_against(POINTERS, {"p": 1, "q": 1, "r": 1})] == [("p",), ("q",), ("r",)]


@pytest.mark.parametrize(
    ("schema", "path", "said"),
    [
        (doubling(25), (), "the schema is too large, with its references followed"),
        (chain(400), ("definitions", "a300", "$ref"), "the references lead too deep"),
        (FORKED, ("anyOf", 0, "properties", "x", "$ref"), "the schema refers to itself in several alternatives"),
        ({"$ref": "other.json"}, ("$ref",), "`other.json` leads out of the schema"),
        ({"$ref": "#name"}, ("$ref",), "`#name` leads out of the schema"),
        ({"$ref": "http://a.example/b#"}, ("$ref",), "`http://a.example/b#` leads out of the schema"),
        ({"properties": {"a": {"$ref": "#/b"}}}, ("properties", "a", "$ref"), "`#/b` leads to nothing"),
        ({"items": [{}], "not": {"$ref": "#/items/1"}}, ("not", "$ref"), "`#/items/1` leads to nothing"),
        ({"items": [{}], "not": {"$ref": "#/items/x"}}, ("not", "$ref"), "`#/items/x` leads to nothing"),
        (
            {"items": [{}], "not": {"$ref": "#/items/0000000001"}},
            ("not", "$ref"),
            "`#/items/0000000001` leads to nothing",
        ),
        ({"items": {"$id": "https://example.com/b"}}, ("items", "$id"), "a part of a schema can't have an `$id`"),
        ({"dependencies": {"a": {"$ref": "#/b"}, "c": ["d"]}}, ("dependencies", "a", "$ref"), "`#/b` leads to nothing"),
    ],
)
def test_references_that_lead_out_or_multiply_are_refused_soon(
    schema: Json, path: tuple[str | int, ...], said: str
) -> None:
    started = time.process_time()
    (flaw, *_) = check_schema(schema)
    assert (flaw.path, flaw.message) == (path, said)
    assert flaw.fix
    assert [flaw.rule for flaw in check_against(schema, 1)] == ["schema"]
    assert time.process_time() - started < CPU_S_MAX


def test_a_schema_may_grow_only_with_the_length_of_its_text() -> None:
    assert reference_flaws(doubling(8), characters=10_000) == []
    (flaw,) = reference_flaws(doubling(8), characters=500)
    assert flaw.message == "the schema is too large, with its references followed"


def test_a_schema_may_use_its_parts_often() -> None:
    point: Json = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}
    corners: Json = {f"corner{n}": {"$ref": "#/definitions/point"} for n in range(40)}
    assert check_schema({"definitions": {"point": point}, "properties": corners}) == []


def test_the_validator_itself_stays_off_the_network() -> None:
    with pytest.raises(ValueError, match="Retrieval is disabled"):
        compiled({"$ref": "http://127.0.0.1:9/schema.json"})


def test_what_looks_like_a_reference_in_data_is_data() -> None:
    schema: Json = {"default": {"$ref": "x"}, "enum": [{"$ref": "y"}], "properties": {"$ref": {"type": "string"}}}
    assert check_schema(schema) == []


schemas = st.recursive(
    st.sampled_from(
        [{}, True, False, {"type": "string"}, {"$ref": "#"}, {"$ref": "#/definitions/a"}, {"pattern": "("}, 5]
    ),
    lambda inner: st.dictionaries(
        st.sampled_from(["properties", "definitions", "items", "anyOf", "not", "if", "then", "allOf", "oneOf", "enum"]),
        inner | st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=3),
        max_size=4,
    ),
    max_leaves=12,
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("ab1"), inner),
)


@given(schemas, values)
def test_any_schema_is_used_on_any_value_or_refused(schema: Json, value: Json) -> None:
    for flaw in check_against(schema, value):
        assert flaw.message
