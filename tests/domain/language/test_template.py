"""Templates: text with values in it, and a position for everything that does not fit."""

from __future__ import annotations

from typing import Any, Final

import pytest

from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.domain.language.shape import ANY, NULL, NUMBER, STRING, array_shape, either, shape_of
from handrail.domain.language.template import (
    Template,
    TemplateError,
    compile_template,
    compile_value,
    template_errors,
)

INPUTS: Final = shape_of(
    {
        "type": "object",
        "properties": {
            "version": {"type": "string"},
            "targets": {"type": "array", "items": {"type": "string"}},
            "count": {"type": "integer"},
            "force": {"type": "boolean"},
            "files": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
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
        "files": [{"name": "a.py"}, {"name": "b.py"}],
    },
    "steps": {"notes": {"output": {"file": "notes.md", "gone": None}}},
    "vars": {
        "empty": [],
        "price": 2.567,
        "whole": 2.0,
        "braces": "{{ inputs.version }}{% if %}",
        "grid": [[1, 2], [3]],
    },
}


def render(source: str) -> Json:
    return compile_template(source, SCOPE).render(VALUES)


def refusal(marked: str) -> TemplateError:
    """The error at load."""
    with pytest.raises(TemplateError) as caught:
        compile_template(marked.replace("^", ""), SCOPE)
    return caught.value


def failure(marked: str) -> TemplateError:
    """The error at rendering of what was accepted at load."""
    template = compile_template(marked.replace("^", ""), SCOPE)
    with pytest.raises(TemplateError) as caught:
        template.render(VALUES)
    return caught.value


def place(marked: str) -> tuple[int, int]:
    """Line and column of the ^ that marks the place of an error."""
    before = marked[: marked.index("^")]
    return before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", ""),
        ("plain\n", "plain\n"),
        ("v{{ inputs.version }}", "v1.2.0"),
        ("{{inputs.version}}-{{ inputs.count }}", "1.2.0-3"),
        ("{{ inputs.force }} {{ vars.price }} {{ vars.whole }}", "true 2.567 2.0"),
        ("{{ inputs.targets }}.", '["linux","macos"].'),
        ("{{ steps.notes.output }}.", '{"file":"notes.md","gone":null}.'),
        ("{{ inputs.count > 2 }}!", "true!"),
        ("{{ 'a }} b' }}!", "a }} b!"),
        ("a } b }} c %} d { e", "a } b }} c %} d { e"),
        ("{# a comment {{ nothing }} #}x", "x"),
        ("{% raw %}{{ as it is }} {% if %}{% endraw %}!", "{{ as it is }} {% if %}!"),
        ("{{\n  inputs.version\n}} ok", "1.2.0 ok"),
    ],
)
def test_text_stays_and_tags_become_values(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ inputs.count }}", 3),
        ("{{ inputs.targets }}", ["linux", "macos"]),
        ("{{ inputs.force }}", True),
        ("{{ steps.notes.output.gone }}", None),
        ("{{- inputs.count -}}", 3),
        ("{{ inputs.targets | length }}", 2),
        ("{{ vars.price | round(1) }}", 2.6),
        ("{{ inputs.count }} ", "3 "),
        (" {{ inputs.count }}", " 3"),
        ("{# only #}{{ inputs.count }}", "3"),
        ("{{ inputs.count }}{# only #}", "3"),
        ("{{ inputs.count }}{{ inputs.count }}", "33"),
    ],
)
def test_a_template_that_is_exactly_one_output_keeps_the_type(source: str, value: Json) -> None:
    assert render(source) == value
    assert type(render(source)) is type(value)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% if inputs.force %}yes{% endif %}", "yes"),
        ("{% if not inputs.force %}yes{% endif %}", ""),
        ("{% if inputs.count > 9 %}a{% elif inputs.count > 2 %}b{% else %}c{% endif %}", "b"),
        ("{% if inputs.count > 9 %}a{% elif inputs.count > 8 %}b{% else %}c{% endif %}", "c"),
        ("{% if exists(vars.nope) %}a{% else %}b{% endif %}", "b"),
        ("{% if inputs.force %}{% if inputs.count == 3 %}deep{% endif %}{% endif %}", "deep"),
        ("{%if inputs.force%}a{%endif%}", "a"),
    ],
)
def test_an_if_draws_the_first_branch_that_holds(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{% for t in inputs.targets %}- {{ t }}\n{% endfor %}", "- linux\n- macos\n"),
        ("{% for t in inputs.targets %}{{ t }}{% if not loop.last %}, {% endif %}{% endfor %}", "linux, macos"),
        ("{% for t in inputs.targets %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{% endfor %}", "10true21false"),
        ("{% for t in inputs.targets %}{{ loop.length }}{% else %}none{% endfor %}", "22"),
        ("{% for t in vars.empty %}x{% else %}none {{ inputs.count }}{% endfor %}", "none 3"),
        ("{% for t in vars.empty %}x{% endfor %}", ""),
        ("{% for f in inputs.files %}{{ f.name }} {% endfor %}", "a.py b.py "),
        ("{% for x in [1, 2] %}{{ x }}{% endfor %}", "12"),
        ("{% for t in inputs.targets %}a{% endfor %}{% for t in inputs.targets %}b{% endfor %}", "aabb"),
        (
            "{% for r in vars.grid %}{% for x in r %}{{ x }}{{ loop.last }} {% endfor %}{{ loop.index }};{% endfor %}",
            "1false 2true 1;3true 2;",
        ),
    ],
)
def test_a_for_draws_its_body_for_each_item(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("a\n{% if inputs.force %}\nb\n{% endif %}\nc", "a\n\nb\n\nc"),
        ("a\n{%- if inputs.force %}\nb\n{%- endif %}\nc", "a\nb\nc"),
        ("a {{- inputs.count -}} b", "a3b"),
        ("a {#- gone -#} b", "ab"),
        ("a {%- raw -%} {{ x }} {%- endraw -%} b", "a{{ x }}b"),
        ("{{ -1 }}.", "-1."),
        ("{{-1}}.", "1."),
        ("{{--1}}.", "-1."),
    ],
)
def test_block_tags_keep_their_line_ends_and_a_dash_takes_the_white_space(source: str, text: str) -> None:
    assert render(source) == text


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ 'abc' | upper }}", "ABC"),
        ("{{ 'ABC' | lower }}", "abc"),
        ('{{ "it\'s a well-known (fact)" | title }}', "It's A Well-Known (Fact)"),
        ("{{ '  a b  ' | trim }}", "a b"),
        ("{{ 'abc' | length }}", 3),
        ("{{ inputs.targets | first }}", "linux"),
        ("{{ inputs.targets | last }}", "macos"),
        ("{{ vars.empty | first }}", None),
        ("{{ vars.empty | last | default('none') }}", "none"),
        ("{{ inputs.targets | join(', ') }}", "linux, macos"),
        ("{{ inputs.targets | join }}", "linuxmacos"),
        ("{{ [1, true, 'a|b', [2]] | join('|') }}", "1|true|a|b|[2]"),
        ("{{ inputs.targets | lines }}", "linux\nmacos"),
        ("{{ vars.nope.deep | default('x') | upper }}", "X"),
        ("{{ steps.notes.output.gone | default(inputs.count) }}", 3),
        ("{{ inputs.version | default('x') }}", "1.2.0"),
        ("{{ vars.empty | json }}", "[]"),
        ("{{ 'é' | json }}", '"é"'),
        ("{{ (inputs.count == 3) | json }}", "true"),
        ("{{ vars.price | round }}", 3),
        ("{{ vars.price | round(2) }}", 2.57),
        ("{{ inputs.count | round(2) }}", 3),
        ("{{ inputs.targets | first | upper | length }}", 5),
    ],
)
def test_filters_change_the_value_before_them(source: str, value: Json) -> None:
    assert render(source) == value


