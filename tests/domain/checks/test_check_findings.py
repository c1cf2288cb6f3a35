"""Checks that can never be applied are found when a definition is loaded, with their place."""

from __future__ import annotations

from typing import Any

import pytest

from domain.places import rules_alone
from handrail.library.loading import load_data, load_definition


def found(*checks: dict[str, Any], **step: Any) -> list[tuple[str, str]]:
    data: Any = {"id": "p", "steps": [{"id": "a", "prompt": "x", "checks": list(checks), **step}]}
    return [(finding.rule, finding.where) for finding in load_data(data, survey=rules_alone).findings]


def severities(*checks: dict[str, Any]) -> list[str]:
    data: Any = {"id": "p", "steps": [{"id": "a", "prompt": "x", "checks": list(checks)}]}
    return [finding.severity.value for finding in load_data(data, survey=rules_alone).findings]


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "(?i)x"])
def test_a_pattern_that_cant_be_used(pattern: str) -> None:
    check = {"rule": "matches", "pattern": pattern}
    assert found(check) == [("pattern", "steps[0].checks[0].pattern")]
    assert found({"rule": "any_of", "checks": [check]}) == [("pattern", "steps[0].checks[0].checks[0].pattern")]


def test_patterns_that_can_be_used_or_are_made_later_are_left_alone() -> None:
    assert found({"rule": "matches", "pattern": r"^v\d+$", "flags": "i"}) == []
    assert found({"rule": "matches", "pattern": "{{ output.pattern }}"}) == []
    unread = {"rule": "all_of", "checks": ["text", {"rule": "matches", "pattern": "a"}]}
    assert found(unread) == [("parameters", "steps[0].checks[0].checks[0]")]


def test_a_rule_that_is_nearly_ours_is_a_slip_and_another_may_come_with_a_package() -> None:
    assert found({"rule": "file_exist", "path": "a"}) == [("unknown_rule", "steps[0].checks[0].rule")]
    assert severities({"rule": "file_exist", "path": "a"}) == ["major"]
    assert severities({"rule": "acme_licences"}) == ["minor"]


def test_parameters_that_a_rule_does_not_take_or_lacks_are_reported_also_inside_others() -> None:
    assert found({"rule": "file_exists", "pth": "a"}) == [("parameters", "steps[0].checks[0].pth")]
    assert found({"rule": "http_ok", "of": "a", "timeout": "1s"}) == [("parameters", "steps[0].checks[0]")]
    inner = {"rule": "any_of", "checks": [{"rule": "git_clean", "when": "true", "clean": True}]}
    assert found(inner) == [("parameters", "steps[0].checks[0].checks[0].clean")]


@pytest.mark.parametrize("timeout", ["abc", "5", "-1s", "1 m", 5])
def test_a_timeout_that_is_no_duration_is_found_when_the_workflow_is_loaded(timeout: Any) -> None:
    check = {"rule": "git_clean", "timeout": timeout}
    assert found(check) == [("parameters", "steps[0].checks[0].timeout")]
    inside = {"rule": "any_of", "checks": [check]}
    assert found(inside) == [("parameters", "steps[0].checks[0].checks[0].timeout")]
    text = (
        f"id: p\nsteps:\n  - id: a\n    prompt: x\n    checks:\n      - rule: git_clean\n        timeout: {timeout}\n"
    )
    [one] = load_definition(text, name="p.yaml", survey=rules_alone).findings
    assert (str(one.at), one.severity.value) == ("p.yaml:7:18", "major")
    assert "not a duration" in one.message


def test_a_timeout_may_be_made_later() -> None:
    assert found({"rule": "git_clean", "timeout": "{{ run.id }}"}, {"rule": "git_clean", "timeout": "90s"}) == []


def test_an_expression_speaks_of_what_is_there() -> None:
    shape = {"type": "object", "properties": {"files": {"type": "array"}}, "additionalProperties": False}
    assert found({"rule": "expression", "that": "len(output.files) > 0"}, output=shape) == []
    for wrong in ("output.files - 2", "outputs.files != []", "len(", "output.file == 1"):
        [(_, where)] = found({"rule": "expression", "that": wrong}, output=shape)
        assert where == "steps[0].checks[0].that"
