"""Documents: what two syntaxes say alike, and where everything stands in the text."""

from __future__ import annotations

import json
from pathlib import Path as File
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.domain.checks.finding import Flaw, Path, Position, Severity
from handrail.domain.errors import Invalid
from handrail.domain.json import EXACT_INTEGER_MAX, Json
from handrail.library.documents import yaml_document
from handrail.library.documents.document import Document, ValuePosition, document_of, finding_of, read_document
from handrail.library.documents.printing import yaml_text

SHIP_RELEASE = File(__file__).with_name("ship-release.yaml").read_text("utf-8")


def value_of(text: str | bytes, name: str = "x.yaml") -> Any:
    return read_document(text, name=name).value


def written(position: Position | None) -> str:
    return f"{position.line}:{position.column}" if position else "nowhere"


def flaw_at(path: Path, **more: Any) -> Flaw:
    return Flaw(rule="r", severity=Severity.MINOR, path=path, message="m", fix="f", **more)


# What a string says


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *[(word, word) for word in ("no", "on", "yes", "off", "y", "No", "12:30:45", "2026-01-02", "0755", "1_000")],
        *[(word, word) for word in ("1.2.0", "1e", "0o8", "0xg", "+", ".", "nan", "inf", "NULL_", "tRue", "=", "00")],
        *[(word, True) for word in ("true", "True", "TRUE")],
        *[(word, False) for word in ("false", "False", "FALSE")],
        *[(word, None) for word in ("~", "null", "Null", "NULL", "")],
        *[("0", 0), ("-0", 0), ("+5", 5), ("-12", -12), ("0o17", 15), ("0x1F", 31)],
        *[("1.5", 1.5), (".5", 0.5), ("5.", 5), ("1e3", 1000), ("-1.5E-3", -0.0015), ("1.0", 1)],
        (str(EXACT_INTEGER_MAX), EXACT_INTEGER_MAX),
        *[("'5'", "5"), ('"true"', "true"), ("''", ""), ("'it''s'", "it's"), (r'"a\tb"', "a\tb")],
        *[("!!str 5", "5"), ("!!int '5'", 5), ("!!float 5", 5), ("!!bool true", True), ("!!null ~", None)],
        *[("!!seq [a]", ["a"]), ("!!map {a: b}", {"a": "b"}), ("[Which version?]", ["Which version?"])],
    ],
)
def test_yaml_words_mean_what_the_core_schema_of_yaml_1_2_says(written: str, meant: Json) -> None:
    found = value_of(f"a: {written}\n")
    assert found == {"a": meant}
    assert type(found["a"]) is type(meant)


def test_the_key_on_stays_a_text() -> None:
    assert value_of("retry: {on: [transient], no: yes}\n") == {"retry": {"on": ["transient"], "no": "yes"}}


def test_a_quoted_pair_of_angles_is_an_ordinary_key() -> None:
    assert value_of("'<<': 1\n") == {"<<": 1}


def test_an_alias_stands_for_its_anchor() -> None:
    text = "a: &x {b: [1, 2]}\nc: *x\nd: &y text\ne: [*y, *y]\nf: &x other\ng: *x\n"
    assert value_of(text) == {
        "a": {"b": [1, 2]},
        "c": {"b": [1, 2]},
        "d": "text",
        "e": ["text", "text"],
        "f": "other",
        "g": "other",
    }


@pytest.mark.parametrize("name", ["x.yaml", "x.json", "<plan>"])
def test_a_byte_order_mark_is_no_part_of_the_text(name: str) -> None:
    document = read_document(b'\xef\xbb\xbf{"a": 1}', name=name)
    assert (document.value, written(document.at(("a",)))) == ({"a": 1}, "1:7")


@pytest.mark.parametrize(
    ("text", "name", "meant"),
    [
        ('{"a": [1, true, null, "x"]}', "<plan>", {"a": [1, True, None, "x"]}),
        ('\n\t {"a": "\\ud83d\\ude00"}', "<plan>", {"a": "😀"}),
        ("{a: yes, b: [c, d,],}", "<plan>", {"a": "yes", "b": ["c", "d"]}),
        ("[a, b]", "x.yaml", ["a", "b"]),
        ("{a: 1} # not JSON", "x.yaml", {"a": 1}),
        ('"text"', "x.json", "text"),
        ('"text"', "x.yaml", "text"),
        ("a: 1", "<plan>", {"a": 1}),
        ("---\na: 1\n...\n", "x.yaml", {"a": 1}),
        ("%YAML 1.2\n---\na: 1\n", "x.yaml", {"a": 1}),
        ('{"a":\t[1 ,\r\n2]}', "x.yaml", {"a": [1, 2]}),
    ],
)
def test_json_is_what_looks_like_it_and_parses_as_it(text: str, name: str, meant: Json) -> None:
    assert value_of(text, name) == meant


