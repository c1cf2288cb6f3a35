"""Findings about checks: unknown rules, wrong parameters, and unusable patterns.

Pure. Names in their expressions are checked in name_findings.py; values that are not known yet, by the gate of a
run (engine/checking/gate.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.analysis.known_values import MISSING_KEY, UNKNOWN_KEY, known_flaws
from handrail.domain.analysis.local import Local, LocalRules
from handrail.domain.checks.composition import COMPOSITIONS
from handrail.domain.checks.finding import Flaw, Path, Severity
from handrail.domain.checks.rule import RuleCard, parameters_of, parameters_schema
from handrail.domain.definition.model import Definition, Prompt, Tool, walk
from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern
from handrail.domain.language.template import has_templates
from handrail.domain.suggestion import did_you_mean


def check_flaws(definition: Definition, local: Local) -> Iterator[Flaw]:
    """What is wrong with the checks of steps."""
    for path, step in walk(definition.steps):
        if isinstance(step.work, Prompt | Tool):
            for index, check in enumerate(step.work.checks):
                yield from _flaws(check.rule, check.parameters, (*path, "checks", index), local)


def _flaws(rule: Any, parameters: Mapping[str, Any], path: Path, local: Local) -> Iterator[Flaw]:
    name = rule if isinstance(rule, str) else ""
    if local.rules is not None:
        yield from _rule_flaws(name, parameters, path, local, local.rules)
    yield from _bad_pattern(name, parameters.get("pattern"), path)
    for index, one in _inside(name, parameters):
        yield from _flaws(one.get("rule"), parameters_of(one), (*path, "checks", index), local)


def rules_in(definition: Definition) -> frozenset[str]:
    """The names of all rules that a definition's checks apply, including nested checks and inlined workflows."""
    works = (step.work for one in (definition, *definition.pinned.values()) for _, step in walk(one.steps))
    checks = (check for work in works if isinstance(work, Prompt | Tool) for check in work.checks)
    return frozenset(name for check in checks for name in _names(check.rule, check.parameters))


def _names(rule: Any, parameters: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(rule, str):
        yield rule
        for _, one in _inside(rule, parameters):
            yield from _names(one.get("rule"), parameters_of(one))


def _inside(rule: str, parameters: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The checks inside another check, as far as they are written like checks."""
    inner = parameters.get("checks") if rule in COMPOSITIONS else None
    for index, one in enumerate(inner if isinstance(inner, list | tuple) else ()):
        if isinstance(one, Mapping):
            yield index, one


def _rule_flaws(
    name: str, parameters: Mapping[str, Any], path: Path, local: Local, rules: LocalRules
) -> Iterator[Flaw]:
    if name not in rules.cards:
        yield _unknown(name, path, rules, is_to_run=local.tools is not None)
    elif (card := rules.cards[name]) is not None:
        for flaw in known_flaws(parameters_schema(card), parameters, path, local.fits):
            yield replace(flaw, rule="parameters", severity=Severity.MAJOR, **_in_words(flaw, card, path))


def _unknown(name: str, path: Path, rules: LocalRules, *, is_to_run: bool) -> Flaw:
    """A rule that is not installed: an error if the definition is to run here, or if it looks like a typing error."""
    near = get_close_matches(name, rules.names, n=1)
    install = "install the package that provides it; `handrail rules list` shows what is available"
    why_not = f": {rules.broken[name]}" if name in rules.broken else ""
    return Flaw(
        rule="unknown_rule",
        severity=Severity.MAJOR if near or is_to_run else Severity.MINOR,
        path=(*path, "rule"),
        message=f"there is no rule `{name}` here{why_not}",
        fix=f"did you mean `{near[0]}`?" if near else install,
    )


DURATION_FIX: Final = "write a whole number and a unit: 250ms, 30s, 5m, 2h"


def _in_words(flaw: Flaw, card: RuleCard, path: Path) -> dict[str, str]:
    """Clearer words for flaws of the parameters themselves; flaws deeper inside keep theirs."""
    if flaw.rule == MISSING_KEY and flaw.path == path:
        return {"message": f"`{card.name}`: {flaw.message}"}
    if flaw.rule == UNKNOWN_KEY and flaw.path[:-1] == path:
        name, takes = str(flaw.path[-1]), sorted({*card.parameters, "of", "timeout"})
        return {"message": f"`{card.name}` takes no `{name}`", "fix": did_you_mean(name, takes)}
    if flaw.path == (*path, "timeout"):
        return {"message": f"`{card.name}`: the `timeout` is not a duration", "fix": DURATION_FIX}
    return {}


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
