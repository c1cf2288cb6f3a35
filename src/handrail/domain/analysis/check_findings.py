"""Findings about checks: rules that nobody knows, parameters that they do not take, patterns that can't be used.

Pure. What their expressions speak of, name_findings.py tells; whether values fit, the gate does when they are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from handrail.domain.check import Flaw, Path, Severity
from handrail.domain.definition import Definition, Prompt, Tool, walk
from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern
from handrail.domain.language.template import has_templates
from handrail.domain.rule_parameters import BUILT_IN_PARAMETERS
from handrail.domain.suggestion import did_you_mean

COMPOSED: Final = frozenset({"all_of", "any_of", "none_of"})
OF_CHECK: Final = frozenset({"rule", "when", "severity", "message"})


def check_flaws(definition: Definition) -> Iterator[Flaw]:
    """What is wrong with the checks of steps."""
    for path, step in walk(definition.steps):
        if isinstance(step.work, Prompt | Tool):
            for index, check in enumerate(step.work.checks):
                yield from _flaws(check.rule, check.parameters, (*path, "checks", index))


def _flaws(rule: Any, parameters: Mapping[str, Any], path: Path) -> Iterator[Flaw]:
    name = rule if isinstance(rule, str) else ""
    yield from _unknown(name, path)
    yield from _misfits(name, parameters, path)
    yield from _bad_pattern(name, parameters.get("pattern"), path)
    inner = parameters.get("checks") if name in COMPOSED else None
    for index, one in enumerate(inner if isinstance(inner, list | tuple) else ()):
        if isinstance(one, Mapping):
            own = {key: value for key, value in one.items() if key not in OF_CHECK}
            yield from _flaws(one.get("rule"), own, (*path, "checks", index))


def _unknown(rule: str, path: Path) -> Iterator[Flaw]:
    """A rule that does not come with handrail may come with a package; one that is nearly ours is a slip."""
    if rule in BUILT_IN_PARAMETERS:
        return
    near = get_close_matches(rule, BUILT_IN_PARAMETERS, n=1)
    elsewhere = "make sure that the package which brings it is installed where this runs"
    yield Flaw(
        rule="unknown_rule",
        severity=Severity.MAJOR if near else Severity.MINOR,
        path=(*path, "rule"),
        message=f"no rule `{rule}` comes with handrail",
        fix=f"did you mean `{near[0]}`?" if near else elsewhere,
    )


def _misfits(rule: str, parameters: Mapping[str, Any], path: Path) -> Iterator[Flaw]:
    takes = BUILT_IN_PARAMETERS.get(rule)
    if takes is None:
        return
    for name in sorted(parameters.keys() - takes.known):
        yield Flaw(
            rule="parameters",
            severity=Severity.MAJOR,
            path=(*path, name),
            message=f"`{rule}` takes no `{name}`",
            fix=did_you_mean(name, sorted(takes.known)) or f"it takes: {', '.join(sorted(takes.known))}",
            on_key=True,
        )
    for name in sorted(takes.required - parameters.keys()):
        yield Flaw(
            rule="parameters",
            severity=Severity.MAJOR,
            path=path,
            message=f"`{rule}` needs `{name}`",
            fix=f"add `{name}`",
        )


def _bad_pattern(rule: str, pattern: Any, path: Path) -> Iterator[Flaw]:
    if rule != "matches" or not isinstance(pattern, str) or has_templates(pattern):
        return
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
