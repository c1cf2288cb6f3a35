"""Composition: the outcome of `all_of`, `any_of` and `none_of`, given the outcomes of the checks inside them.

Pure, and the only place where that is decided. The inner checks are applied by the gate, or by a rehearsal. A check
that was not run neither fails nor passes, so a composition that depends on it was not run either."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from handrail.domain.checks.finding import Finding, FixedBy, Severity
from handrail.domain.checks.rule import CheckOutcome, LooksAt, RuleCard


class CheckPart(NamedTuple):
    """A check inside another, by its rule and its outcome."""

    rule: str
    outcome: CheckOutcome
    about: str = ""
    """Its parameters, in brief."""


Compose: TypeAlias = Callable[[Sequence[CheckPart], str], CheckOutcome]
"""Combines the outcomes of the parts; the text is the `where` of findings of the composition itself."""


class Composition(NamedTuple):
    """A rule made of rules."""

    card: RuleCard
    compose: Compose


def _all_of(parts: Sequence[CheckPart], _where: str) -> CheckOutcome:
    against = [found for _, outcome, _ in parts if not outcome.is_not_run for found in outcome.findings]
    return CheckOutcome(findings=tuple(against)) if against else _unless_open(parts)


def _any_of(parts: Sequence[CheckPart], where: str) -> CheckOutcome:
    if passing := _passing(parts):
        remarks = tuple(one for _, outcome, _ in passing for one in outcome.remarks)
        return CheckOutcome(looks_at=_looks_at(passing), remarks=remarks)
    if not parts:
        return CheckOutcome(was_run=False)  # no condition was true: nothing was looked at, so nothing is proved
    judging = [part for part in parts if not part.outcome.is_note]
    if not judging or any(outcome.is_not_run for _, outcome, _ in judging):
        return _unless_open(parts)
    names = ", ".join(rule for rule, _, _ in parts)
    found = Finding(
        rule="any_of",
        severity=Severity.MAJOR,
        where=where,
        message=f"none of these passes: {names}",
        fix=judging[0].outcome.findings[0].fix,
        # A part that could not be applied might have passed: `none_of` around this must not count it as a failure.
        unapplied=any(outcome.is_unapplied for _, outcome, _ in parts),
        fixed_by=_fixed_by(judging),
    )
    return CheckOutcome(findings=(found,))


def _fixed_by(parts: Sequence[CheckPart]) -> FixedBy:
    """Who can fix one of these that failed: the agent, unless each of them is for somebody else to fix."""
    every = [found.fixed_by for _, outcome, _ in parts for found in outcome.findings]
    return FixedBy.AGENT if FixedBy.AGENT in every else every[0]


def _none_of(parts: Sequence[CheckPart], where: str) -> CheckOutcome:
    against: list[Finding] = []
    for rule, outcome, about in parts:
        if outcome.passed:
            message = f"`{rule}` passes but must not{about}"
            against.append(
                Finding(rule="none_of", severity=Severity.MAJOR, where=where, message=message, fix="take it out")
            )
        elif outcome.is_unapplied:
            against.append(outcome.findings[0])  # it did not fail: it could not be applied
    return CheckOutcome(findings=tuple(against)) if against else _unless_open(parts)


def _unless_open(parts: Sequence[CheckPart]) -> CheckOutcome:
    """A pass, unless a part was not run: then the outcome is unknown, and the notes on those parts say so."""
    notes = tuple(found for _, outcome, _ in parts if outcome.is_not_run for found in outcome.findings)
    remarks = tuple(one for _, outcome, _ in parts for one in outcome.remarks)
    return CheckOutcome(findings=notes, was_run=bool(parts) and not notes, looks_at=_looks_at(parts), remarks=remarks)


def _passing(parts: Sequence[CheckPart]) -> list[CheckPart]:
    return [part for part in parts if part.outcome.passed]


def _looks_at(parts: Sequence[CheckPart]) -> LooksAt:
    return LooksAt.WORLD if any(part.outcome.looks_at is LooksAt.WORLD for part in parts) else LooksAt.WORDS


def _card(name: str, summary: str) -> RuleCard:
    checks = {
        "type": "array",
        "minItems": 1,
        "maxItems": 50,
        "items": {"type": "object", "required": ["rule"], "properties": {"rule": {"type": "string"}}},
    }
    inside = [
        {"rule": "file_exists", "path": "CHANGELOG.md"},
        {"rule": "contains", "of": "summary", "text": "changelog"},
    ]
    return RuleCard(
        name=name,
        summary=summary,
        parameters={"checks": checks},
        required=("checks",),
        timeout="1h",
        example={"checks": inside},
    )


COMPOSITIONS: Final[Mapping[str, Composition]] = {
    one.card.name: one
    for one in (
        Composition(_card("all_of", "Each of `checks` passes."), _all_of),
        Composition(_card("any_of", "At least one of `checks` passes."), _any_of),
        Composition(_card("none_of", "None of `checks` passes."), _none_of),
    )
}
"""The rules made of rules, by name."""
