"""Scrubbing: a known value is found however it is spelled, and what does not hold it stays the same object."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from types import MappingProxyType
from typing import Any
from unittest.mock import patch

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import patient
from domain.spellings import SPELLED, in_json, percent, units
from handrail.domain.secrets.redaction import redact_body
from handrail.domain.secrets.scrubbing import NOTHING_KNOWN, SecretScrubber, is_scrubbed, nothing_known

VALUE = 'pä"ss/w+o rd&\n?=~'
TOKEN = "zQ7-Xk_92/aB+cD=="
MARK = "[redacted]"


def knows(*values: str) -> SecretScrubber:
    return SecretScrubber(dict.fromkeys(values, ""))


@pytest.mark.parametrize("value", [VALUE, TOKEN, "hunter22", "grün & blau\t"])
@pytest.mark.parametrize("spell", SPELLED.values(), ids=SPELLED.keys())
def test_a_value_is_found_however_it_is_spelled(value: str, spell: Callable[[str], str]) -> None:
    scrubber = knows(value)
    spelled = spell(value)
    core = spelled if len(spelled) < 16 else spelled[5:-5]
    done = scrubber.text(f"before {spelled} after")
    assert MARK in done
    assert core not in done
    assert done.startswith("before ")
    assert done.endswith(" after")
    assert scrubber.finds(f"before {spelled} after".encode())


@pytest.mark.parametrize("value", [VALUE, TOKEN, "hunter22", "grün & blau\t"])
@pytest.mark.parametrize("spell", SPELLED.values(), ids=SPELLED.keys())
def test_the_body_of_an_event_is_cleaned_however_it_is_spelled(value: str, spell: Callable[[str], str]) -> None:
    body = msgspec.json.encode({"step": "s", "output": {"a": [f"before {spell(value)} after"]}})
    clean = msgspec.json.decode(redact_body(body, NOTHING_KNOWN, knows("another-one", value)))
    assert MARK in clean["output"]["a"][0]
    assert spell(value) not in clean["output"]["a"][0]


def test_a_value_with_only_some_characters_escaped_is_found() -> None:
    dice = random.Random(7)
    plain = string.ascii_letters + string.digits + "/+ "
    ways = (percent, units, in_json, lambda one: f"&#{ord(one)};", lambda one: f"&#x{ord(one):X};")
    for _ in range(300):
        value = "".join(dice.choices(plain + "&%\\\"'äß😀", k=12))
        # A bare backslash or percent sign before an escape would be read with it, by everybody.
        spelled = [dice.choice(ways if one not in plain else (*ways, str))(one) for one in value]
        mixed = "".join(spelled)
        assert knows(value).text(f"<{mixed}>") == f"<{MARK}>", (value, mixed)


def test_what_looks_like_an_escape_in_a_value_does_not_hide_it() -> None:
    for value in ("50%41-of-it", 'back\\u0041"slash', "&amp;&amp;&amp;", 'a\\nb\\tc"d'):
        for spell in (str, in_json, lambda one: in_json(in_json(one))):
            assert knows(value).text(f"<{spell(value)}>") == f"<{MARK}>", (value, spell(value))


@patient
@given(st.text(min_size=12, max_size=60), st.binary(max_size=9), st.binary(max_size=9))
def test_base64_is_found_wherever_the_value_stands_in_it(value: str, before: bytes, after: bytes) -> None:
    told = base64.b64encode(before + value.encode() + after).decode()
    done = knows(value).text(told)
    assert MARK in done
    assert len(told) - len(done.replace(MARK, "")) >= len(value.encode()) * 4 // 3 - 3


@patient
@given(st.text(min_size=6, max_size=20), st.text(max_size=20), st.sampled_from(sorted(SPELLED)))
def test_the_quick_search_never_overlooks_what_the_thorough_one_finds(value: str, around: str, how: str) -> None:
    scrubber = knows(value)
    told = f"{around}{SPELLED[how](value)}{around}"
    with patch.object(scrubber, "may_find", return_value=True):
        thorough = scrubber.text(told)
    assert scrubber.text(told) == thorough


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n  "])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.b32encode, bytes.hex])
def test_encoded_data_is_found_across_its_lines(encode: Callable[[bytes], Any], end: str) -> None:
    value = "zQ7-Xk_92aB3cD4eF5"
    said = encode(b"x" * 40 + value.encode() + b"y" * 40)
    row = said if isinstance(said, str) else said.decode()
    for width in range(33, 90):
        told = end.join(row[at : at + width] for at in range(0, len(row), width))
        body = msgspec.json.encode({"output": told})
        assert MARK in knows(value).text(told), width
        assert MARK in msgspec.json.decode(redact_body(body, knows(value)))["output"], width


def test_every_part_of_a_json_value_is_looked_at() -> None:
    told = {"a": ["x", {"hunter22": "is hunter22."}], "n": 482913, "k": (1, "hunter22"), "f": 1.5}
    done = knows("hunter22", "482913").value(told)
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
    assert knows("hunter22").value(value) is value
    assert NOTHING_KNOWN.value(value) is value


def test_contents_are_cleaned_byte_by_byte() -> None:
    picture = b"\x89PNG\xff\x00 hunter22 \xfe"
    assert knows("hunter22").content(picture) == b"\x89PNG\xff\x00 [redacted] \xfe"
    assert knows("hunter23").content(picture) is picture
    assert NOTHING_KNOWN.content(picture) is picture


def test_the_values_in_a_content_are_named() -> None:
    scrubber = SecretScrubber({"hunter22": "${secret:A}", "swordfish": "${env:B}"})
    assert scrubber.names_in(b"a swordfish, hunter22 and c3dvcmRmaXNo") == ("${env:B}", "${secret:A}")
    assert scrubber.names_in(b"nothing") == ()
    assert (scrubber.finds(b"hunter22"), scrubber.finds(b"hunter2")) == (True, False)
    assert "hunter22" not in repr(scrubber)


def test_a_number_that_can_not_be_written_down_is_handed_on() -> None:
    value = [10**5_000]
    assert knows("hunter22").value(value) is value


def test_the_longest_value_goes_first() -> None:
    assert knows("hunter22", "hunter22-and-more").text("hunter22-and-more hunter22") == f"{MARK} {MARK}"
    assert knows("abcdefgh", "efghijkl").text("-abcdefghijkl-") == f"-{MARK}-"


def test_a_short_value_is_left_alone() -> None:
    assert not knows("abcde")
    assert knows("abcde").text("abcde") == "abcde"
    assert (is_scrubbed("abcde"), is_scrubbed("abcdef")) == (False, True)
    assert nothing_known() is NOTHING_KNOWN


def test_what_is_no_escape_stays_as_it_is() -> None:
    for text in ("&nosuchname; hunter", "&#99999999; \\ud800 100%zz \\q", "%68%75"):
        assert knows("hunter22").text(text) is text


def test_what_is_too_deep_to_look_into_is_not_shown() -> None:
    deep: Any = "hunter22"
    for _ in range(400):
        deep = [deep]
    done = knows("hunter22").value(deep)
    assert "hunter22" not in json.dumps(done)
    assert MARK in json.dumps(done)


def test_numbers_of_an_event_itself_are_not_content() -> None:
    own = {"step": "s", "attempt": 12345678, "category": "transient", "findings": [{"line": 12345678}]}
    body = msgspec.json.encode({**own, "output": {"n": [12345678]}})
    scrubber = knows("12345678", "transient")
    assert msgspec.json.decode(redact_body(body, scrubber)) == {**own, "output": {"n": [MARK]}}
    assert msgspec.json.decode(redact_body(b'{"step":"s","output":12345678}', scrubber)) == {
        "step": "s",
        "output": MARK,
    }
