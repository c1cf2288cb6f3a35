"""Fitness: what would not be done is refused before it begins, with all that is in the way."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.analysis.fitness import require_fit
from handrail.domain.analysis.whole import analyse
from handrail.domain.authoring import definition_from
from handrail.domain.check import Severity
from handrail.domain.definition import Definition, Effect
from handrail.domain.errors import Invalid

TOOLS = {"x.do": Effect.COMPENSATABLE}
CHECKED = {"id": "c", "tool": "x.do", "checks": [{"rule": "file_exists", "path": "x"}]}


def definition(*steps: Any, **more: Any) -> Definition:
    return definition_from({"id": "a-plan", "steps": list(steps), **more})


def test_what_is_sound_and_has_its_tools_is_fit() -> None:
    prompt = {"id": "b", "prompt": "x", "checks": [{"rule": "file_exists", "path": "x"}]}
    require_fit(definition({"id": "a", "tool": "x.do"}, prompt), TOOLS)


def test_a_tool_that_nobody_knows_is_refused_where_it_stands() -> None:
    unfit = definition({"id": "a", "tool": "x.do"}, {"id": "b", "tool": "x.dont"})
    with pytest.raises(Invalid, match="a-plan can't be run") as refused:
        require_fit(unfit, TOOLS)
    (finding,) = [one for one in refused.value.findings if one.severity is not Severity.MINOR]
    assert finding.where == "steps[1].tool"
    assert "x.dont" in finding.message


def test_findings_that_do_not_block_do_not_hinder() -> None:
    risky = definition({"id": "a", "tool": "x.do", "effect": "irreversible"})
    assert [flaw.severity for flaw in analyse(risky, tools=TOOLS)] == [Severity.MINOR]
    require_fit(risky, TOOLS)


@pytest.mark.parametrize(
    ("unfit", "where"),
    [
        (definition(CHECKED), ["steps[0].checks"]),
        (
            definition({"id": "a", "tool": "x.do"}, {"id": "l", "each": "[1]", "steps": [CHECKED]}, CHECKED),
            ["steps[1].steps[0].checks", "steps[2].checks"],
        ),
        (
            definition(
                {"id": "k", "workflow": "inner@1.0.0"},
                pinned={"inner@1.0.0": {"id": "inner", "version": "1.0.0", "steps": [CHECKED]}},
            ),
            ["steps[0].checks"],
        ),
    ],
)
def test_checks_of_tool_steps_are_refused_and_not_passed_over(unfit: Definition, where: list[str]) -> None:
    with pytest.raises(Invalid, match="checks on tool steps can't be run yet") as refused:
        require_fit(unfit, TOOLS)
    assert [finding.where for finding in refused.value.findings] == where
    assert all("leave `checks` out" in finding.fix for finding in refused.value.findings)
