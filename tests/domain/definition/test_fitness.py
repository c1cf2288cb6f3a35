"""Fitness: what would not be done is refused before it begins, with all that is in the way."""

from __future__ import annotations

from typing import Any

import pytest

from domain.places import survey_with
from handrail.domain.analysis.fitness import require_fit
from handrail.domain.analysis.whole import analyse
from handrail.domain.checks.finding import Severity
from handrail.domain.definition.authoring import definition_from
from handrail.domain.definition.model import Definition, Effect
from handrail.domain.errors import Invalid

TOOLS = survey_with({"x.do": Effect.COMPENSATABLE})
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
    assert [flaw.severity for flaw in analyse(risky, TOOLS((), ()))] == [Severity.MINOR]
    require_fit(risky, TOOLS)


def test_a_tool_step_may_have_checks() -> None:
    require_fit(definition(CHECKED), TOOLS)
