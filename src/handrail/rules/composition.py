"""Rules made of rules: `all_of`, `any_of`, `none_of`. Pure; as deep as a document can be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from handrail.domain.check import Finding
from handrail.domain.errors import Invalid
from handrail.domain.rule import Given, Rules
from handrail.rules.subject import finding, unfit


def all_of(rules: Rules, parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """Each of `checks` passes."""
    for _, found in _applied("all_of", rules, parameters, given):
        yield from found


def any_of(rules: Rules, parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """At least one of `checks` passes."""
    every = list(_applied("any_of", rules, parameters, given))
    if every and all(found for _, found in every):
        names = ", ".join(name for name, _ in every)
        yield finding("any_of", parameters, f"none of these passes: {names}", every[0][1][0].fix)


def none_of(rules: Rules, parameters: Mapping[str, Any], given: Given) -> Iterator[Finding]:
    """None of `checks` passes."""
    for name, found in _applied("none_of", rules, parameters, given):
        if not found:
            yield finding("none_of", parameters, f"`{name}` passes, and must not", "take it out")
        elif found[0].where.startswith("checks."):
            yield found[0]


def _applied(
    rule: str, rules: Rules, parameters: Mapping[str, Any], given: Given
) -> Iterator[tuple[str, list[Finding]]]:
    checks = parameters.get("checks")
    if not isinstance(checks, list | tuple) or not checks:
        yield rule, [unfit(rule, "checks", "it has no `checks`")]
        return
    for check in checks:
        name = str(check.get("rule", "")) if isinstance(check, Mapping) else ""
        if name not in rules:
            yield name or rule, [unfit(rule, "checks", f"there is no rule `{name}`")]
            continue
        try:
            is_wanted = "when" not in check or given.evaluate(str(check["when"])) is True
        except Invalid as error:
            yield name, [unfit(rule, "when", str(error))]
            continue
        if is_wanted:
            yield name, list(rules[name](check, given))
