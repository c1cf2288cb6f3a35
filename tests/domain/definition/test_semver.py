"""Versions are ordered by SemVer, and a range takes what its author expects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.definitions import patient
from handrail.domain.definition.semver import best, parse_range, parse_version
from handrail.domain.errors import Invalid

ASCENDING = [
    "0.0.1",
    "1.0.0-0",
    "1.0.0-2",
    "1.0.0-11",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1-a",
    "1.2.0",
    "1.10.0",
    "2.0.0",
]

TAKEN = [
    ("1.2.3", ["1.2.3"], ["1.2.4", "1.2.3-a", "1.2.2"]),
    ("=1.2.3", ["1.2.3"], ["1.2.4"]),
    ("1.2.3-rc.1", ["1.2.3-rc.1"], ["1.2.3-rc.1.1", "1.2.3", "1.2.3-rc.2"]),
    ("^1", ["1.0.0", "1.9.9"], ["0.9.9", "2.0.0", "2.0.0-a", "1.5.0-rc.1"]),
    ("^1.2", ["1.2.0", "1.3.0"], ["1.1.9", "2.0.0"]),
    ("^1.2.3", ["1.2.3", "1.9.0"], ["1.2.2", "2.0.0"]),
    ("^0.2.3", ["0.2.3", "0.2.9"], ["0.3.0", "0.2.2"]),
    ("^0.0.3", ["0.0.3"], ["0.0.4"]),
    ("^0.0", ["0.0.9"], ["0.1.0"]),
    ("^0", ["0.9.9"], ["1.0.0"]),
    ("^1.0.0-beta.2", ["1.0.0-beta.11", "1.0.0", "1.4.0"], ["1.0.0-alpha", "1.4.0-beta.3", "2.0.0"]),
    ("~1", ["1.9.0"], ["2.0.0"]),
    ("~1.2", ["1.2.0", "1.2.9"], ["1.3.0"]),
    ("~1.2.3", ["1.2.3", "1.2.9"], ["1.2.2", "1.3.0"]),
    (">=1.2 <2", ["1.2.0", "1.9.9"], ["1.1.0", "2.0.0", "2.0.0-a"]),
    (">= 1.2  < 2", ["1.2.0"], ["2.0.0"]),
    (">1.2", ["1.3.0"], ["1.2.9"]),
    (">1.2.3", ["1.2.4"], ["1.2.3"]),
    (">1.0.0-a", ["1.0.0-a.0", "1.0.0"], ["1.0.0-a"]),
    ("<=1.2", ["1.2.9"], ["1.3.0"]),
    ("<=1.2.3", ["1.2.3"], ["1.2.4"]),
    ("<1.2.3-b", ["1.2.3-a", "1.2.2"], ["1.2.3-b", "1.2.3", "1.2.2-a"]),
    ("<1.2.3", ["1.2.2"], ["1.2.3-a", "1.2.3"]),
    ("<1.2", ["1.1.9"], ["1.2.0"]),
    ("1.x", ["1.0.0", "1.9.9"], ["2.0.0"]),
    ("1.2.*", ["1.2.7"], ["1.3.0"]),
    ("1", ["1.4.0"], ["2.0.0"]),
    ("*", ["0.0.0", "9.9.9"], ["1.0.0-a"]),
    ("x", ["1.0.0"], ["1.0.0-a"]),
    ("", ["0.0.1", "3.0.0"], ["1.0.0-a"]),
]

versions = st.builds("{}.{}.{}{}".format, *[st.integers(0, 12)] * 3, st.sampled_from(["", "-a", "-1", "-a.1", "-a.b"]))


@patient
@given(st.permutations(ASCENDING))
def test_versions_stand_in_the_order_of_their_precedence(shuffled: list[str]) -> None:
    assert sorted(shuffled, key=parse_version) == ASCENDING


@patient
@given(versions, versions)
def test_of_two_versions_exactly_one_of_less_equal_greater_holds(one: str, other: str) -> None:
    left, right = parse_version(one), parse_version(other)
    assert [left < right, left == right, left > right].count(True) == 1


@patient
@given(versions)
def test_a_version_prints_as_it_was_written(text: str) -> None:
    assert str(parse_version(text)) == text


def test_build_metadata_does_not_count() -> None:
    assert parse_version("1.2.3+build.5") == parse_version("1.2.3")


@pytest.mark.parametrize(
    "text", ["", "1", "1.2", "01.2.3", "1.2.3-", "1.2.3.4", "v1.2.3", "1.2.x", "1" * 11 + ".0.0", "1.0.0-" + "a" * 300]
)
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_version(text)


@pytest.mark.parametrize(("wanted", "inside", "outside"), TAKEN)
def test_a_range_takes_what_its_author_expects(wanted: str, inside: list[str], outside: list[str]) -> None:
    taken = parse_range(wanted)
    assert [text for text in inside if not taken.has(parse_version(text))] == []
    assert [text for text in outside if taken.has(parse_version(text))] == []


@pytest.mark.parametrize("text", ["^", "latest", "1.2.3.4", ">>1", "1.2-a", "1 || 2", "^1,^2", "1.2.3 " * 50])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_range(text)


def test_the_best_is_the_highest_that_the_range_takes() -> None:
    assert best(["1.2.0", "1.10.0", "2.0.0", "1.11.0-rc.1"], "^1") == "1.10.0"


def test_there_is_no_best_where_the_range_takes_none() -> None:
    assert best(["1.2.0", "not a version", "", "1.0.0-" + "a" * 300], "^3") is None


@patient
@given(st.lists(versions, max_size=8), st.sampled_from([row[0] for row in TAKEN]))
def test_the_best_is_never_below_another_that_the_range_takes(known: list[str], wanted: str) -> None:
    found = best(known, wanted)
    taken = [text for text in known if parse_range(wanted).has(parse_version(text))]
    assert (found is None) == (not taken)
    assert all(parse_version(text) <= parse_version(found) for text in taken if found)
