"""The built-in rules: what each finds in an output, with messages that say how to fix it."""

from __future__ import annotations

from typing import Any

import pytest

from engine.guided_runs import judge as fits
from engine.stage import plan
from handrail.domain.checks.finding import Finding, Severity
from handrail.domain.checks.judgement import Judgement, PlainRuleSet, judge
from handrail.domain.definition.model import Prompt
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import locate
from handrail.rules.registry import built_in

MEANS = PlainRuleSet(built_in(), fits)
LATER = ("file_exists", "tests_pass", "git_clean")


def judged(output: Any, *checks: dict[str, Any], shape: dict[str, Any] | None = None) -> Judgement:
    step = {"id": "a", "prompt": "x", "checks": list(checks), **({"output": shape} if shape else {})}
    definition = plan(step, inputs={"least": {"default": 2}})
    found = locate(definition, "a")
    assert isinstance(found.step.work, Prompt)
    return judge(found.step.work, output, Run(id="run_1", inputs={"least": 2}), found.lane, MEANS)


def messages(output: Any, *checks: dict[str, Any]) -> list[str]:
    return [finding.message for finding in judged(output, *checks).findings]


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        ({"rule": "contains", "text": "why"}, "this is why", "no reason"),
        ({"rule": "contains", "texts": ["a", "b"]}, "a and b", "a alone"),
        ({"rule": "contains", "text": "x", "of": "list"}, {"list": ["x"]}, {"list": ["y"]}),
        ({"rule": "matches", "pattern": r"^v\d+\.\d+$"}, "v1.2", "1.2"),
        ({"rule": "matches", "pattern": r"^(?:done|[a-c.]\d)$", "flags": "i", "of": "s"}, {"s": "DoNe"}, {"s": "d1"}),
        ({"rule": "matches", "pattern": r"^[^a]\D$", "flags": "i"}, "bX", "Ax"),
        ({"rule": "matches", "pattern": "a.b", "flags": "s"}, "a\nb", "ab"),
        ({"rule": "matches", "pattern": "a.b"}, "axb", "a\nb"),
        ({"rule": "length", "min": 2}, "ab", "a"),
        ({"rule": "length", "max": 1, "of": "files"}, {"files": ["a"]}, {"files": ["a", "b"]}),
        ({"rule": "length", "min": 3}, 12345, 1),
        ({"rule": "equals", "value": 1}, 1, 2),
        ({"rule": "equals", "value": True, "of": "ok"}, {"ok": True}, {"ok": 1}),
        ({"rule": "equals", "value": "x", "of": "rows[1].name"}, {"rows": [{}, {"name": "x"}]}, {"rows": [{}]}),
        ({"rule": "expression", "that": "len(output.files) >= inputs.least"}, {"files": [1, 2]}, {"files": [1]}),
        ({"rule": "schema", "schema": {"type": "integer"}}, 1, "one"),
        ({"rule": "schema", "schema": {"minItems": 1}, "of": "files"}, {"files": [1]}, {"files": []}),
        ({"rule": "json"}, '{"a": 1}', "{a"),
        ({"rule": "json"}, {"a": 1}, "'"),
    ],
)
def test_a_rule_passes_what_is_good_and_finds_what_is_bad(check: dict[str, Any], good: Any, bad: Any) -> None:
    assert judged(good, check) == Judgement((), (check["rule"],))
    judgement = judged(bad, check)
    assert not judgement.is_good
    assert judgement.passed == ()
    assert all(finding.rule == check["rule"] and finding.message for finding in judgement.findings)


@pytest.mark.parametrize(
    ("rule", "parameters"),
    [
        ("contains", {"text": "x"}),
        ("matches", {"pattern": "x"}),
        ("length", {"min": 1}),
        ("equals", {"value": 1}),
        ("schema", {"schema": {}}),
        ("json", {}),
    ],
)
def test_a_part_that_is_not_there_is_a_finding_never_a_pass(rule: str, parameters: dict[str, Any]) -> None:
    [finding] = judged({"there": 1}, {"rule": rule, **parameters, "of": "not.there"}).findings
    assert (finding.where, finding.message) == ("output.not.there", "it is missing")


@pytest.mark.parametrize(
    "check",
    [
        {"rule": "contains"},
        {"rule": "contains", "texts": [1]},
        {"rule": "matches"},
        {"rule": "matches", "pattern": "("},
        {"rule": "matches", "pattern": "x", "flags": "m"},
        {"rule": "matches", "pattern": "(?=x)"},
        {"rule": "length"},
        {"rule": "length", "min": "two"},
        {"rule": "equals"},
        {"rule": "expression"},
        {"rule": "schema", "schema": 1},
        {"rule": "all_of"},
        {"rule": "any_of", "checks": []},
        {"rule": "none_of", "checks": [{"rule": "contains", "txt": "x"}]},
        {"rule": "none_of", "checks": [{"rule": "any_of", "checks": [{"rule": "contains", "txt": "x"}]}]},
        {"rule": "all_of", "checks": ["text"]},
    ],
)
def test_a_check_that_cant_be_applied_blocks(check: dict[str, Any]) -> None:
    judgement = judged("x", check)
    assert not judgement.is_good
    said = [finding.message for finding in judgement.findings]
    assert any("can't be applied" in one or "none of these passes" in one for one in said)