def test_whole_floats_are_integers_as_in_the_canonical_form() -> None:
    found: Any
    for found in (value_of("a: 3.0"), value_of('{"a": 3.0}'), document_of({"a": 3.0}, name="x").value):
        assert found == {"a": 3}
        assert type(found["a"]) is int


scalars = st.none() | st.booleans() | st.integers(-EXACT_INTEGER_MAX, EXACT_INTEGER_MAX) | st.text()
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    scalars | numbers,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(), inner, max_size=5),
    max_leaves=30,
)


@given(values, st.booleans(), st.sampled_from([None, 0, 1, "\t"]))
@example({"": {"a/b": [], "~": {}}}, False, None)
def test_json_text_of_any_data_reads_as_that_data(value: Json, ascii_only: bool, indent: int | str | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert value_of(text, "x.json") == value


@given(values, st.sampled_from([None, True, False]), st.sampled_from(["\n", "\r\n"]))
@example("", None, "\n")
@example({"a": "0o17", "b": "0x1", "c": "1e3", "d": ".5", "e": "~"}, False, "\n")
def test_yaml_text_of_any_data_reads_as_that_data(value: Json, flow: bool | None, line_break: str) -> None:
    text = yaml.dump(value, Dumper=_QuotingDumper, default_flow_style=flow, line_break=line_break)
    assert value_of(text, "x.yaml") == value


class _QuotingDumper(yaml.SafeDumper):
    """The library writes YAML 1.1, where `0o17` and `1e3` are texts: texts are quoted to be read alike."""


_QuotingDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"')
)


@given(values)
def test_data_without_a_text_is_read_alike_and_stands_nowhere(value: Json) -> None:
    document = document_of(value, name="<plan>")
    assert document == Document("<plan>", value, {})
    assert (document.at(()), document.at_key(("a",)), document.inside((), 1, 1)) == (None, None, None)


def test_data_that_is_not_json_is_refused() -> None:
    with pytest.raises(Invalid) as refused:
        document_of({1: {2, 3}}, name="<plan>")  # type: ignore[dict-item]
    assert [finding.message for finding in refused.value.findings] == ["the key 1 is not a string", "set is not JSON"]


# Where it stands

EXAMPLE = """\
# a comment
id: demo
steps:
  - id: one
    'prompt': "Say {{ x }}"
    after: [a, 'b']
  -  plain é text
note: |

  first
    second
folded: >-
  one
  two
"""


@pytest.mark.parametrize(
    ("path", "value_at", "key_at"),
    [
        ((), "2:1", "2:1"),
        (("id",), "2:5", "2:1"),
        (("steps",), "4:3", "3:1"),
        (("steps", 0), "4:5", "4:5"),
        (("steps", 0, "id"), "4:9", "4:5"),
        (("steps", 0, "prompt"), "5:15", "5:5"),
        (("steps", 0, "after"), "6:12", "6:5"),
        (("steps", 0, "after", 1), "6:16", "6:16"),
        (("steps", 1), "7:6", "7:6"),
        (("steps", 0, "none", 3, "deeper"), "4:5", "4:5"),
        (("steps", 7), "4:3", "3:1"),
        (("unheard",), "2:1", "2:1"),
        (("note",), "8:7", "8:1"),
    ],
)
def test_every_value_and_key_knows_its_place_or_that_of_the_nearest_around_it(
    path: Path, value_at: str, key_at: str
) -> None:
    document = read_document(EXAMPLE, name="x.yaml")
    assert (written(document.at(path)), written(document.at_key(path))) == (value_at, key_at)


@pytest.mark.parametrize(
    ("path", "line", "column", "at"),
    [
        (("id",), 1, 3, "2:7"),
        (("steps", 0, "prompt"), 1, 5, "5:20"),
        (("steps", 0, "after", 1), 1, 1, "6:17"),
        (("steps", 1), 1, 7, "7:12"),
        (("note",), 2, 1, "10:3"),
        (("note",), 3, 3, "11:5"),
        (("folded",), 1, 5, "12:9"),
        (("steps", 0), 4, 4, "4:5"),
        (("nothing",), 2, 2, "2:1"),
    ],
)
def test_a_place_inside_a_text_is_exact_where_the_text_stands_as_it_reads(
    path: Path, line: int, column: int, at: str
) -> None:
    assert written(read_document(EXAMPLE, name="x.yaml").inside(path, line, column)) == at


@pytest.mark.parametrize(
    ("text", "line", "column", "at"),
    [
        ("a: &x !!str plain", 1, 2, "1:14"),
        ("a: 'it''s'", 1, 5, "1:4"),
        (r'a: "tab\t."', 1, 5, "1:4"),
        ("a: one\n  two", 1, 5, "1:4"),
        ("a: |2-\n    deep\n   less\n", 2, 2, "3:4"),
        ("a: |+\n\n\n  x\n", 3, 1, "4:3"),
        ("a: |\r\n  one\r\n  two\r\n", 2, 2, "3:4"),
        ("a: |\n\n", 1, 1, "1:4"),
        ("a: &x\n  |\n  far\n", 1, 2, "1:4"),
        ("a: &x\n  |\n  |\n", 1, 1, "1:4"),
        ('{"a": "plain"}', 1, 3, "1:10"),
        (r'{"a": "e\nsc"}', 2, 1, "1:7"),
    ],
)
def test_a_place_inside_a_text_is_where_the_text_starts_if_it_is_folded_or_escaped(
    text: str, line: int, column: int, at: str
) -> None:
    assert written(read_document(text, name="x.yaml").inside(("a",), line, column)) == at


