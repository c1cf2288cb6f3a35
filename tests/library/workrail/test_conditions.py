"""Conditions: their lenient equality in our strict language, and what they would silently take for false."""

from __future__ import annotations

from typing import Any

import pytest

from library.workrail.garden import Data, faults, first, holds, notes, step, workflow


def when(condition: Any) -> str:
    return str(first(workflow(step(runCondition=condition)))["when"])


UNSET: Any = object()


@pytest.mark.parametrize(
    ("condition", "yes", "no"),
    [
        ({"equals": "Large"}, ["large", "LARGE", "lArge"], ["small", "", UNSET, None]),
        ({"not_equals": "Large"}, ["small", "", UNSET, None], ["large", "LARGE"]),
        ({"equals": True}, [True, "true", "Yes", "1"], [False, "no", 1, [], {}, "", UNSET, None]),
        ({"equals": False}, [False, "false", "NO", "0"], [True, 0, "yes", UNSET, None]),
        ({"equals": "yes"}, ["yes", "YES", True], ["no", False, 1, UNSET]),
        ({"equals": 3}, [3, 3.0, "3"], [4, "4", True, [3], UNSET, None]),
        ({"equals": "3"}, [3, "3"], ["4", None, UNSET]),
        ({"equals": 2.5}, [2.5, "2.5"], [2, "2"]),
        ({"equals": ""}, ["", 0], ["x", UNSET, None]),
        ({"equals": None}, [None, UNSET], ["", 0, False]),
        ({"not_equals": None}, ["", 0, False], [None, UNSET]),
        ({"equals": ["a"]}, [], [["a"], "a", UNSET]),
        ({"not_equals": {"a": 1}}, [{"a": 1}, "a", UNSET], []),
        ({"gt": 3}, [4, 3.5], [3, UNSET, None]),
        ({"gte": 3}, [3], [2, UNSET]),
        ({"lt": -1}, [-2], [-1, UNSET]),
        ({"lte": 3}, [3], [4, UNSET]),
        ({"in": ["Roses", "lilies"]}, ["roses", "Lilies"], ["grass", UNSET, None]),
        ({"in": ["a", 3, True]}, ["a", 3, "3", True, "yes"], ["b", 4, UNSET]),
        ({"in": []}, [], ["a", UNSET]),
        ({"contains": "Sun"}, ["sunny", "SUN", "Sun", ["sun"]], ["rain", UNSET]),
        ({"contains": ""}, ["x", UNSET], []),
        ({"startsWith": "Ab"}, ["abc", "ABC"], ["xab", UNSET]),
        ({"endsWith": "Bc"}, ["abc", "ABC"], ["bcx", UNSET]),
        ({"matches": "^v\\d+$"}, ["v1", "V22"], ["x1", UNSET]),
        ({}, [True, 1, "x", [], {}], [False, 0, "", None, UNSET]),
    ],
)
def test_a_variable_is_compared_as_leniently_as_they_do(condition: Data, yes: list[Any], no: list[Any]) -> None:
    source = when({"var": "size", **condition})
    for value in yes:
        assert holds(source, {} if value is UNSET else {"size": value}), (source, value)
    for value in no:
        assert not holds(source, {} if value is UNSET else {"size": value}), (source, value)


def test_conditions_are_put_together_with_and_or_and_not() -> None:
    a, b = {"var": "a", "equals": "x"}, {"var": "b", "gt": 1}
    source = when({"or": [{"and": [a, b]}, {"not": {"or": [a, {"var": "c"}]}}]})
    assert holds(source, {"a": "x", "b": 2, "c": True})
    assert not holds(source, {"a": "x", "b": 1, "c": True})
    assert holds(source, {"a": "y", "c": False})
    assert holds(source, {})
    assert not holds(source, {"c": 1})


def test_an_empty_list_of_conditions_means_what_it_means_to_them() -> None:
    assert holds(when({"and": []}), {})
    assert not holds(when({"or": []}), {})


@pytest.mark.parametrize("condition", [None, {}])
def test_no_condition_is_no_condition(condition: Any) -> None:
    assert "when" not in first(workflow(step(runCondition=condition)))