def test_an_expression_that_cant_be_worked_out_says_so() -> None:
    [finding] = judged({}, {"rule": "expression", "that": "output.files != []"}).findings
    assert "can't be evaluated" in finding.message


A, B = {"rule": "contains", "text": "a"}, {"rule": "contains", "text": "b"}


@pytest.mark.parametrize(
    ("rule", "output", "passes"),
    [
        ("all_of", "ab", True),
        ("all_of", "a", False),
        ("any_of", "a", True),
        ("any_of", "x", False),
        ("none_of", "x", True),
        ("none_of", "xa", False),
    ],
)
def test_rules_are_put_together(rule: str, output: str, passes: bool) -> None:
    assert judged(output, {"rule": rule, "checks": [A, B]}).is_good is passes
    assert judged(output, {"rule": "all_of", "checks": [{"rule": rule, "checks": [A, B]}]}).is_good is passes


def test_a_rule_inside_another_may_have_a_condition() -> None:
    never = {**A, "when": "inputs.least > 2"}
    assert judged("x", {"rule": "all_of", "checks": [never]}).is_good
    assert judged("x", {"rule": "any_of", "checks": [never]}).is_good
    assert not judged("x", {"rule": "all_of", "checks": [{**A, "when": "inputs.least == 2"}]}).is_good
    assert not judged("x", {"rule": "all_of", "checks": [{**A, "when": "nobody.knows"}]}).is_good


def test_the_check_says_how_bad_it_is_and_may_say_it_in_its_own_words() -> None:
    check = {"rule": "contains", "text": "x", "severity": "minor", "message": "name the x"}
    judgement = judged("y", check)
    assert judgement.is_good
    assert judgement.passed == (), "it has something against it, be it minor"
    [finding] = judgement.findings
    assert (finding.severity, finding.message) == (Severity.MINOR, "name the x")


def test_a_check_with_a_condition_is_applied_when_it_holds() -> None:
    check = {"rule": "contains", "text": "x", "when": "inputs.least > 2"}
    assert messages("y", check) == []
    assert messages("y", {**check, "when": "inputs.least == 2"}) == ["`x` is not in it"]
    assert "can't be evaluated" in messages({}, {**check, "when": "output.a.b == 1"})[0]


def test_parameters_speak_of_the_output_and_the_run() -> None:
    check = {"rule": "contains", "text": "{{ output.name }} {{ inputs.least }}", "of": "text"}
    assert messages({"name": "v", "text": "v 2"}, check) == []
    assert messages({"name": "v", "text": "v 3"}, check) == ["`v 2` is not in it"]


def test_checks_wait_until_the_shape_is_right() -> None:
    judgement = judged("text", A, shape={"type": "object"})
    assert [finding.rule for finding in judgement.findings] == ["type"]


@pytest.mark.parametrize("rule", LATER)
def test_a_rule_that_is_not_there_is_reported_as_not_run(rule: str) -> None:
    judgement = judged("x", {"rule": rule, "path": "a", "severity": "critical"}, A)
    reported: list[Finding] = [finding for finding in judgement.findings if finding.rule == rule]
    assert [finding.severity for finding in reported] == [Severity.MINOR]
    assert "was not run" in reported[0].message
    assert rule not in judgement.passed


@pytest.mark.parametrize(
    ("output", "check", "message"),
    [
        ("abc", {"rule": "length", "min": 5}, "it has 3 characters, at least 5 are needed"),
        (["a"], {"rule": "length", "min": 2}, "it has 1 item, at least 2 are needed"),
        ({"a": 1, "b": 2}, {"rule": "length", "max": 1}, "it has 2 members, at most 1 are allowed"),
        ("1.2", {"rule": "matches", "pattern": "^v"}, "`1.2` does not match `^v`"),
        ("x" * 99, {"rule": "matches", "pattern": "^v"}, f"`{'x' * 80}…` (99 characters) does not match `^v`"),
        (
            {"files": ["a", "b", "c"]},
            {"rule": "expression", "that": "len(output.files) < 3"},
            '`len(output.files) < 3` is not true: output.files is `["a","b","c"]`, 3 items',
        ),
        (
            {"files": ["long enough"] * 20},
            {"rule": "expression", "that": "len(output.files) < 3"},
            "`len(output.files) < 3` is not true: output.files is a list of 20 items",
        ),
        (
            {"a": "no", "b": 2},
            {"rule": "expression", "that": "output.a == 'yes' or output.b > 3"},
            "`output.a == 'yes' or output.b > 3` is not true: output.a is `no`, 2 characters, output.b is `2`",
        ),
        ("x", {"rule": "expression", "that": "inputs.least > 2"}, "`inputs.least > 2` is not true"),
        (
            {"s": "it does not work"},
            {"rule": "none_of", "checks": [{"rule": "matches", "of": "s", "pattern": "not work"}]},
            "`matches` passes but must not: of s, pattern not work",
        ),
    ],
)
def test_a_finding_names_the_word_the_item_and_the_number(output: Any, check: dict[str, Any], message: str) -> None:
    assert messages(output, check) == [message]