def test_a_fault_inside_an_alias_is_fixed_where_the_value_is_written() -> None:
    document = read_document("a: &x\n  b: [1]\nc: *x\nd: {e: *x}\n", name="x.yaml")
    assert written(document.at(("c",))) == "3:4"
    assert written(document.at(("c", "b", 0))) == "2:7"
    assert written(document.at_key(("d", "e", "b"))) == "2:3"
    assert written(document.at_key(("d", "e"))) == "4:5"


lines = st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=20)


@given(st.lists(lines, min_size=1, max_size=6), st.integers(1, 4), st.sampled_from(["\n", "\r\n"]))
def test_every_character_of_a_literal_block_is_found_in_the_text(body: list[str], indent: int, line_break: str) -> None:
    source = line_break.join(["a:", f" - |{indent}-", *(" " * (indent + 1) + line for line in body), ""])
    document = read_document(source, name="x.yaml")
    text = value_of(source)["a"][0]
    for number, line in enumerate(text.split("\n"), 1):
        for column, character in enumerate(line, 1):
            at = document.inside(("a", 0), number, column)
            assert at is not None
            assert source.split(line_break)[at.line - 1][at.column - 1] == character


@given(values.filter(lambda value: isinstance(value, dict | list)))
def test_every_text_number_and_key_of_json_stands_where_it_is_said_to(value: Json) -> None:
    text = json.dumps(value, indent=1)
    document = read_document(text, name="x.json")
    rows = text.split("\n")
    for path, place in document.positions.items():
        held: Any = value
        for part in path:
            held = held[part]
        opening = "{" if isinstance(held, dict) else "[" if isinstance(held, list) else json.dumps(held)
        assert rows[place.value.line - 1].startswith(opening, place.value.column - 1)
        if place.key:
            assert rows[place.key.line - 1].startswith(json.dumps(path[-1]), place.key.column - 1)


def test_a_flaw_is_placed_at_its_value_its_key_or_inside_its_text() -> None:
    document = read_document("a:\n  b: |\n    one\n    two\n", name="x.yaml")
    assert str(finding_of(flaw_at(("a", "b")), document)) == "x.yaml:2:6: minor: a.b: m (f)"
    assert str(finding_of(flaw_at(("a", "b"), on_key=True), document)) == "x.yaml:2:3: minor: a.b: m (f)"
    assert str(finding_of(flaw_at(("a", "b"), line=2, column=3), document)) == "x.yaml:4:7: minor: a.b: m (f)"
    assert str(finding_of(flaw_at((), line=2), document_of(1, name="x"))) == "minor: the document: m (f)"


def test_documents_can_be_merged_with_places_of_several_files() -> None:
    base, child = read_document("a: 1", name="base.yaml"), read_document("\nb: 2", name="child.yaml")
    both = Document("child.yaml", {"a": 1, "b": 2}, {**base.positions, **child.positions})
    assert (str(both.at(("a",))), str(both.at(("b",)))) == ("base.yaml:1:4", "child.yaml:2:4")
    assert both.positions["a",] == ValuePosition(Position("base.yaml", 1, 1), Position("base.yaml", 1, 4), None)


def test_the_example_of_the_format_is_read() -> None:
    document = read_document(SHIP_RELEASE, name="ship-release.yaml")
    assert isinstance(document.value, dict)
    assert list(document.value)[:3] == ["id", "name", "version"]
    assert document.value["clarify"] == ["Which version?"]
    assert written(document.at(("steps", 1, "retry", "on", 2))) == "35:97"
    twin = read_document(json.dumps(document.value), name="ship-release.json")
    assert twin.value == document.value


def test_the_pure_parser_reads_the_same_where_there_is_no_fast_one(monkeypatch: pytest.MonkeyPatch) -> None:
    fast = read_document(EXAMPLE, name="x.yaml")
    monkeypatch.setattr(yaml_document, "_Loader", yaml.SafeLoader)
    assert read_document(EXAMPLE, name="x.yaml") == fast


def test_printed_yaml_has_no_character_that_moves_the_cursor_or_turns_the_text() -> None:
    text = "a\x85b\u2028c\u202ed\u2066e\x1b[31m\x7f\n\tf"
    printed = yaml_text({"steps": [text], text: "plain"})
    assert not [char for char in printed if char != "\n" and not char.isprintable()]
    assert read_document(printed, name="x.yaml").value == {"steps": [text], text: "plain"}