def test_names_that_are_no_names_in_ours_are_written_in_brackets() -> None:
    for name in ("my-var", "class", "_hidden", "ünlaut", "a b"):
        assert holds(when({"var": name, "equals": "x"}), {name: "X"}), name
    assert holds(when({"var": "plan.size", "equals": 1}), {"plan": {"size": 1}})
    assert not holds(when({"var": "plan.size", "equals": 1}), {"plan": "small"})


def test_texts_with_quotes_and_odd_signs_stay_what_they_are() -> None:
    for word in ('say "hi"', "back\\slash", "two\nlines", "tab\there", "bell\x07", "größe €", "{{x}} {%"):
        assert holds(when({"var": "a", "equals": word}), {"a": word}), word


@pytest.mark.parametrize(
    "condition", [{"equals": "large"}, {"gt": 2}, {"contains": "x"}, {"startsWith": "x"}, {"matches": "x"}]
)
def test_a_value_of_another_type_is_false_and_stops_nothing(condition: Data) -> None:
    values: list[Any] = [{"a": 1}, [], [{"a": 1}, ["b"]], True, 1, "1", None]
    for value in values:
        assert not holds(when({"var": "a", **condition}), {"a": value}), value


def test_an_operator_that_they_do_not_know_asks_whether_the_variable_is_set() -> None:
    condition, given = {"var": "a", "exists": False}, list[Any]([1, "x", [], 0, False, ""])
    assert [holds(when(condition), {"a": value}) for value in given] == [True] * 3 + [False] * 3
    assert "does not know `exists`" in notes(workflow(step(runCondition=condition)))["steps[0].runCondition.exists"]


def test_a_condition_that_is_a_text_counts_as_true_and_is_shown() -> None:
    data = workflow(step(runCondition="size == {{x}}"))
    assert "when" not in first(data)
    assert first(data)["prompt"].startswith('Do this only if: size == {{ "{{" }}x}}')
    assert "counts as true" in notes(data)["steps[0].runCondition"]


def test_all_parts_of_a_condition_count_and_that_is_noted() -> None:
    condition = {"var": "a", "gt": 1, "lt": 5}
    source = when(condition)
    assert [holds(source, {"a": value}) for value in (1, 3, 5)] == [False, True, False]
    assert "all parts count" in notes(workflow(step(runCondition=condition)))["steps[0].runCondition"]


@pytest.mark.parametrize(
    ("condition", "where", "why"),
    [
        ({"and": ["size == 1"]}, "steps[0].runCondition.and[0]", "a condition is an object"),
        ({"exists": "a"}, "steps[0].runCondition.exists", "is not a key of a condition"),
        ([], "steps[0].runCondition", "a condition is an object"),
        (True, "steps[0].runCondition", "a condition is an object"),
        ({"var": "a", "equal": 1}, "steps[0].runCondition.equal", "is not a key of a condition"),
        ({"equals": 1}, "steps[0].runCondition", "`equals` has no variable"),
        ({"var": 3}, "steps[0].runCondition.var", "the name of a variable"),
        ({"var": "a", "gt": "3"}, "steps[0].runCondition.gt", "a number is expected"),
        ({"var": "a", "in": "x"}, "steps[0].runCondition.in", "needs a list"),
        ({"var": "a", "contains": 3}, "steps[0].runCondition.contains", "a string is expected"),
        ({"var": "a", "matches": "("}, "steps[0].runCondition.matches", "not a pattern"),
        ({"and": {"var": "a"}}, "steps[0].runCondition.and", "needs a list of conditions"),
        ({"and": [{"var": "a"}, {"not": {}}]}, "steps[0].runCondition.and[1].not", "is empty"),
        ({"not": None}, "steps[0].runCondition.not", "a condition is an object"),
    ],
)
def test_a_condition_that_they_would_silently_take_for_false_is_a_fault(condition: Any, where: str, why: str) -> None:
    ((found, message),) = faults(workflow(step(runCondition=condition)))
    assert found == where
    assert why in message
