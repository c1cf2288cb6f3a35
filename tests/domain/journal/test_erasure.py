"""What is left of an event without its words: all that the fold needs, and no word more."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.journal.test_codec import events_of
from handrail.domain.journal.codec import KINDS, decode_event, encode_body, kind_of
from handrail.domain.journal.erasure import ERASED_TEXT, ERASED_VALUE, FIELDS, residue
from handrail.domain.journal.event import (
    ActionRecorded,
    DecisionRecorded,
    EffectAhead,
    Event,
    RunStarted,
    StepCompleted,
)


def can_hold_words(hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType, tuple):
        return any(can_hold_words(one) for one in inner)
    if isinstance(hint, type) and issubclass(hint, EffectAhead):
        return True
    return hint in (str, Any) or (origin is not None and issubclass(origin, Mapping))


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_that_can_hold_words_is_either_erased_or_kept_on_purpose(kind: str) -> None:
    event = KINDS[kind]
    hints = get_type_hints(event)
    wordy = {name for name in event.__struct_fields__ if can_hold_words(hints[name])}
    fields = FIELDS[event]
    assert {*fields.payload, *fields.kept} == wordy
    assert not {*fields.payload} & {*fields.kept}


def test_the_table_knows_exactly_the_events_there_are() -> None:
    assert set(FIELDS) == set(get_args(Event))


def test_words_and_values_give_way_to_marks() -> None:
    event = DecisionRecorded(decision="fire Bob", reason="Bob", step="hr", alternatives=("warn Bob",), details={"a": 1})
    assert residue(event) == DecisionRecorded(
        decision=ERASED_TEXT, reason=ERASED_TEXT, step="hr", alternatives=(), details=ERASED_VALUE
    )


@pytest.mark.parametrize(
    ("output", "left"),
    [
        ("Bob", ERASED_TEXT),
        ({"name": "Bob"}, ERASED_VALUE),
        (["Bob"], ERASED_VALUE),
        (7, ERASED_VALUE),
        (False, ERASED_VALUE),
        (None, None),
        ("", ""),
        ({}, {}),
    ],
)
def test_whatever_a_step_gave_is_gone_and_nothing_stays_nothing(output: Any, left: Any) -> None:
    assert residue(StepCompleted(step="ask", output=output)) == StepCompleted(step="ask", output=left)


def test_what_pins_a_run_is_kept() -> None:
    event = RunStarted(definition="sha256:1", workflow="ship@1", inputs={"who": "Bob"}, goal="pay Bob", deadline=5)
    left = RunStarted(definition="sha256:1", workflow="ship@1", inputs=ERASED_VALUE, goal=ERASED_TEXT, deadline=5)
    assert residue(event) == left


def test_an_event_without_words_is_left_as_it_is() -> None:
    event = ActionRecorded(description="")
    assert residue(event) == event


@given(st.one_of(*(events_of(event) for event in KINDS.values())))
@settings(max_examples=200, deadline=None)
def test_what_is_left_is_an_event_of_its_kind_and_erasing_it_again_changes_nothing(event: Event) -> None:
    left = residue(event)
    kind = kind_of(event)
    assert decode_event(kind, 1, encode_body(left)) == left
    assert residue(left) == left
    assert all(getattr(left, name) == getattr(event, name) for name in FIELDS[type(event)].kept)