@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        ("ab\ncd {{ inputs.^verzion }}", "did you mean version?"),
        ("{{ ^nope }}", "there is no name 'nope' (known: inputs, steps, vars)"),
        ("{{ inputs.version | ^uper }}", "there is no filter 'uper'"),
        ("{{ inputs.version | ^'x' }}", "after | comes the name of a filter"),
        ("{{ inputs.version | ^upper(1) }}", "upper takes 0 arguments in (...), not 1"),
        ("{{ inputs.targets | ^join(1, 2) }}", "join takes 0 to 1 argument in (...), not 2"),
        ("{{ inputs.targets | join(^1) }}", "join needs a string, but 1 is a number"),
        ("{{ vars.x | ^default }}", "default takes 1 argument in (...), not 0"),
        ("{{ ^inputs.count | upper }}", "upper needs a string, but inputs.count is a number"),
        ("{{ inputs.count == ^3 | json }}", "a filter comes last in {{ }}, after the whole expression"),
        ("{{ default(^vars.x | upper, 'a') }}", "a filter comes last in {{ }}"),
        ("a{{ ^null }}", "null is always null"),
        ("{{^ }}", "the expression is empty"),
        ("a\n^{{ inputs.count", "'{{' is never closed"),
        ("a\n^{% if inputs.force", "'{%' is never closed"),
        ("a\n^{# a comment", "'{#' is never closed"),
        ("{{ ^'a }}", "the string is never closed"),
        ("{{ it^'s }}", "the string is never closed"),
        ("^{% raw %}x", "{% raw %} is never closed"),
        ("{% ^if inputs.force %}x", "{% if %} is never closed"),
        ("{% ^if inputs.force %}x{% else %}", "{% if %} is never closed"),
        ("{% ^for t in inputs.targets %}x", "{% for %} is never closed"),
        ("{% ^for t in inputs.targets %}x{% else %}", "{% for %} is never closed"),
        ("{% ^endif %}", "{% endif %} does not belong to an open block"),
        ("{% if inputs.force %}{% ^endfor %}", "{% endfor %} does not belong to an open block"),
        ("{% if inputs.force %}{% else %}{% ^elif inputs.force %}{% endif %}", "does not belong to an open block"),
        ("{% if inputs.force %}{% ^else if inputs.force %}", "nothing can follow 'else'; write {% elif condition %}"),
        ("{% if inputs.force %}{% ^endif inputs %}", "nothing can follow 'endif'; write {% endif %}"),
        ("{% ^set x = 1 %}", "there is no tag 'set' (known: if, elif, else, endif, for, endfor, raw, endraw)"),
        ("{% ^%}", "there is no tag ''"),
        ("{% ^iff inputs.force %}", "did you mean if?"),
        ("{% if ^inputs.count %}{% endif %}", "a condition must be true or false; this is a number"),
        ("{% if inputs.count > ^%}{% endif %}", "something is missing here"),
        ("{% ^for t of inputs.targets %}{% endfor %}", "write {% for name in list %}"),
        ("{% ^for a, b in inputs.files %}{% endfor %}", "write {% for name in list %}"),
        ("{% for t in ^inputs.count %}{% endfor %}", "for needs a list, but inputs.count is a number"),
        ("{% for t in ^inputs.targets | first %}{% endfor %}", "a filter comes last in {{ }}"),
        ("{% for ^_t in inputs.targets %}{% endfor %}", "'_t' can't be the name of a loop's item"),
        ("{% for ^loop in inputs.targets %}{% endfor %}", "'loop' can't be the name of a loop's item"),
        ("{% for ^null in inputs.targets %}{% endfor %}", "'null' can't be the name of a loop's item"),
        ("{% for ^class in inputs.targets %}{% endfor %}", "'class' can't be the name of a loop's item"),
        ("{% for ^inputs in inputs.targets %}{% endfor %}", "the name 'inputs' is taken"),
        ("{% for t in [1] %}{% for ^t in [1] %}{% endfor %}{% endfor %}", "the name 't' is taken"),
        ("{% for t in inputs.targets %}{{ t.^x }}{% endfor %}", "t is a string: it has no field 'x'"),
        ("{% for f in inputs.files %}{{ f.^size }}{% endfor %}", "f has no field 'size' (known: name)"),
        ("{% for t in inputs.targets %}{{ loop.^indx }}{% endfor %}", "did you mean index?"),
        ("{% for t in inputs.targets %}{% endfor %}{{ ^t }}", "there is no name 't'"),
        ("{% for t in inputs.targets %}{% else %}{{ ^t }}{% endfor %}", "there is no name 't'"),
        ("{{ ^loop.index }}", "there is no name 'loop'"),
    ],
)
def test_what_does_not_fit_is_refused_at_load_at_its_line_and_column(marked: str, reason: str) -> None:
    error = refusal(marked)
    assert reason in str(error)
    assert (error.line, error.column) == place(marked)


