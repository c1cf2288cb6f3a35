"""Expressions: what authors may write, what it means, and what they are told when it can't be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from handrail.domain.errors import Invalid
from handrail.domain.json import Json, json_type
from handrail.domain.language.expression import Expression, ExpressionError, compile_condition, compile_expression
from handrail.domain.language.expression_comparison import HOLDS_NOTHING, NEVER_EQUAL, NO_ORDER, NOT_A_NAME, NOT_AMONG
from handrail.domain.language.pattern import PATTERN_LENGTH_MAX, linear_pattern
from handrail.domain.language.shape import ANY, BOOLEAN, NUMBER, STRING, array_shape, either, object_shape, shape_of

INPUTS: Final = shape_of(
    {
        "type": "object",
        "properties": {
            "version": {"type": "string"},
            "targets": {"type": "array", "items": {"type": "string"}},
            "count": {"type": "integer"},
            "force": {"type": "boolean"},
            "note": {"type": ["string", "null"]},
            "labels": {"type": "object"},
        },
    }
)
SCOPE: Final = {"inputs": INPUTS, "steps": ANY, "vars": ANY}
VALUES: Final[dict[str, Json]] = {
    "inputs": {
        "version": "1.2.0",
        "targets": ["linux", "macos"],
        "count": 3,
        "force": True,
        "note": None,
        "labels": {"team": "core"},
    },
    "steps": {
        "notes": {
            "status": "completed",
            "output": {"file": "notes.md", "size": 120, "tags": ["a", None, 1], "gone": None},
        },
        "write-docs": {"output": {"from": "x", "_id": 7}},
    },
    "vars": {"flag": True, "text": "Größe", "empty": [], "nothing": None},
}


NO_FIELD: Final = (
    "inputs has no field 'verzion' (known: version, targets, count, force, note, labels); did you mean version?"
)


def evaluate(source: str, values: Mapping[str, Json] = VALUES) -> Json:
    return compile_expression(source, SCOPE).evaluate(values)


def column(marked: str) -> int:
    """Where the ^ stands that marks the place of an error."""
    return marked.index("^") + 1


def unmarked(marked: str) -> str:
    return marked.replace("^", "", 1)


def refusal(source: str) -> ExpressionError:
    """The error at load."""
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, SCOPE)
    return caught.value


def failure(source: str) -> ExpressionError:
    """The error at evaluation of what was accepted at load."""
    expression = compile_expression(source, SCOPE)
    with pytest.raises(ExpressionError) as caught:
        expression.evaluate(VALUES)
    return caught.value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('"text"', "text"),
        ("'text'", "text"),
        (r'"a\tb\n\"\\\u00e9"', 'a\tb\n"\\é'),
        (r'"\ud83d\ude00"', "😀"),
        (r'"^\d+\.\w$"', r"^\d+\.\w$"),
        (r'r"\bword\b"', r"\bword\b"),
        ('"Größe"', "Größe"),
        ("3", 3),
        ("-3", -3),
        ("0.5", 0.5),
        ("-1.5e3", -1500.0),
        ("9007199254740991", 9007199254740991),
        ("true", True),
        ("False", False),
        ("null", None),
        ("None", None),
        ("[1, 'a', [true]]", [1, "a", [True]]),
        ("[]", []),
        ("{}", {}),
        ('{"a": {"b": inputs.count}}', {"a": {"b": 3}}),
        ("(((1)))", 1),
        ("  1  ", 1),
        ("[\n  1,\n  2\n]", [1, 2]),
    ],
)
def test_literals_mean_what_they_say(source: str, value: Json) -> None:
    assert evaluate(source) == value
    assert json_type(evaluate(source)) == json_type(value)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("inputs.version", "1.2.0"),
        ("inputs.targets[1]", "macos"),
        ('inputs["version"]', "1.2.0"),
        ("steps.notes.output.tags[0]", "a"),
        ('steps["write-docs"].output["from"]', "x"),
        ('steps["write-docs"]["output"]["_id"]', 7),
        ("(inputs.labels).team", "core"),
        ("inputs . version", "1.2.0"),
    ],
)
def test_paths_lead_into_the_values_by_name_and_by_index(source: str, value: Json) -> None:
    assert evaluate(source) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ('inputs.version == "1.2.0"', True),
        ('inputs.version != "1.2.0"', False),
        ("inputs.count == 3.0", True),
        ("inputs.count > 2", True),
        ("inputs.count <= 2", False),
        ("1 < inputs.count < 5", True),
        ("1 < inputs.count < 3", False),
        ('"a" < "b"', True),
        ("inputs.note == null", True),
        ("inputs.note == 'x'", False),
        ("null != inputs.version", True),
        ("inputs.targets != []", True),
        ("inputs.targets == ['linux', 'macos']", True),
        ("inputs.targets == ['linux', 'other']", False),
        ("inputs.labels == {'team': 'core'}", True),
        ("inputs.labels == {'team': 'other'}", False),
        ("inputs.labels == {}", False),
        ("vars.flag == true", True),
        ("[1] == [true]", False),
        ("[[1, 2]] == [[1, 2]]", True),
        ("[1, [2]] == [1, [3]]", False),
        ("['a'] == ['b']", False),
        ("['a'] == ['bc']", False),
        ("[null] == [null]", True),
    ],
)
def test_comparison_is_by_value_and_type(source: str, value: bool) -> None:
    assert evaluate(source) is value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'linux' in inputs.targets", True),
        ("'windows' in inputs.targets", False),
        ("'windows' not in inputs.targets", True),
        ("'team' in inputs.labels", True),
        ("'2.0' in inputs.version", True),
        ("inputs.count in [1, 2, 3]", True),
        ("inputs.count in [1, 2]", False),
        ("inputs.count in []", False),
        ("vars.flag in [1, true]", True),
        ("1 in [true, 2]", False),
        ("[1] in [[1], [2]]", True),
        ("null in steps.notes.output.tags", True),
        ("null in inputs.targets", False),
        ("'x' in [null]", False),
        ("contains(inputs.targets, 'linux')", True),
        ("contains(inputs.version, '9')", False),
    ],
)
def test_membership_asks_lists_objects_and_strings(source: str, value: bool) -> None:
    assert evaluate(source) is value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("true and false", False),
        ("true or false", True),
        ("not inputs.force", False),
        ("not inputs.count == 4", True),
        ("inputs.force and inputs.count == 3 and inputs.version == '1.2.0'", True),
        ("false or false or inputs.force", True),
        ("false and vars.missing.field", False),
        ("true or vars.missing.field", True),
    ],
)
def test_logic_stops_as_soon_as_it_knows(source: str, value: bool) -> None:
    assert evaluate(source) is value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("len(inputs.targets)", 2),
        ("len(inputs.version)", 5),
        ("len(inputs.labels)", 1),
        ("lower('ABC')", "abc"),
        ("upper(inputs.targets[0])", "LINUX"),
        ("word('  Large ')", "large"),
        ("word(true)", "true"),
        ("word(3)", "3"),
        ("word(3.0)", "3"),
        ("word(2.5)", "2.5"),
        ("word(null)", ""),
        ("word(inputs.labels)", ""),
        ("word(['A', 1, ['x']])", "[a, 1]"),
        ("text('part ', 1, '.', 2)", "part 1.2"),
        ("text(true)", "true"),
        ("column([{'id': 'a'}, {'id': 2}, {'other': 3}, 4], 'id')", ["a", 2]),
        ("text('v', 1) in column([{'id': 'v1'}], 'id')", True),
        ("is_number(1.5)", True),
        ("is_number(true)", False),
        ("is_number('1')", False),
        ("starts_with(inputs.version, '1.')", True),
        ("ends_with(inputs.version, '1.')", False),
        (r"matches(inputs.version, '^\d+\.\d+\.\d+$')", True),
        (r"matches(inputs.version, r'\b9\b')", False),
        ("matches(vars.text, 'ö')", True),
        ("exists(vars.flag)", True),
        ("exists(vars.missing.field[3].more)", False),
        ("exists(inputs.note)", False),
        ("exists(vars.text[0])", False),
        ("default(vars.missing.field, 'none')", "none"),
        ("default(inputs.note, 'none')", "none"),
        ("default(vars.flag, false)", True),
        ("default(vars.empty[0], vars.text)", "Größe"),
        ("default(default(vars.a, vars.empty), 1)", []),
        ("default(null, 1)", 1),
    ],
)
def test_functions_answer(source: str, value: Json) -> None:
    assert evaluate(source) == value


def test_a_path_that_leads_nowhere_may_also_begin_nowhere_when_it_is_asked_for() -> None:
    assert compile_expression("exists(steps.notes)", SCOPE).evaluate({}) is False


@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        ("^inpts.version", "there is no name 'inpts' (known: inputs, steps, vars); did you mean inputs?"),
        ("^_x.y", "there is no name '_x' (known: inputs, steps, vars)"),
        ("^true.x", "there is no name 'true' (known: inputs, steps, vars)"),
        ("default(^inpts.note, 1)", "there is no name 'inpts' (known: inputs, steps, vars); did you mean inputs?"),
        ("1 == inputs.^verzion", NO_FIELD),
        ('inputs[^"verzion"]', NO_FIELD),
        ("exists(inputs.^verzion)", NO_FIELD),
        ("inputs.version.^major", "inputs.version is a string: it has no field 'major'"),
        ("inputs.version[^0]", "inputs.version is a string: it has no item [0]"),
        ("inputs.targets.^first", "inputs.targets is a list: it has no field 'first'"),
        ("inputs.labels[^0]", "inputs.labels is an object: it has no item [0]"),
    ],
)
def test_unknown_names_are_found_at_load_and_the_right_one_is_proposed(marked: str, reason: str) -> None:
    error = refusal(unmarked(marked))
    assert (error.column, str(error)) == (column(marked), reason)


@pytest.mark.parametrize(
    ("marked", "rule", "detail"),
    [
        ("^inputs.count == '3'", NEVER_EQUAL, "inputs.count is a number, '3' is a string"),
        ("^true != 1", NEVER_EQUAL, "true is a boolean, 1 is a number"),
        ("^inputs.version > 3", NO_ORDER, "inputs.version is a string, 3 is a number"),
        ("1 < ^2 < 'a'", NO_ORDER, "2 is a number, 'a' is a string"),
        ("^inputs.force < true", NO_ORDER, "inputs.force is a boolean, true is a boolean"),
        ("^null < 1", NO_ORDER, "null is null, 1 is a number"),
        ("^1 in inputs.count", HOLDS_NOTHING, "1 is a number, inputs.count is a number"),
        ("^1 in inputs.version", NOT_A_NAME, "1 is a number, inputs.version is a string"),
        ("^1 in inputs.labels", NOT_A_NAME, "1 is a number, inputs.labels is an object"),
        ("^inputs.count in ['1', '2']", NOT_AMONG, "inputs.count is a number, ['1', '2'] is a list"),
        ("contains(inputs.targets, ^1)", NOT_AMONG, "1 is a number, inputs.targets is a list"),
    ],
)
def test_comparisons_that_shapes_make_senseless_are_found_at_load(marked: str, rule: str, detail: str) -> None:
    error = refusal(unmarked(marked))
    assert (error.column, str(error)) == (column(marked), f"{rule}: {detail}")


@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        ("inputs.force and ^inputs.count", "and needs a boolean, but inputs.count is a number"),
        ("^inputs.version or true", "or needs a boolean, but inputs.version is a string"),
        ("not ^inputs.targets", "not needs a boolean, but inputs.targets is a list"),
        ("len(^inputs.count)", "len needs a string, a list or an object, but inputs.count is a number"),
        ("lower(^null)", "lower needs a string, but null is null"),
        ("starts_with(inputs.version, ^1)", "starts_with needs a string, but 1 is a number"),
        ("matches(^inputs.count, 'a')", "matches needs a string, but inputs.count is a number"),
    ],
)
def test_arguments_of_a_type_that_shapes_exclude_are_found_at_load(marked: str, reason: str) -> None:
    error = refusal(unmarked(marked))
    assert (error.column, str(error)) == (column(marked), reason)


@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        ("vars.^txt", "vars has no field 'txt' (known: flag, text, empty, nothing); did you mean text?"),
        ("vars.nothing.^x", "vars.nothing is null: it has no field 'x'; use default(...) or exists(...)"),
        ("vars.text.^x", "vars.text is a string: it has no field 'x'"),
        ("vars.text[^0]", "vars.text is a string: it has no item [0]"),
        ("inputs.targets[^2]", "inputs.targets has 2 items: there is no [2] (counted from 0)"),
        ("vars.empty.^x", "vars.empty is a list: it has no field 'x'"),
        (
            'steps["write-docs"].output["from"].^x',
            'steps["write-docs"].output["from"] is a string: it has no field \'x\'',
        ),
        ('steps["write-docs"].^x', "steps[\"write-docs\"] has no field 'x' (known: output)"),
        ("^vars.text == 1", f"{NEVER_EQUAL}: vars.text is a string, 1 is a number"),
        ("^vars.flag == 1", f"{NEVER_EQUAL}: vars.flag is a boolean, 1 is a number"),
        ("^vars.text > 1", f"{NO_ORDER}: vars.text is a string, 1 is a number"),
        ("^inputs.note > 'a'", f"{NO_ORDER}: inputs.note is null, 'a' is a string"),
        ("^1 in vars.text", f"{NOT_A_NAME}: 1 is a number, vars.text is a string"),
        ("^1 in vars.flag", f"{HOLDS_NOTHING}: 1 is a number, vars.flag is a boolean"),
        ("^vars.flag in inputs.targets", f"{NOT_AMONG}: vars.flag is a boolean, inputs.targets is a list"),
        ("vars.flag and ^vars.text", "and needs a boolean, but vars.text is a string"),
        ("not ^vars.text", "not needs a boolean, but vars.text is a string"),
        ("len(^vars.flag)", "len needs a string, a list or an object, but vars.flag is a boolean"),
        ("lower(^inputs.note)", "lower needs a string, but inputs.note is null; use default(...)"),
        ("matches(^vars.flag, 'a')", "matches needs a string, but vars.flag is a boolean"),
    ],
)
def test_what_only_the_values_show_is_an_error_at_evaluation_and_never_false(marked: str, reason: str) -> None:
    error = failure(unmarked(marked))
    assert (error.column, str(error)) == (column(marked), reason)


def test_a_name_without_a_value_is_an_error_at_evaluation() -> None:
    with pytest.raises(ExpressionError, match=r"there is no value yet for 'steps' \(known: inputs\)"):
        compile_expression("steps.a", SCOPE).evaluate({"inputs": {}})


@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        ("1 ^+ 1", "there is no arithmetic"),
        ("^inputs.count - 1", "there is no arithmetic"),
        ("^len(vars.text)-1", "there is no arithmetic"),
        ("2 ^** 8", "there is no arithmetic"),
        ("^-inputs.count", "only a written number can have a minus"),
        ("^-True", "only a written number can have a minus"),
        ("^--1", "only a written number can have a minus"),
        ("steps.^write-docs.output", 'write a name with a dash in quotes: x["write-docs"]'),
        ("1 ^if true else 2", "there is no if/else here"),
        ("[x ^for x in vars.empty]", "there are no comprehensions here"),
        ("^lambda: 1", "functions can't be defined here"),
        ("vars.flag ^is true", "write == to compare"),
        ("vars.flag ^= true", "write == to compare"),
        ("(x ^:= 1)", "values can't be set here"),
        ("vars.flag ^&& true", "write 'and'"),
        ("vars.flag ^|| true", "write 'or'"),
        ("^!vars.flag", "write 'not'"),
        ("vars.flag ^# why", "comments are not allowed in an expression"),
        ("^vars.text | upper", "a filter comes last in {{ }}"),
        ("^vars.text.lower()", "there are no methods here"),
        ("^open('x')", "there is no function 'open'"),
        ("^lowr('x')", "did you mean lower?"),
        ("^len()", "len takes 1 argument in (...), not 0"),
        ("^starts_with('a')", "starts_with takes 2 arguments in (...), not 1"),
        ("exists(^lower('a'))", "exists(...) needs a path"),
        ("matches('a', ^vars.text)", "the pattern must be a literal string"),
        ("matches('a', ^'(?=b)')", "look-around is not supported"),
        ("matches('a', ^'(')", "is not a pattern"),
        ("^1, 2", "write a list in brackets"),
        ("^{1, 2}", "write a list in brackets"),
        ("{^1: 2}", "write the names in an object in quotes"),
        ("{'a': 1, ^'a': 2}", "this name is already used"),
        ("{^inputs.version: 2}", "write the names in an object in quotes"),
        ("vars.empty[^-1]", "an index must be a literal, counted from the start"),
        ("vars.empty[^inputs.count]", "an index must be a literal, counted from the start"),
        ("vars.empty[^0:1]", "an index must be a literal, counted from the start"),
        ("vars.empty[^True]", "an index must be a literal, counted from the start"),
        ("vars.empty[^true]", "an index must be a literal, counted from the start"),
        ("vars.^_private", 'write a field with a leading _ in quotes: x["_private"]'),
        ("steps.notes.^from", 'write a field named from in quotes: x["from"]'),
        ("^'a'.b", "a path to a field or item must start with a name"),
        ("^lower('a').b", "a path to a field or item must start with a name"),
        ("f^'{inputs}'", "write the string without 'f' before it"),
        ("b^'x'", "write the string without 'b' before it"),
        ("'a' ^'b'", "two strings are next to each other"),
        ("''^'a'''", "two strings are next to each other"),
        ("^'a", "the string is never closed"),
        ("^'a\nb'", "the string is never closed"),
        (r"^'\bword'", r'\b means one thing in a string and another in a pattern; write r"..."'),
        (r"^'\u12'", r"\u needs four hexadecimal digits"),
        (r"^'\ud83d'", "the string holds half a character"),
        ("^1_000", "1_000 is not a number"),
        ("^0x10", "0x10 is not a number"),
        ("^1j", "1j is not a number"),
        ("^007", "007 is not a number"),
        ("^9007199254740992", "the number is too large"),
        ("^-9007199254740992", "the number is too large"),
        ("^1e999", "the number is too large"),
        ("^0.1234567890123456789012345678901", "the number has more than 30 characters"),
        ("^...", "this is not allowed in an expression"),
        ("^", "the expression is empty"),
        ("^ \n ", "the expression is empty"),
        ("inputs.count ==^", "something is missing here"),
        ("^inputs.count 3", "an operator is missing between two values"),
        ("^and true", "'and' is not expected here"),
        ("^(1", "'(' is never closed"),
        ("1^)", "')' closes nothing"),
        ("[1^)", "')' closes nothing"),
        ("1^; 2", "write one expression"),
        ("gr^öße", "is only allowed in a string"),
        ("^await x", "the word 'await' is not allowed here"),
    ],
)
def test_everything_else_is_refused_with_what_to_write_instead(marked: str, reason: str) -> None:
    error = refusal(unmarked(marked))
    assert error.column == column(marked)
    assert reason in str(error)


@pytest.mark.parametrize(
    ("fits", "is_too_large", "reason"),
    [
        ("1" + " " * 1_999, "1" + " " * 2_000, "the expression has 2,001 characters; at most 2,000 are allowed"),
        ("not " * 39 + "true", "not " * 40 + "true", "too large or too deeply nested"),
        ("(" * 40 + "1" + ")" * 40, "(" * 41 + "1" + ")" * 41, "too large or too deeply nested"),
        ("[" + "1," * 298 + "1]", "[" + "1," * 299 + "1]", "too large or too deeply nested"),
        ("[" + "(1)," * 224 + "1]", "[" + "(1)," * 225 + "1]", "too large or too deeply nested"),
        ("'" + "x" * 1_000 + "'", "'" + "x" * 1_001 + "'", "the string has 1,001 characters; at most 1,000"),
    ],
    ids=["characters", "depth", "brackets", "parts", "words", "string"],
)
def test_an_expression_has_a_largest_size(fits: str, is_too_large: str, reason: str) -> None:
    compile_expression(fits, SCOPE)
    assert reason in str(refusal(is_too_large))


def test_a_name_with_a_leading_underscore_can_not_be_read_even_if_it_is_there() -> None:
    with pytest.raises(ExpressionError, match="there is no name '_x'"):
        compile_expression("_x", {"_x": ANY})


def test_an_error_points_into_its_source() -> None:
    for source in ("1 == inputs.verzion", "true and " * 30 + "\n inputs.verzion"):
        assert source[refusal(source).column - 1 :] == "verzion"


def test_an_error_is_an_invalid_one_with_its_source() -> None:
    error = refusal("nope")
    assert isinstance(error, Invalid)
    assert error.source == "nope"


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        ("1 == 1", ()),
        ("steps.notes.output.file", (("steps", "notes", "output", "file"),)),
        ('inputs.targets[0] in ["a"] or vars["x"].y == 1', (("inputs", "targets", 0), ("vars", "x", "y"))),
        ("vars.a == vars.a", (("vars", "a"),)),
        ("exists(vars.a) and default(vars.b, vars.c)", (("vars", "a"), ("vars", "b"), ("vars", "c"))),
    ],
)
def test_the_paths_that_an_expression_reads_are_known_at_load(source: str, paths: tuple[object, ...]) -> None:
    assert compile_expression(source, SCOPE).paths == paths


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ("inputs.count > 1", BOOLEAN),
        ("not inputs.force", BOOLEAN),
        ("inputs.targets[0]", STRING),
        ("len(vars.x)", NUMBER),
        ("vars.x", ANY),
        ("[1, 'a']", array_shape(either(NUMBER, STRING))),
        ("[vars.x]", array_shape(ANY)),
        ("{'a': 1}", object_shape({"a": NUMBER})),
        ("default(inputs.note, 'x')", STRING),
        ("default(inputs.note, 1)", either(STRING, NUMBER)),
        ("default(vars.x, 1)", ANY),
    ],
)
def test_the_shape_of_the_result_is_known_at_load(source: str, shape: object) -> None:
    assert compile_expression(source, SCOPE).shape == shape


def test_a_condition_that_can_not_be_true_or_false_is_refused_at_load() -> None:
    with pytest.raises(
        ExpressionError, match=r"a condition must be true or false; this is a list: .*len\(x\) > 0"
    ) as caught:
        compile_condition("  inputs.targets", SCOPE)
    assert caught.value.column == 3


@pytest.mark.parametrize("source", ["vars.text", "inputs.note", "vars.empty"])
def test_a_condition_that_turns_out_not_to_be_true_or_false_is_an_error(source: str) -> None:
    scope = {**SCOPE, "inputs": ANY}
    with pytest.raises(ExpressionError, match="a condition must be true or false"):
        compile_condition(source, scope).evaluate(VALUES)


def test_a_condition_gives_true_or_false() -> None:
    expression: Expression = compile_condition("vars.flag", SCOPE)
    assert expression.shape == BOOLEAN
    assert expression.evaluate(VALUES) is True


def test_long_lists_of_names_are_cut_short_in_messages() -> None:
    values: dict[str, Json] = {"vars": {f"field{number}": 1 for number in range(5_000)} | {"x" * 9_000: 1}}
    with pytest.raises(ExpressionError) as caught:
        compile_expression("vars.feld17", SCOPE).evaluate(values)
    assert str(caught.value).endswith("field11, ...); did you mean field17?")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("pattern", "text", "occurs"),
    [("b+", "abc", True), ("^b", "abc", False), (r"^\d{2}$", "42", True), ("ö", "Größe", True), ("a", "\ud800a", True)],
)
def test_a_pattern_occurs_anywhere_in_a_text(pattern: str, text: str, occurs: bool) -> None:
    assert linear_pattern(pattern)(text) is occurs


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "it can't be parsed, or repeats too much"),
        ("(" * 900 + ")" * 900, "at most 1,000 are allowed"),
        ("(" * 400 + ")" * 400, "it can't be parsed, or repeats too much"),
        ("((a{100}){100}){100}", "it can't be parsed, or repeats too much"),
        (r"(a)\1", "a back-reference is not supported"),
        ("(?<!a)b", "look-around is not supported"),
        ("(?i)a", "flags are not supported"),
        ("\ud800", "it can't be parsed"),
        ("a" * (PATTERN_LENGTH_MAX + 1), "at most 1,000 are allowed"),
    ],
)
def test_a_pattern_that_can_not_be_matched_in_linear_time_is_refused(pattern: str, reason: str) -> None:
    with pytest.raises(Invalid, match=reason):
        linear_pattern(pattern)


SAFE_JSON: Final = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_characters="\b"), max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc-é", max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(SAFE_JSON)
def test_every_json_text_is_an_expression_of_its_own_value(value: Json) -> None:
    source = msgspec.json.encode(value).decode()
    assume(len(source) < 1_000)
    assert compile_expression(source, {}).evaluate({}) == msgspec.json.decode(source)


@given(SAFE_JSON, SAFE_JSON)
def test_equality_of_nested_values_agrees_with_their_json(left: Json, right: Json) -> None:
    """Numbers aside, two values are equal exactly if their sorted JSON is."""
    numbers_apart = msgspec.json.Encoder(order="sorted")
    expression = compile_expression("[vars.left] == [vars.right]", SCOPE)
    same = expression.evaluate({"vars": {"left": left, "right": right}})
    if numbers_apart.encode(left) == numbers_apart.encode(right):
        assert same is True
    if same:
        assert left == right


NAMES: Final = {"n": 3, "m": -1, "s": "abc", "t": "b", "yes": True, "no": False, "ns": [1, 2, 3], "ts": ["a", "b"]}
NUMBERS: Final = st.sampled_from(["0", "1", "3", "2.5", "-1", "n", "m"])
STRINGS: Final = st.sampled_from(['"abc"', '"b"', '""', "s", "t"])
COMPARED: Final = st.one_of(
    st.tuples(NUMBERS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), NUMBERS),
    st.tuples(STRINGS, st.sampled_from(["<", "<=", ">", ">=", "==", "!=", "in", "not in"]), STRINGS),
    st.tuples(NUMBERS, st.sampled_from(["in", "not in"]), st.sampled_from(["[1, 2]", "ns", "[]"])),
    st.tuples(STRINGS, st.sampled_from(["in", "not in"]), st.sampled_from(['["b"]', "ts"])),
    st.tuples(NUMBERS, st.sampled_from(["<", "=="]), NUMBERS, st.sampled_from(["<", ">="]), NUMBERS),
).map(" ".join)
CONDITIONS: Final = st.recursive(
    st.one_of(COMPARED, st.sampled_from(["True", "False", "yes", "no"])),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map("".join),
        inner.map(lambda text: f"not ({text})"),
        inner.map(lambda text: f"({text})"),
    ),
    max_leaves=10,
)


@given(CONDITIONS)
def test_conditions_mean_what_they_mean_in_python(source: str) -> None:
    scope = dict.fromkeys(NAMES, ANY)
    values: dict[str, Any] = dict(NAMES)
    assert compile_condition(source, scope).evaluate(values) is bool(eval(source, {"__builtins__": {}}, values))
