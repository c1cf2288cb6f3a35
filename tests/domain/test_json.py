"""JSON values: one canonical form for equal values."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.definition.duration import duration_ms, duration_text
from handrail.domain.errors import Invalid
from handrail.domain.json import EXACT_INTEGER_MAX, canonical_bytes, digest, json_type

# Beyond U+FFFF the two sort keys differently: RFC 8785 by UTF-16 units, we by code points.
TEXTS = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-EXACT_INTEGER_MAX, EXACT_INTEGER_MAX) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(PLAIN)
def test_the_canonical_form_is_that_of_rfc_8785_where_no_fractions_are(value: Any) -> None:
    assert canonical_bytes(value) == rfc8785.dumps(value)


@given(PLAIN)
def test_order_and_formatting_do_not_change_the_digest(value: Any) -> None:
    shuffled = json.loads(json.dumps(value, indent=3), object_pairs_hook=lambda pairs: dict(reversed(pairs)))
    assert digest(shuffled) == digest(value)


def test_whole_numbers_are_one_value_however_they_are_written() -> None:
    assert canonical_bytes({"a": [1.0, (2,)]}) == b'{"a":[1,[2]]}'
    assert digest(1.0) == digest(1) != digest(1.5)
    assert digest(True) != digest(1)


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "null"), (True, "boolean"), (1, "number"), (1.5, "number"), ("", "string"), ({}, "object"), ((), "array")],
)
def test_every_value_has_a_type(value: Any, name: str) -> None:
    assert json_type(value) == name


@given(st.integers(0, 10**9))
def test_a_duration_is_written_and_read_back_as_the_same(milliseconds: int) -> None:
    assert duration_ms(duration_text(milliseconds)) == milliseconds


@pytest.mark.parametrize(("text", "milliseconds"), [("250ms", 250), ("30s", 30_000), ("1d", 86_400_000), ("0s", 0)])
def test_durations_have_one_unit(text: str, milliseconds: int) -> None:
    assert duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "5", "s", "1.5s", "-1s", "1m30s", "01s", "9" * 10 + "s", "1 s", "1S"])
def test_anything_else_is_no_duration(text: str) -> None:
    with pytest.raises(Invalid, match="is not a duration"):
        duration_ms(text)