@pytest.mark.parametrize(
    ("marked", "reason"),
    [
        ("a\nb {{ ^steps.notes.output.gone }}", "steps.notes.output.gone is null: use default(...)"),
        ("a {{ steps.notes.output.^fil }}", "steps.notes.output has no field 'fil'"),
        ("{{ vars.^nope }}", "vars has no field 'nope'"),
        ("{{ ^vars.price | upper }}", "upper needs a string, but vars.price is a number"),
        ("{{ ^vars.empty | first | upper }}", "upper needs a string, but vars.empty | first is null; use default(...)"),
        ("{{ [vars.price, null] | ^join }}", "join: item [1] is null: use default(...)"),
        ("{{ vars.price | ^round(99) }}", "round: the digits must be a whole number from 0 to 10"),
        ("{{ vars.price | ^round(vars.price) }}", "round: the digits must be a whole number from 0 to 10"),
        ("{% if ^vars.empty %}{% endif %}", "a condition must be true or false; this is a list"),
        ("{% for t in ^vars.price %}{% endfor %}", "for needs a list, but vars.price is a number"),
        ("{% for row in vars.grid %}\n{{ row.^x }}{% endfor %}", "row is a list: it has no field 'x'"),
    ],
)
def test_what_only_the_values_show_is_an_error_when_rendered_with_its_place(marked: str, reason: str) -> None:
    error = failure(marked)
    assert reason in str(error)
    assert (error.line, error.column) == place(marked)


