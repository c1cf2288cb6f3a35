"""Findings about checks: patterns that can't be used. What their expressions speak of, name_findings.py tells.

Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from handrail.domain.check import Flaw, Path, Severity
from handrail.domain.definition import Definition, Prompt, Tool, walk
from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern
from handrail.domain.language.template import has_templates

COMPOSED = frozenset({"all_of", "any_of", "none_of"})


def check_flaws(definition: Definition) -> Iterator[Flaw]:
    """What is wrong with the checks of steps."""
    for path, step in walk(definition.steps):
        if isinstance(step.work, Prompt | Tool):
            for index, check in enumerate(step.work.checks):
                yield from _flaws(check.rule, check.parameters, (*path, "checks", index))


def _flaws(rule: Any, parameters: Mapping[str, Any], path: Path) -> Iterator[Flaw]:
    pattern = parameters.get("pattern")
    if rule == "matches" and isinstance(pattern, str) and not has_templates(pattern):
        try:
            linear_pattern(pattern)
        except Invalid as error:
            yield Flaw(
                rule="pattern",
                severity=Severity.CRITICAL,
                path=(*path, "pattern"),
                message=str(error),
                fix="write it without look-around and back-references; `flags: i` ignores case",
            )
    inner = parameters.get("checks") if rule in COMPOSED else None
    for index, one in enumerate(inner if isinstance(inner, list | tuple) else ()):
        if isinstance(one, Mapping):
            yield from _flaws(one.get("rule"), one, (*path, "checks", index))
