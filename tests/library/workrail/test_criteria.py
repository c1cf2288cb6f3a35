"""Validation criteria: what becomes a check, what can only be reply, and what is a fault."""

from __future__ import annotations

from typing import Any

import pytest

from engine.guided_runs import judge as fits
from engine.stage import plan
from handrail.domain.checks.judgement import PlainRuleSet, judge
from handrail.domain.definition.model import Prompt
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import top_lane
from handrail.rules.registry import built_in
from library.workrail.garden import Data, faults, first, notes, step, workflow


def checks(criteria: Any) -> list[Data]:
    found: list[Data] = first(workflow(step(validationCriteria=criteria))).get("checks", [])
    return found


def passes(check: Data, output: Any, **variables: Any) -> bool:
    """Whether an output passes a check as handrail itself applies it."""
    definition = plan({"id": "a", "prompt": "x", "checks": [check]})
    work = definition.steps[0].work
    assert isinstance(work, Prompt)
    run = Run(id="run_1", vars=variables)
    return not judge(work, output, run, top_lane(definition), PlainRuleSet(built_in(), fits)).findings


def rule(kind: str, **more: Any) -> Data:
    return {"type": kind, "message": "Look again.", **more}


def test_each_kind_of_rule_becomes_a_check_with_its_message() -> None:
    schema = {"type": "object", "required": ["x"]}
    rules = [
        rule("contains", value="done"),
        rule("regex", pattern="^a+$"),
        rule("length", min=1, max=9.0),
        rule("schema", schema=schema),
    ]
    message = {"message": "Look again."}
    assert checks(rules) == [
        {"rule": "contains", "text": "done", **message},
        {"rule": "matches", "pattern": "^a+$", **message},
        {"rule": "length", "min": 1, "max": 9, **message},
        {"rule": "schema", "schema": schema, **message},
    ]
    assert checks(rules[0]) == checks([rules[0]])


@pytest.mark.parametrize(
    ("pattern", "flags", "yes", "no"),
    [
        ("^done$", "", ["done"], ["Done", "all\ndone"]),
        ("^done$", "i", ["DONE"], ["all\ndone"]),
        ("^done$", "gim", ["all\nDone\n!"], ["undone"]),
        ("a.b", "s", ["a\nb"], ["ab"]),
        ("b", "y", ["bc"], ["ab"]),
        ("[a-c]\\d\\{\\{", "iu", ["B1{{"], ["D1{{"]),
    ],
)
def test_the_flags_of_a_pattern_are_worked_into_it(pattern: str, flags: str, yes: list[str], no: list[str]) -> None:
    (check,) = checks([rule("regex", pattern=pattern, flags=flags)])
    assert all(passes(check, text) for text in yes), check
    assert not any(passes(check, text) for text in no), check


def test_a_rule_may_have_a_condition() -> None:
    (check,) = checks([rule("contains", value="x", condition={"var": "size", "equals": "Large"})])
    assert check["when"] == 'word(default(vars.size, "")) == "large"'


@pytest.mark.parametrize(
    ("size", "output", "is_good"), [("large", "x", True), ("large", "y", False), ("small", "y", True)]
)
def test_a_condition_counts_inside_of_a_composition_too(size: str, output: str, is_good: bool) -> None:
    inner = rule("contains", value="x", condition={"var": "size", "equals": "Large"})
    (check,) = checks({"or": [inner, rule("contains", value="z")]})
    assert passes(check, output, size=size) is is_good


def test_rules_are_put_together_with_and_or_and_not() -> None:
    a, b, c = (rule("contains", value=one) for one in "abc")
    both, other = checks({"and": [a, {"or": [b, {"not": {"and": [c, a]}}]}]})
    assert passes(both, "a")
    assert not passes(both, "b")
    assert passes(other, "bca")
    assert passes(other, "c")
    assert not passes(other, "ca")


def test_braces_in_rules_are_no_templates() -> None:
    (check,) = checks([rule("contains", value="{{done}} {% if %}")])
    assert check["text"] == '{{ "{{" }}done}} {{ "{%" }} if %}'


@pytest.mark.parametrize("criteria", ["Every bed was watered.", ["Every bed was watered."]])
def test_a_sentence_is_reported_and_not_checked(criteria: Any) -> None:
    data = workflow(step(validationCriteria=criteria))
    assert "checks" not in first(data)
    assert "## What must hold\n- Every bed was watered." in first(data)["prompt"]
    assert any("does not check it" in note for note in notes(data).values())


def test_a_text_that_is_a_pattern_is_one() -> None:
    assert checks(["^wet$"]) == [{"rule": "matches", "pattern": "^wet$"}]


@pytest.mark.parametrize(
    "unfit",
    [
        rule("regex", pattern="(?=a)b"),
        rule("regex", pattern="(a)\\1"),
        rule("regex", pattern="a", flags="q"),
        rule("regex", pattern="a)|(b", flags="i"),
        rule("schema", schema={"$ref": "http://example.com/x"}),
        rule("schema", schema={"type": "nonsense"}),
    ],
)
def test_what_can_not_be_checked_in_linear_time_or_offline_is_reported(unfit: Data) -> None:
    data = workflow(step(validationCriteria=[unfit]))
    assert "checks" not in first(data)
    assert "- Look again." in first(data)["prompt"]
    assert any("not checked" in note for note in notes(data).values())


def test_a_composition_that_loses_a_part_is_not_checked_at_all() -> None:
    data = workflow(step(validationCriteria={"or": [rule("contains", value="a"), rule("regex", pattern="(?=a)")]}))
    assert "checks" not in first(data)
    assert "none of it is" in notes(data)["steps[0].validationCriteria.or"]


def test_many_rules_are_all_applied() -> None:
    found = checks([rule("contains", value=f"word{number}") for number in range(120)])
    assert len(found) == 50
    assert len(found[-1]["checks"]) == 71


@pytest.mark.parametrize(
    ("criteria", "where"),
    [
        (3, ""),
        ([3], "[0]"),
        ([{}], "[0]"),
        ({"and": [rule("contains", value="a")], "or": []}, ""),
        ({"or": 3}, ".or"),
        ([rule("nonsense")], "[0].type"),
        ([rule("contains", value=3)], "[0].value"),
        ([rule("contains")], "[0].value"),
        ([rule("regex")], "[0].pattern"),
        ([rule("length")], "[0]"),
        ([rule("length", min="1")], "[0].min"),
        ([rule("schema")], "[0]"),
        ([rule("schema", schema=3)], "[0].schema"),
        ([rule("contains", value="a", condition=3)], "[0].condition"),
    ],
)
def test_criteria_that_nobody_understands_are_faults(criteria: Any, where: str) -> None:
    found = faults(workflow(step(validationCriteria=criteria)))
    assert [place for place, _ in found] == [f"steps[0].validationCriteria{where}"]