def test_an_error_is_an_invalid_one() -> None:
    assert isinstance(refusal("{{ nope }}"), Invalid)


def test_braces_in_a_value_are_data_and_never_rendered() -> None:
    assert render("{{ vars.braces }}!") == "{{ inputs.version }}{% if %}!"
    assert render("{% for c in [vars.braces] %}{{ c | trim }}{% endfor %}") == "{{ inputs.version }}{% if %}"


def test_rendering_leaves_the_values_as_they_were() -> None:
    values: dict[str, Json] = {"inputs": {"targets": ["a"]}, "steps": {}, "vars": {}}
    compile_template("{% for t in inputs.targets %}{{ t }}{{ loop.index }}{% endfor %}", SCOPE).render(values)
    assert values == {"inputs": {"targets": ["a"]}, "steps": {}, "vars": {}}


@pytest.mark.parametrize(
    ("source", "paths"),
    [
        ("plain", ()),
        ("{{ inputs.version }} {{ inputs.version }}", (("inputs", "version"),)),
        ("{{ vars.x | default(vars.y) }}", (("vars", "x"), ("vars", "y"))),
        (
            "{% for f in inputs.files %}{{ f.name }}{{ loop.index }}{{ vars.z }}{% endfor %}{{ inputs.force }}",
            (("inputs", "files"), ("vars", "z"), ("inputs", "force")),
        ),
        ("{% for x in vars.grid %}{% for y in x %}{{ y }}{% endfor %}{% endfor %}", (("vars", "grid"),)),
    ],
)
def test_the_paths_that_a_template_reads_are_known_at_load_without_those_of_its_loops(
    source: str, paths: tuple[object, ...]
) -> None:
    assert compile_template(source, SCOPE).paths == paths


