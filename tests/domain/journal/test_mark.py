"""Marks: what is known of a store, in one lane or in many, and the text in which clients carry it."""

from __future__ import annotations

import pytest

from handrail.domain.errors import Invalid
from handrail.domain.journal.mark import LANES_MAX, START, Mark, mark_from

TWO = Mark.of({130: 7, 128: 5, 129: 0})


def test_one_lane_is_a_number_and_several_are_a_text() -> None:
    assert (START.text, START.json, START.events) == ("0", 0, 0)
    assert (Mark.at(42).text, Mark.at(42).json, Mark.at(42).place) == ("42", 42, 42)
    assert (TWO.text, TWO.json, TWO.events, TWO.place) == ("128.5-130.7", "128.5-130.7", 12, 0)
    for mark in (START, Mark.at(1), Mark.at(10**17), TWO):
        assert mark_from(mark.text, "it") == mark


@pytest.mark.parametrize(
    "text",
    ["", "-1", "1.", "a", "1e3", "128.5-", "128.5--1.2", "0.5", "128.0", "128.5 ", "9" * 19, "1.2-1.2.3"],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(Invalid, match="it is no place of this store"):
        mark_from(text, "it")


def test_a_text_has_a_limit() -> None:
    assert len(mark_from("-".join(f"{lane}.1" for lane in range(1, LANES_MAX + 1)), "it").lanes) == LANES_MAX
    with pytest.raises(Invalid):
        mark_from("-".join(f"{lane}.1" for lane in range(1, LANES_MAX + 2)), "it")


def test_marks_are_compared_lane_by_lane() -> None:
    other = Mark.of({128: 4, 131: 2})
    assert TWO.covers(START)
    assert TWO.covers(TWO)
    assert not TWO.covers(other)
    assert not other.covers(TWO)
    assert TWO.joined(other) == Mark.of({128: 5, 130: 7, 131: 2})
    assert TWO.shared(other) == Mark.of({128: 4})
    assert TWO.joined(other).covers(TWO)
    assert TWO.has(130, 7)
    assert not TWO.has(130, 8)
    assert not TWO.has(129, 1)


def test_a_mark_moves_on_with_what_is_read() -> None:
    assert TWO.after([(129, 1), (130, 8), (130, 9)]) == Mark.of({128: 5, 129: 1, 130: 9})
    assert Mark.at(10).without_last(3) == Mark.at(7)
    assert Mark.at(3).without_last(10) == START
    assert TWO.without_last(6).events in (5, 6)
