"""Rules made of functions, and the findings, evidence and outcomes that such rules return. No specific rule is here."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, FixedBy, Severity
from handrail.domain.checks.rule import CheckOutcome, Evidence, RuleCard
from handrail.engine.checking.rule import PlannedCommand, Setting

FINDINGS_MAX: Final = 20
"""How many findings a check reports; the rest is counted."""

_unreadable = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")

Apply: TypeAlias = Callable[[Mapping[str, Any], Setting], Awaitable[CheckOutcome]]
Inputs: TypeAlias = Callable[[Mapping[str, Any], Setting], Awaitable[str]]


Would: TypeAlias = Callable[[Mapping[str, Any], Setting], Awaitable[Sequence[PlannedCommand]]]


async def no_commands(_parameters: Mapping[str, Any], _setting: Setting) -> Sequence[PlannedCommand]:
    """For rules that run no commands."""
    return ()


async def not_cached(_parameters: Mapping[str, Any], _setting: Setting) -> str:
    """For rules whose outcome depends on unknown inputs, or is as fast to find again."""
    return ""


@dataclass(frozen=True)
class FunctionRule:
    """A rule implemented by functions."""

    card: RuleCard
    do: Apply
    reads: Inputs = not_cached
    would: Would = no_commands
    """What it would run, without running it."""

    async def apply(self, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        """The outcome of the rule."""
        return await self.do(parameters, setting)

    async def inputs(self, parameters: Mapping[str, Any], setting: Setting) -> str:
        """The digest of everything that its outcome depends on."""
        return await self.reads(parameters, setting)


def outcome(findings: Iterable[Finding], evidence: Evidence) -> CheckOutcome:
    """The outcome of a rule, with a limited number of findings."""
    shown = bounded(findings)
    return CheckOutcome(findings=shown, evidence=replace(evidence, passed=not shown))


def evidence_of(card: RuleCard, *, digest: str = "", counts: Mapping[str, int] | None = None) -> Evidence:
    """A first record of evidence; `outcome` sets whether it passed."""
    return Evidence(rule=card.name, version=card.version, passed=False, digest=digest, counts=counts or {})


def found_at(rule: str, where: str, message: str, fix: str = "", *, excerpt: str = "") -> Finding:
    """A finding at a place of the project; its severity is set by the check."""
    return Finding(
        rule=rule,
        severity=Severity.MAJOR,
        where=readable(where),
        message=readable(message),
        fix=fix,
        excerpt="\n".join(map(readable, excerpt.splitlines())),
    )


def not_checked(rule: str, message: str, fix: str, by: FixedBy = FixedBy.PERSON) -> Finding:
    """The finding that the rule could not check because something is missing, which never counts as a pass. A person
    must see to it, unless it is said otherwise."""
    return replace(found_at(rule, "checks", message, fix), unapplied=True, fixed_by=by)


def unchecked_outcome(card: RuleCard, message: str, fix: str, by: FixedBy = FixedBy.PERSON) -> CheckOutcome:
    """The outcome of a rule that could not check; not cached, because the next time it may."""
    evidence = replace(evidence_of(card), is_settled=False)
    return CheckOutcome(findings=(not_checked(card.name, message, fix, by),), evidence=evidence)


def note_outcome(card: RuleCard, message: str, fix: str = "", *, excerpt: str = "") -> CheckOutcome:
    """The outcome of a rule that had nothing to judge: a note that refuses nothing and proves nothing."""
    found = replace(found_at(card.name, "checks", message, fix, excerpt=excerpt), severity=Severity.MINOR)
    return CheckOutcome(findings=(found,), was_run=False, is_note=True)


def bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first findings, and how many more there are."""
    every = list(findings)
    if len(every) <= FINDINGS_MAX:
        return tuple(every)
    more = f"and {len(every) - FINDINGS_MAX:,} more like these"
    return (*every[:FINDINGS_MAX], found_at(every[0].rule, "checks", more, every[0].fix))


def readable(text: str) -> str:
    """A string without control characters: file names may contain anything."""
    return _unreadable.sub("?", text)


def named(values: Sequence[str], *, most: int = FINDINGS_MAX) -> str:
    """Some names for a sentence, and how many more there are."""
    shown = readable(", ".join(values[:most]))
    return shown if len(values) <= most else f"{shown} and {len(values) - most:,} more"
