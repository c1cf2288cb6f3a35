"""Documents that are made to hurt: too large, too deep, or small and growing. All are refused, soon and politely."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.checks.finding import Finding
from handrail.domain.errors import Invalid
from handrail.library.documents import document, yaml_document
from handrail.library.documents.document import DEPTH_MAX, DOCUMENT_BYTES_MAX, NODES_MAX, document_of, read_document

CPU_S_MAX = 20.0  # the slowest needs a tenth of it, a quadratic reader minutes

NESTED_ALIASES = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=False)
)
DEEP = f"more than {DEPTH_MAX} levels deep"
LARGE = f"the document is larger than {DOCUMENT_BYTES_MAX:,} bytes"
MANY = f"the document has more than {NODES_MAX:,} values"
LONG = f"the document has more than {DOCUMENT_BYTES_MAX:,} characters once its aliases are written out"

HOSTILE = {
    "100,000 open lists": ("a: " + "[" * 100_000, DEEP),
    "100,000 open objects": ("a: " + "{a: " * 100_000, DEEP),
    "100,000 dashes": ("- " * 100_000 + "x", DEEP),
    "1,400 levels of indentation": ("\n".join(" " * level + "a:" for level in range(1_400)), DEEP),
    "100,000 question marks": ("? " * 100_000, "an object or list can't be a key"),
    "aliases of aliases": (NESTED_ALIASES, f"{MANY} once its aliases are written out"),
    "a long text, many times": ("a: &a " + "x" * 900_000 + "\nb: [" + "*a," * 2_000 + "]", LONG),
    "a long key, many times": ("a: &a\n  ? " + "x" * 900_000 + "\n  : 1\nb: [" + "*a," * 2_000 + "]", LONG),
    "deep, by aliases": ("a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 30 + "*a" + "]" * 30, DEEP),
    "more than a megabyte": ("a: " + "x" * DOCUMENT_BYTES_MAX, LARGE),
    "a megabyte of wide characters": ("é" * (DOCUMENT_BYTES_MAX // 2 + 1), LARGE),
    "too many items": ("a: [" + "1," * (NODES_MAX + 1) + "]", MANY),
    "many anchors": (
        "\n".join(f"- &a{number} x" for number in range(60_000)) + "\n- *none",
        "`*none` has no anchor `&none` before it",
    ),
}
HOSTILE_JSON = {
    "100,000 open lists": ("[" * 100_000, DEEP),
    "100,000 open objects": ('{"a":' * 100_000, DEEP),
    "a megabyte of escapes": ('"' + "\\n" * 400_000, "the quote is never closed"),
    "a comment without end": ("[1, /*" + "*" * 900_000, "JSON has no comments"),
    "a number without end": ("[" + "1" * 900_000 + "x", "not a number that JSON knows"),
    "blanks without end": (" " * 900_000, "the document is empty"),
    "many comments": ("[" + "/**/" * 200_000, "JSON has no comments"),
    "too many items": ("[" + "1," * NODES_MAX + "1]", MANY),
    "many lines": ("[" + "\n" * 900_000, "the document ends inside what was opened on line 1"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_refused_soon(name: str) -> None:
    text, message = HOSTILE[name]
    assert refused_soon(text, "x.yaml") == message


@pytest.mark.parametrize("name", HOSTILE_JSON)
def test_hostile_json_is_refused_soon(name: str) -> None:
    text, message = HOSTILE_JSON[name]
    assert refused_soon(text, "x.json") == message


@pytest.mark.parametrize(
    "name", ["100,000 open lists", "100,000 open objects", "1,400 levels of indentation", "aliases of aliases"]
)
def test_the_pure_parser_is_guarded_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_document, "_Loader", yaml.SafeLoader)
    text, message = HOSTILE[name]
    assert refused_soon(text, "x.yaml") == message


def refused_soon(text: str, name: str) -> str:
    started = time.process_time()
    with pytest.raises(Invalid) as refused:
        read_document(text, name=name)
    assert time.process_time() - started < CPU_S_MAX
    return refused.value.findings[0].message


def test_limits_are_of_their_own_rule_and_the_rest_is_syntax() -> None:
    for text in ("[" * 100, NESTED_ALIASES, "x" * (DOCUMENT_BYTES_MAX + 1)):
        with pytest.raises(Invalid) as refused:
            read_document(text, name="x.yaml")
        assert {finding.rule for finding in refused.value.findings} == {"size"}
    with pytest.raises(Invalid) as refused:
        read_document("a: [", name="x.yaml")
    assert {finding.rule for finding in refused.value.findings} == {"syntax"}


def test_what_is_too_large_as_json_is_not_tried_as_yaml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document, "read_yaml", lambda *_, **__: pytest.fail("it was read again"))
    assert refused_soon("[" * 100_000, "<plan>") == DEEP


def test_what_is_just_within_the_limits_is_read() -> None:
    deepest = "[" * DEPTH_MAX + "]" * DEPTH_MAX
    assert read_document(deepest, name="x.json").value == read_document(deepest, name="x.yaml").value
    assert read_document("x" * DOCUMENT_BYTES_MAX, name="x.yaml").value == "x" * DOCUMENT_BYTES_MAX
    by_alias = "a: &a " + "[" * (DEPTH_MAX - 2) + "]" * (DEPTH_MAX - 2) + "\nb: [*a]"
    assert read_document(by_alias, name="x.yaml").value
    with pytest.raises(Invalid):
        read_document(f"[{deepest}]", name="x.json")
    with pytest.raises(Invalid):
        read_document(by_alias.replace("[*a]", "[[*a]]"), name="x.yaml")


def test_the_height_of_an_anchor_counts_aliases_inside_it() -> None:
    tower = "a: &a [[[[[[[[[[]]]]]]]]]]\n" + "".join(
        f"{new}: &{new} [[[*{old}]]]\n" for old, new in zip("abcdefghijklmnopq", "bcdefghijklmnopqr", strict=True)
    )
    with pytest.raises(Invalid) as refused:
        read_document(tower, name="x.yaml")
    assert refused.value.findings[0].message == DEEP


def test_data_without_a_text_has_the_same_limits() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, [0] * (NODES_MAX + 1), {"x" * (DOCUMENT_BYTES_MAX + 1): 1}):
        with pytest.raises(Invalid) as refused:
            document_of(value, name="<plan>")  # type: ignore[arg-type]
        assert [finding.rule for finding in refused.value.findings] == ["size"]


def refusals(text: str | bytes, name: str) -> tuple[Finding, ...]:
    try:
        read_document(text, name=name)
    except Invalid as refused:
        return refused.findings
    return ()


pieces = st.sampled_from(
    [
        *"{}[]:,-?&*!|>'\"%@`#~<= \n\t\r\x00\ufeff\u2028é😀",
        "a",
        "1",
        ": ",
        "- ",
        "&a ",
        "*a",
        "!!int ",
        "\n  ",
        "true",
        "<<",
        "---\n",
        "//",
        "/*",
    ]
)


@given(st.lists(pieces, max_size=40).map("".join) | st.text(), st.sampled_from(["x.yaml", "x.json", "<plan>"]))
def test_any_text_is_read_or_refused_and_nothing_else(text: str, name: str) -> None:
    assert all(finding.at is not None and finding.fix for finding in refusals(text, name))


@given(st.binary(max_size=60), st.sampled_from(["x.yaml", "x.json"]))
def test_any_bytes_are_read_or_refused_and_nothing_else(content: bytes, name: str) -> None:
    assert all(finding.at is not None and finding.fix for finding in refusals(content, name))
