"""The codec: every event survives the way to bytes and back, and what can't be an event is refused."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from handrail.domain.errors import IntegrityBroken
from handrail.domain.journal import codec
from handrail.domain.journal.chain import GENESIS, Record, chained
from handrail.domain.journal.codec import FORMAT, KINDS, decode_event, encode_body, entry_of, kind_of
from handrail.domain.journal.event import Entry, Event, RunPaused, StepCompleted

texts = st.text(max_size=20)
numbers = st.integers(-(2**63), 2**63 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """All values that a field with this type hint may hold."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return st.one_of(*map(values_of, inner))
    if origin is tuple:
        return st.lists(values_of(inner[0]), max_size=3).map(tuple)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(texts, values_of(inner[1]), max_size=3)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if isinstance(hint, type) and issubclass(hint, Struct):
        return st.builds(hint, **{name: values_of(one) for name, one in get_type_hints(hint).items()})
    return {Any: json_values, str: texts, int: numbers, bool: st.booleans(), type(None): st.none()}[hint]


def events_of(kind: type[Event]) -> st.SearchStrategy[Event]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: values_of(hints[name]) for name in kind.__struct_fields__})


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_survives_the_way_to_bytes_and_back(kind: str) -> None:
    @given(events_of(KINDS[kind]))
    @settings(max_examples=50, deadline=None)
    def survives(event: Event) -> None:
        assert kind_of(event) == kind
        body = encode_body(event)
        assert decode_event(kind, FORMAT, body) == event
        assert encode_body(decode_event(kind, FORMAT, body)) == body

    survives()


def test_every_event_has_a_kind_in_the_past_tense_of_its_own() -> None:
    assert len(KINDS) == len(get_args(Event))
    assert KINDS["step_completed"] is StepCompleted
    assert all(kind == kind.lower() and " " not in kind for kind in KINDS)


def test_a_record_stands_for_an_entry() -> None:
    event = RunPaused(reason="lunch")
    record = chained(
        GENESIS, Record("run_codec234", 1, 5, kind_of(event), "ada", None, None, FORMAT, b"s", encode_body(event), b"")
    )
    entry = Entry(stream="run_codec234", n=1, at=5, actor="ada", event=event, hash=record.hash)
    assert entry_of(record) == entry


@pytest.mark.parametrize("version", [0, -1, FORMAT + 1])
def test_a_format_that_is_not_known_is_refused(version: int) -> None:
    with pytest.raises(IntegrityBroken, match=f"format {version} is not known"):
        decode_event("run_paused", version, b'{"reason":"x"}')


def test_a_kind_that_is_not_known_is_refused() -> None:
    with pytest.raises(IntegrityBroken, match="'run_danced'"):
        decode_event("run_danced", FORMAT, b"{}")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"reason":1}', b'{"reason":"\xff"}', b"[" * 9_000])
def test_a_body_that_is_no_such_event_is_refused(body: bytes) -> None:
    with pytest.raises(IntegrityBroken, match="the body of a run_paused event can't be read"):
        decode_event("run_paused", FORMAT, body)


def test_a_body_of_an_older_format_is_brought_up_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    upcasts = {
        ("run_paused", 1): lambda body: {"because": body["why"]},
        ("run_paused", 3): lambda body: {"reason": body["because"]},
    }
    monkeypatch.setattr(codec, "FORMAT", 4)
    monkeypatch.setattr(codec, "UPCASTS", upcasts)
    assert decode_event("run_paused", 1, b'{"why":"lunch"}') == RunPaused(reason="lunch")
    assert decode_event("run_paused", 3, b'{"because":"lunch"}') == RunPaused(reason="lunch")
    assert decode_event("run_paused", 4, b'{"reason":"lunch"}') == RunPaused(reason="lunch")
    with pytest.raises(IntegrityBroken, match="can't be read"):
        decode_event("run_paused", 3, b'{"because":5}')
