"""Scrubbing: a known value is found however a tool spells it, and what does not hold it stays the same object."""

from __future__ import annotations

import base64
import json
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, quote_plus, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import patient
from handrail.domain.secrets.scrubbing import forms_of, is_scrubbed, scrubbed

VALUE = 'pä"ss/w+o rd&\n?=~'
MARK = "[redacted]"


def forms(*values: str) -> list[str]:
    return sorted({form for value in values for form in forms_of(value)}, key=len, reverse=True)


@pytest.mark.parametrize(
    "spelled",
    [
        VALUE,
        json.dumps(VALUE),
        json.dumps(VALUE, ensure_ascii=False),
        quote(VALUE),
        quote(VALUE, safe=""),
        quote(VALUE, safe="").replace("%C3%A4", "%c3%a4").replace("%2F", "%2f").lower(),
        quote_plus(VALUE),
        urlencode({"key": VALUE}),
        base64.b64encode(VALUE.encode()).decode(),
        base64.urlsafe_b64encode(VALUE.encode()).decode(),
        base64.b64encode(VALUE.encode()).decode().rstrip("="),
    ],
)
def test_a_value_is_found_however_it_is_spelled(spelled: str) -> None:
    done = scrubbed(f"before {spelled} after", forms(VALUE))
    assert MARK in done
    assert "ss" not in done.replace("redacted", "")
    assert spelled.strip('"') not in done
    assert (done.startswith("before "), done.endswith(" after")) == (True, True)


@patient
@given(st.text(min_size=12, max_size=60), st.binary(max_size=9), st.binary(max_size=9))
def test_base64_is_found_wherever_the_value_stands_in_it(value: str, before: bytes, after: bytes) -> None:
    told = base64.b64encode(before + value.encode() + after).decode()
    done = scrubbed(told, forms(value))
    assert MARK in done
    assert len(told) - len(done.replace(MARK, "")) >= len(value.encode()) * 4 // 3 - 3


def test_every_part_of_a_json_value_is_looked_at() -> None:
    told = {"a": ["x", {"hunter22": "is hunter22."}], "n": 482913, "k": (1, "hunter22"), "f": 1.5}
    done = scrubbed(told, forms("hunter22", "482913"))
    assert done == {"a": ["x", {MARK: f"is {MARK}."}], "n": MARK, "k": [1, MARK], "f": 1.5}


@pytest.mark.parametrize(
    "value",
    [
        "words",
        {"a": [1, 2.5, None, True, "x", {"b": ("c",)}]},
        MappingProxyType({"a": "b"}),
        [],
        b"bytes are no JSON",
    ],
)
def test_what_holds_no_value_is_the_same_object(value: Any) -> None:
    assert scrubbed(value, forms("hunter22")) is value
    assert scrubbed(value, ()) is value


def test_a_number_that_can_not_be_written_down_is_handed_on() -> None:
    value = [10**5_000]
    assert scrubbed(value, forms("hunter22")) is value


def test_the_longest_value_goes_first() -> None:
    assert scrubbed("hunter22-and-more hunter22", forms("hunter22", "hunter22-and-more")) == f"{MARK} {MARK}"


def test_a_short_value_is_left_alone() -> None:
    assert forms_of("abcde") == ()
    assert (is_scrubbed("abcde"), is_scrubbed("abcdef")) == (False, True)


def test_what_is_too_deep_to_look_into_is_not_shown() -> None:
    deep: Any = "hunter22"
    for _ in range(400):
        deep = [deep]
    done = scrubbed(deep, forms("hunter22"))
    assert "hunter22" not in json.dumps(done)
    assert MARK in json.dumps(done)
