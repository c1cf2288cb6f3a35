"""The language against those who mean harm: all is refused, or exactly evaluated, at once and with a clear error."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handrail.domain.json import Json
from handrail.domain.language import expression_text
from handrail.domain.language.expression import ExpressionError, compile_condition, compile_expression
from handrail.domain.language.expression_value import WORK_MAX
from handrail.domain.language.shape import ANY
from handrail.domain.language.template import TemplateError, compile_template, compile_value, template_errors

CPU_S_MAX: Final = 5.0  # generous: what gets through here takes minutes, or all memory
SCOPE: Final = {"a": ANY, "b": ANY, "inputs": ANY}
VALUES: Final[dict[str, Json]] = {"a": {"b": {"c": 1}}, "b": [1, 2], "inputs": {"file": "x", "text": "t"}}


def error_of(action: Callable[[], object]) -> ExpressionError | TemplateError | None:
    """What an action raises of our own; anything else is not caught, and fails the test."""
    try:
        action()
    except (ExpressionError, TemplateError) as error:
        return error
    return None


@pytest.fixture(autouse=True)
def _quick() -> Iterator[None]:
    start = time.process_time()
    yield
    assert time.process_time() - start < CPU_S_MAX


HOSTILE_EXPRESSIONS: Final = [
    "9**9**9",
    "9" * 1_900,
    "0x" + "f" * 1_900,
    "1e" + "9" * 1_900,
    "-" + "9" * 31,
    "9" * 5_000,
    "10 ** 10000000",
    "1 << 99999999",
    '"a" * 99999999',
    "'%099999999d' % 1",
    '"{:>99999999}".format(1)',
    "(" * 199 + "1" + ")" * 199,
    "(" * 1_000 + "1" + ")" * 1_000,
    "[" * 900 + "]" * 900,
    "{" * 1_000,
    "not " * 400 + "true",
    "not " * 499 + "true",
    "-" * 1_900 + "1",
    "- " * 890 + "1",
    "a." * 900 + "b",
    "a" + ".b" * 440,
    "a" + "[0]" * 299,
    "len(" * 200 + "a" + ")" * 200,
    "1 == 1 and " * 150 + "true",
    "1 < " * 400 + "1",
    "[" + "1," * 900 + "1]",
    "'" + "x" * 1_001 + "'",
    "'" * 1_999,
    '"' * 2_000,
    "\\" * 2_000,
    "a.__class__",
    "a.__class__.__mro__[1].__subclasses__()",
    "().__class__",
    "''.__class__",
    "a._b",
    "__import__('os')",
    "__import__('os').system('true')",
    "open('/etc/passwd')",
    "eval('1')",
    "exec('1')",
    "getattr(a, 'b')",
    "len.__self__",
    "lower.x",
    "inputs.text.format(a)",
    "[x for x in b]",
    "[x for x in b for y in b for z in b]",
    "{x: x for x in b}",
    "(x for x in b)",
    "any(x for x in b)",
    "lambda: 1",
    "(lambda f: f(f))(lambda f: f(f))",
    "f'{a}'",
    "f'{a!r:>99999999}'",
    "rb'x'",
    "b'x'",
    "u'x'",
    "(x := 1)",
    "a if b else a",
    "*b",
    "len(*b)",
    "len(**a)",
    "lower(x='a')",
    "yield",
    "await a",
    "a is b",
    "a[0:1]",
    "a[...]",
    "...",
    "1j",
    "import os",
    "a; b",
    "a\0",
    "\0",
    "a == '\0' or \x01",
    "\ud800",
    "'\ud800'",
    "r'\ud800'",
    r"'\ud800'",
    "\uff41",
    "a.\uff42",
    "inputs.\ufb01le",
    "a.\uff3f\uff3fclass\uff3f\uff3f",
    "a.__\uff43lass__",
    "\ufb01le",
    "\U0001d622",
    "a\u00a0== 1",
    "a\u2028== 1",
    "a == 1\u200b",
    "\ufeffa",
    "a\u202e == 1",
    "matches('a', '((a{100}){100}){100}')",
    "matches('a', '(a)\\\\1')",
    "matches('a', '" + "(" * 450 + ")" * 450 + "')",
    "matches('a', '\\p{L}{1000}{1000}')",
    "matches('a', inputs.text)",
    "1if 1else 2",
    "0or 1",
    "1_0",
    "'\\d' '\\d'",
    "# comment",
    "a#b",
    "",
    " ",
    "\n" * 1_999,
    "\t",
]


@pytest.mark.parametrize("source", HOSTILE_EXPRESSIONS, ids=lambda source: ascii(source[:40]))
def test_a_hostile_expression_is_refused_with_a_place_in_it(source: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(source, SCOPE)
    assert 1 <= caught.value.column <= len(source) + 1
    assert str(caught.value)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'\0' == '\0'", True),
        ("'\ufb01' == 'fi'", False),
        ("a['__class__'] == null", None),
        ("(" * 40 + "1" + ")" * 40, 1),
        ("true" + " and true" * 148, True),
        ("'\\d' == '\\\\d'", True),
        ("'" + "x" * 1_000 + "' == ''", False),
    ],
    ids=lambda source: ascii(source)[:40],
)
def test_what_only_looks_hostile_means_exactly_what_it_says(source: str, value: Json) -> None:
    expression = compile_expression(source, SCOPE)
    if value is None:
        with pytest.raises(ExpressionError, match="a has no field '__class__'"):
            expression.evaluate(VALUES)
    else:
        assert expression.evaluate(VALUES) == value


def test_a_field_can_not_be_reached_by_a_look_alike_of_its_name() -> None:
    assert compile_expression("inputs['\ufb01le']", SCOPE).paths == (("inputs", "\ufb01le"),)
    with pytest.raises(ExpressionError, match="inputs has no field '\ufb01le'"):
        compile_expression("inputs['\ufb01le']", SCOPE).evaluate(VALUES)


def test_python_s_parser_sees_nothing_but_plain_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def parse(source: str, **_: Any) -> ast.Expression:
        seen.append(source)
        return ast.parse("(1)", mode="eval")

    monkeypatch.setattr(expression_text, "ast", replaced_parser(parse))
    compile_expression("a == '\0\\d é' or b == r\"\\bé\"", SCOPE)
    assert seen == ["(a == '_____' or b ==  \"___\")"]


@pytest.mark.parametrize("error", [RecursionError, MemoryError])
def test_a_parser_that_gives_up_is_an_error_of_the_expression(
    error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(expression_text, "ast", replaced_parser(parse))
    with pytest.raises(ExpressionError, match="too large or too deeply nested"):
        compile_expression("1", SCOPE)


def replaced_parser(parse: Callable[..., object]) -> SimpleNamespace:
    return SimpleNamespace(**{**vars(ast), "parse": parse})


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 50_000 + "!"),
        ("^(a|a)*$", "a" * 50_000 + "!"),
        ("(.*)*x(.*)*y", "x" * 50_000),
        ("a{0,200}a{0,200}b", "a" * 50_000),
    ],
)
def test_a_catastrophic_pattern_is_matched_in_linear_time(pattern: str, text: str) -> None:
    assert compile_expression(f"matches(a, r'{pattern}')", SCOPE).evaluate({"a": text}) is False


def nested(depth: int) -> Json:
    value: Json = 1
    for _ in range(depth):
        value = [value]
    return value


HOSTILE_VALUES: Final[Mapping[str, Callable[[], Json]]] = {
    "a deep list": lambda: nested(100_000),
    "half a character": lambda: "\ud800",
    "a huge number": lambda: 10**5_000,
    "not a number": lambda: float("nan"),
    "without end": lambda: float("inf"),
    "a large text": lambda: "a" * 1_000_000,
    "a large list": lambda: [1] * 300_000,
    "braces": lambda: "{{ a }}{% for x in y %}",
    "a null byte": lambda: "\0",
    "a field with odd names": lambda: {"": 1, "a\nb": 2, "\ud800": 3},
}
SOURCES: Final = [
    "a == b",
    "a != [b]",
    "[a] == [b]",
    "a < b",
    "a in b",
    "a in [b, a]",
    "lower(a)",
    "word(a)",
    "is_number(a)",
    "text(a, b)",
    "column(a, b)",
    "len(a)",
    "matches(a, '^(a+)+$')",
    "contains(a, b)",
    "starts_with(a, b)",
    "a.x.y",
    "a[0][0]",
    "default(a.x, b)",
    "a and b",
    "not a",
]
TEMPLATES: Final = [
    "{{ a }}",
    "-{{ a }}",
    "{{ a | json }}",
    "{{ a | upper }}",
    "{{ a | title }}",
    "{{ a | join(', ') }}",
    "{{ a | round }}",
    "{{ a | round(3) }}",
    "{{ a | first | default(b) }}",
    "{% for x in a %}{{ x }}{% endfor %}",
    "{% if a %}{% endif %}",
]


@pytest.mark.parametrize("name", HOSTILE_VALUES)
@pytest.mark.parametrize("source", SOURCES)
def test_a_hostile_value_is_compared_or_refused(name: str, source: str) -> None:
    values = {"a": HOSTILE_VALUES[name](), "b": HOSTILE_VALUES[name]()}
    error = error_of(lambda: compile_expression(source, SCOPE).evaluate(values))
    assert error is None or len(str(error)) < 500


@pytest.mark.parametrize("name", HOSTILE_VALUES)
@pytest.mark.parametrize("source", TEMPLATES)
def test_a_hostile_value_is_written_or_refused(name: str, source: str) -> None:
    values = {"a": HOSTILE_VALUES[name](), "b": ""}
    error = error_of(lambda: compile_template(source, SCOPE).render(values))
    assert error is None or len(str(error)) < 500


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a deep list", "a can't be written as JSON"),
        ("a huge number", "a can't be written as JSON"),
        ("not a number", "a is not a finite number"),
        ("without end", "a is not a finite number"),
        ("a large text", "the text is longer than 200,000 characters"),
        ("a large list", "the text is longer than 200,000 characters"),
    ],
)
def test_a_value_that_can_not_stand_in_a_text_says_why(name: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        compile_template("-{{ a }}", SCOPE).render({"a": HOSTILE_VALUES[name]()})


def test_numbers_that_json_does_not_have_can_not_be_rounded_or_encoded() -> None:
    for filter_name in ("round", "json"):
        with pytest.raises(TemplateError, match=f"{filter_name}: the .* not .*finite"):
            compile_template(f"{{{{ a | {filter_name} }}}}", SCOPE).render({"a": float("inf")})


HOSTILE_TEMPLATES: Final = [
    "{{" * 10_000,
    "{%" * 10_000,
    "{#" * 10_000,
    "{% raw %}" * 2_000,
    "{{ '" * 5_000,
    '{{ "' * 5_000,
    "{{" + " " * 19_998,
    "{%" + " " * 19_998,
    "{% raw %}" + "{% " * 6_000,
    "{% raw %}{%" + " " * 19_000,
    "{{ a" + " | upper" * 2_000 + " }}",
    "{{ " + "a" * 2_001 + " }}",
    "{{ a }}" * 2_858,
    "x" * 20_001 + "{{ a }}",
    "{% if true %}" * 21 + "{% endif %}" * 21,
    "{% if true %}" * 1_000,
    "{% for x in b %}" * 4 + "{% endfor %}" * 4,
    "{% for x in b %}{% for y in b %}{% for z in b %}{% for w in b %}" + "{% endfor %}" * 4,
    "{% endif %}" * 1_000,
    "{% set x = 1 %}",
    "{% set a = 'xx' %}" + "{% set a = a ~ a %}" * 40,
    "{% with x = a %}{% endwith %}",
    "{% macro m() %}{{ m() }}{% endmacro %}",
    "{% include 'x' %}",
    "{% import 'x' as y %}",
    "{% extends 'x' %}",
    "{% call a() %}{% endcall %}",
    "{% filter upper %}{% endfilter %}",
    "{% for x in b recursive %}{{ loop(b) }}{% endfor %}",
    "{% for i in range(999999) %}x{% endfor %}",
    "{% for x in b %}{{ loop(b) }}{% endfor %}",
    "{% for x in b %}{{ loop.__class__ }}{% endfor %}",
    "{% for x in b if x %}{% endfor %}",
    "{% for __class__ in b %}{% endfor %}",
    "{% for \ufb01le in b %}{% endfor %}",
    "{{ a.__class__ }}",
    "{{ a.__init__.__globals__ }}",
    "{{ self }}",
    "{{ cycler }}",
    "{{ 'x' * 99999999 }}",
    "{{ a ~ a }}",
    "{{ a | replace('x', 'yy') }}",
    "{{ a | indent(999999) }}",
    "{{ a | attr('__class__') }}",
    "{{ a | map(attribute='x') }}",
    "{{ (a | upper) }}{{ a.format(1) }}",
    "{{ a | upper() | upper('x') }}",
    "{{ ''.join(b) }}",
    "{{ [x for x in b] }}",
    "{{ f'{a}' }}",
    "{{ \0 }}",
    "{{ \ud800 }}",
    "{{ }}",
    "{% %}",
    "{{ {{ a }} }}",
    "{{ a }",
    "{{ a %}",
    "{% if a }}",
]


@pytest.mark.parametrize("source", HOSTILE_TEMPLATES, ids=lambda source: ascii(source[:40]))
def test_a_hostile_template_is_refused_with_a_place_in_it(source: str) -> None:
    with pytest.raises(TemplateError) as caught:
        compile_template(source, SCOPE)
    assert caught.value.line >= 1
    assert 1 <= caught.value.column <= len(source) + 1
    assert str(caught.value)


BIG: Final = ["y" * 50] * 1_000
LONG: Final = "b" * 100_000


def looped(body: str, *, loops: int) -> str:
    """The body in loops over the big list, one in another."""
    return "".join(f"{{% for x{depth} in a %}}" for depth in range(loops)) + body + "{% endfor %}" * loops


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (looped("{{ x2 }}", loops=3), "the text is longer than 200,000 characters"),
        (looped("{{ a }}", loops=2), "the text is longer than 200,000 characters"),
        (looped("text" * 1_000, loops=1), "the text is longer than 200,000 characters"),
        (looped("", loops=3), "the loops take more than 100,000 rounds"),
        (looped("", loops=2), "the loops take more than 100,000 rounds"),
        (looped("{{ '' }}" * 2_000, loops=1), "too much work"),
        (looped("{% if true %}{% endif %}" * 20, loops=2), "too much work"),
        (looped("{% for y in [] %}{% endfor %}" * 20, loops=2), "too much work"),
        (looped("{% if x0 in a and x0 == x0 %}{% endif %}" * 100, loops=1), "too much work"),
        (looped("{% if 'z' in a %}{% endif %}", loops=2), "too much work"),
        (looped("{% if [a] == [a, a] or [a] != [a] %}{% endif %}", loops=2), "too much work"),
        (looped("{% if {'x': b} != {'x': b} %}{% endif %}", loops=2), "too much work"),
        (looped("{% if b == b %}{% endif %}", loops=2), "too much work"),
        (looped("{% if 2 in inputs %}{% endif %}", loops=2), "too much work"),
        (looped("{% if b < b %}{% endif %}", loops=2), "too much work"),
        (looped("{% if 'z' in b %}{% endif %}", loops=2), "too much work"),
        (looped("{% if contains(a, b) %}{% endif %}", loops=2), "too much work"),
        (looped("{% if matches(b, 'z') %}{% endif %}", loops=2), "too much work"),
        (looped("{% if lower(b) == '' %}{% endif %}", loops=2), "too much work"),
        (looped("{% if not starts_with(b, b) %}{% endif %}", loops=2), "too much work"),
        (looped("{% if not ends_with(b, b) %}{% endif %}", loops=2), "too much work"),
        (looped("{{ a | json | length }}", loops=2), "too much work"),
        (looped("{{ a | lines | length }}", loops=2), "too much work"),
        (looped("{{ b | title | length }}", loops=2), "too much work"),
    ],
    ids=lambda text: text[:70],
)
def test_a_template_bomb_is_stopped_while_it_grows(source: str, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        compile_template(source, SCOPE).render({"a": BIG, "b": LONG, "inputs": [1] * 1_000})


def test_a_misspelt_field_of_a_huge_object_is_shown_at_once() -> None:
    fields: dict[str, Json] = {f"{number:050}": 1 for number in range(200_000)}
    error = error_of(lambda: compile_expression("a['" + "0" * 49 + "x']", SCOPE).evaluate({"a": fields}))
    assert error is not None
    assert len(str(error)) < 1_000


def test_the_first_operation_may_be_as_large_as_its_value() -> None:
    text = "b" * (WORK_MAX + 1)
    assert compile_expression("contains(a, 'c')", SCOPE).evaluate({"a": text}) is False


def test_a_search_for_a_long_part_in_a_long_text_is_linear() -> None:
    values: dict[str, Json] = {"a": "a" * 20_000 + "b", "b": "a" * 500_000}
    assert compile_expression("a in b", SCOPE).evaluate(values) is False


@settings(max_examples=400, deadline=None)
@given(
    st.text(max_size=60) | st.text("ab.[](){}'\"\\ \n0123456789=<>!,:-+|_andortifhelsxcé\ufb01\uff3f\0#", max_size=60)
)
@example("\\N{DIGIT ONE}")
@example("'\\N{DIGIT ONE}'")
@example("1if 1else 2")
@example("'\\")
def test_any_text_compiles_or_is_an_expression_error(source: str) -> None:
    for error in (
        error_of(lambda: compile_expression(source, SCOPE).evaluate(VALUES)),
        error_of(lambda: compile_condition(source, SCOPE).evaluate(VALUES)),
    ):
        assert error is None or 1 <= error.column <= len(source) + 1


TEMPLATE_WORDS: Final = [
    *("{{", "}}", "{%", "%}", "{#", "#}", "-", " ", "\n", "'", '"', "(", ")", "|", "é"),
    *("if", "elif", "else", "endif", "for", "endfor", "raw", "endraw", "in", "true", "upper", "json"),
    *("x", "b", "a.b.c", "loop.index"),
]


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(TEMPLATE_WORDS), max_size=40).map("".join))
@example("{% for x in b %}{{ x }}{% endfor %}")
def test_any_text_renders_or_is_a_template_error(source: str) -> None:
    error = error_of(lambda: compile_template(source, SCOPE).render(VALUES))
    lines = source.split("\n")
    if isinstance(error, TemplateError):
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("{{ a }}"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("bcx", max_size=2), inner, max_size=4),
    max_leaves=10,
)


@settings(deadline=None)
@given(JSON)
def test_any_value_compiles_and_renders_or_is_a_template_error(value: Json) -> None:
    found = [error.where for error in template_errors(value, SCOPE)]
    error = error_of(lambda: compile_value(value, SCOPE).render(VALUES))
    assert not found or (isinstance(error, TemplateError) and error.where == found[0])


ATOMS: Final = st.sampled_from(
    ["a", "a.b", "b[0]", "a['x']", "b", "1", "-2.5", "'b'", "''", "true", "null", "[]", "[1, 'b']", "{}", "{'b': 1}"]
)
BINARY: Final = st.sampled_from(["==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"])
TWO: Final = st.sampled_from(["contains", "default", "starts_with", "ends_with"])
ONE: Final = st.sampled_from(["len", "lower", "upper", "word", "is_number", "not ", "exists"])
GRAMMAR: Final = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, BINARY, inner).map(lambda parts: f"({' '.join(parts)})"),
        st.tuples(TWO, inner, inner).map(lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"),
        st.tuples(ONE, inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        inner.map(lambda part: f"matches({part}, '^b')"),
        st.lists(inner, max_size=3).map(lambda parts: f"[{', '.join(parts)}]"),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(GRAMMAR, JSON, JSON)
def test_any_expression_of_the_grammar_evaluates_or_is_an_expression_error(source: str, a: Json, b: Json) -> None:
    error = error_of(lambda: compile_expression(source, SCOPE).evaluate({"a": a, "b": b}))
    assert error is None or 1 <= error.column <= len(source) + 1
