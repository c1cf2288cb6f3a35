"""References to secrets: what they look like, and that only an author's own words count."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import patient
from handrail.domain.secrets.secret_reference import (
    Reference,
    ReferenceSource,
    filled,
    is_name,
    reference_places,
    references_in,
)

SECRET = "${secret:KEY}"
TOKEN = Reference(ReferenceSource.SECRET, "TOKEN")


def test_references_are_found_in_their_order() -> None:
    text = "a ${secret:TOKEN}${env:HOME_2.x-y} ${secret:TOKEN}"
    assert references_in(text) == [TOKEN, Reference(ReferenceSource.ENV, "HOME_2.x-y"), TOKEN]
    assert str(TOKEN) == "${secret:TOKEN}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        "$secret:A",
        "${A}",
        "${secret:}",
        "${secret:a b}",
        "${secret:1A}",
        "${secrets:A}",
        "${SECRET:A}",
        "${secret:A",
        "${ secret:A }",
        "${secret:" + "a" * 101 + "}",
        "${secret:Ä}",
    ],
)
def test_what_only_looks_like_a_reference_is_text(text: str) -> None:
    assert references_in(text) == []
    assert filled(text, lambda _: "value") == text


def test_a_value_is_not_read_for_references_again() -> None:
    assert filled("Bearer ${secret:TOKEN}.", lambda one: f"<{one}>") == "Bearer <${secret:TOKEN}>."
    assert filled("${secret:TOKEN}", lambda _: r"\1 \g<0>") == r"\1 \g<0>"


def test_names_are_those_of_variables_with_dots_and_dashes() -> None:
    assert is_name("_a.B-1")
    assert is_name("a" * 100)
    for text in ("", "1a", "a b", "a\n", "a" * 101, "-a"):
        assert not is_name(text)


@pytest.mark.parametrize(
    ("written", "rendered", "top", "inlined"),
    [
        ("plain", "plain", False, False),
        (SECRET, SECRET, True, True),
        ("Bearer " + SECRET, "Bearer " + SECRET, True, True),
        ("{{ inputs.key }}", SECRET, True, False),
        ("{{ inputs.name }} ${secret:KEY}", "x ${secret:KEY}", True, False),
        ("{% if inputs.a %}${secret:KEY}{% endif %}", SECRET, True, False),
        ("{% for one in inputs.all %}{{ one }}{% endfor %}", SECRET, True, False),
        ("{% raw %}${secret:KEY}{% endraw %}", SECRET, True, True),
        ("{{ steps.a.output }}", SECRET, False, False),
        ("{{ steps.a.output }} ${secret:KEY}", "x ${secret:KEY}", False, False),
        ("{{ inputs.a }}{{ steps.a.output }}", SECRET, False, False),
        ("{{ vars.a }}", SECRET, False, False),
        ("{{ run.id }} ${secret:KEY}", "r ${secret:KEY}", False, False),
        ("{{ item }}", SECRET, False, False),
        ("{{ output.x }}", SECRET, False, False),
        ("{% for inputs in steps.a.output %}{{ inputs }}{% endfor %}", SECRET, False, False),
        ("{{ broken", SECRET, False, False),
    ],
)
def test_a_text_counts_if_all_its_words_are_an_authors(written: str, rendered: str, top: bool, inlined: bool) -> None:
    args, done = {"a": {"b": [written]}}, {"a": {"b": [rendered]}}
    place = ("a", "b", 0)
    assert reference_places(args, done, is_top=True) == ((place,) if top else ())
    assert reference_places(args, done, is_top=False) == ((place,) if inlined else ())


def test_what_an_input_brings_counts_with_all_its_texts() -> None:
    brought = {"headers": [SECRET, "none"], "deep": {"x": "a ${env:B}", "n": 1}}
    places = reference_places({"json": "{{ inputs.all }}"}, {"json": brought}, is_top=True)
    assert places == (("json", "headers", 0), ("json", "deep", "x"))
    assert reference_places({"json": "{{ steps.a.output }}"}, {"json": brought}, is_top=True) == ()


def test_only_places_that_hold_a_reference_are_reported() -> None:
    written = {"a": "$" + "{b}", "b": SECRET, "c": None, "d": 1}
    assert reference_places(written, written, is_top=True) == (("b",),)


def test_arguments_need_not_be_a_plain_dict() -> None:
    written = MappingProxyType({"a": (SECRET,)})
    assert reference_places(written, written, is_top=True) == (("a", 0),)


@pytest.mark.parametrize(
    ("written", "rendered"),
    [
        ({"a": SECRET}, {"b": SECRET}),
        ({"a": [SECRET]}, {"a": {"0": SECRET}}),
        ({"a": 1}, {"a": SECRET}),
        ([SECRET], [1, SECRET]),
    ],
)
def test_nobody_vouches_for_what_was_not_written(written: Any, rendered: Any) -> None:
    assert reference_places(written, rendered, is_top=True) == ()


def test_a_depth_that_no_template_can_have_is_not_looked_into() -> None:
    deep: Any = SECRET
    for _ in range(60):
        deep = [deep]
    assert reference_places({"a": deep}, {"a": deep}, is_top=True) == ()
    assert reference_places({"a": "{{ inputs.a }}"}, {"a": deep}, is_top=True) == ()


@patient
@given(st.text(), st.sampled_from(["steps.a.output", "vars.x", "run.id", "item", "index", "nobody"]))
def test_whatever_stands_around_it_a_result_is_never_trusted(around: str, name: str) -> None:
    written = f"{around}{{{{ {name} }}}}{around}"
    assert reference_places({"a": written}, {"a": around + SECRET + around}, is_top=True) == ()