@pytest.mark.parametrize(
    ("source", "shape"),
    [
        ("plain", STRING),
        ("{{ inputs.count }}", NUMBER),
        (" {{ inputs.count }}", STRING),
        ("{{ inputs.targets }}", array_shape(STRING)),
        ("{{ inputs.targets | first }}", either(STRING, NULL)),
        ("{{ vars.x | first }}", ANY),
    ],
)
def test_the_shape_of_the_result_is_known_at_load(source: str, shape: object) -> None:
    assert compile_template(source, SCOPE).shape == shape


def test_a_template_knows_whether_it_has_any_tags() -> None:
    assert compile_template("plain } text", SCOPE).is_literal
    assert not compile_template("{# a comment #}", SCOPE).is_literal


def test_a_loop_is_refused_where_the_name_loop_is_already_in_use() -> None:
    with pytest.raises(TemplateError, match="the name 'loop' is taken"):
        compile_template("{% for x in [1] %}{% endfor %}", {"loop": ANY})


ARGS: Final[Json] = {
    "url": "https://example.org/{{ inputs.version }}",
    "headers": {"X-Count": "{{ inputs.count }}", "{{ key }}": "plain"},
    "list": ["{{ inputs.targets }}", 1, None, True],
}


def test_every_string_in_a_nested_value_is_a_template_and_keys_stay() -> None:
    template = compile_value(ARGS, SCOPE)
    assert template.render(VALUES) == {
        "url": "https://example.org/1.2.0",
        "headers": {"X-Count": 3, "{{ key }}": "plain"},
        "list": [["linux", "macos"], 1, None, True],
    }
    assert template.paths == (("inputs", "version"), ("inputs", "count"), ("inputs", "targets"))


@pytest.mark.parametrize("value", ["plain", 3, None, [], {"a": [1, {}]}])
def test_a_value_without_templates_stays_as_it_is(value: Json) -> None:
    assert compile_value(value, SCOPE).render({}) == value


def test_all_errors_of_a_value_are_found_each_with_its_path() -> None:
    value: Json = {"a": "{{ nope }}", "headers": {"X": "ok", "X-Id": ["{{ inputs.count }}", "a\n{{ inputs.x }}"]}}
    errors = template_errors(value, SCOPE)
    assert [(error.where, error.path, error.line, error.column) for error in errors] == [
        (".a", ("a",), 1, 4),
        ('.headers["X-Id"][1]', ("headers", "X-Id", 1), 2, 11),
    ]


def test_the_first_error_of_a_value_is_raised() -> None:
    with pytest.raises(TemplateError) as caught:
        compile_value({"a": ["{{ nope }}"], "b": "{{ nope }}"}, SCOPE)
    assert caught.value.where == ".a[0]"


def test_an_error_at_the_root_of_a_value_has_no_path() -> None:
    [error] = template_errors("{{ nope }}", SCOPE)
    assert error.where == ""


def test_an_error_when_a_value_is_rendered_carries_its_path() -> None:
    template = compile_value({"a": [1, "x {{ vars.nope }}"]}, SCOPE)
    with pytest.raises(TemplateError) as caught:
        template.render(VALUES)
    assert (caught.value.where, caught.value.line, caught.value.column) == (".a[1]", 1, 11)


def test_a_value_that_is_nested_too_deeply_is_refused() -> None:
    value: Any = "x"
    for _ in range(500):
        value = [value]
    [error] = template_errors(value, SCOPE)
    assert "nested too deeply" in str(error)


def test_the_templates_of_one_value_share_its_allowance() -> None:
    template = compile_value(["{{ vars.long }}." for _ in range(3)], SCOPE)
    with pytest.raises(TemplateError, match="the text is longer than 200,000 characters") as caught:
        template.render({"vars": {"long": "x" * 90_000}})
    assert caught.value.where == "[2]"


def test_a_compiled_template_can_be_rendered_again_and_again() -> None:
    template: Template = compile_template("{% for t in inputs.targets %}{{ t }}{% endfor %}", SCOPE)
    assert [template.render(VALUES) for _ in range(3)] == ["linuxmacos"] * 3
