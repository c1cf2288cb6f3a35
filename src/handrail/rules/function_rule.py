"""A rule made of functions: its card, what it finds, and what that depends on. No one rule is known here."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from handrail.domain.check import Finding, Severity
from handrail.domain.rule import CheckOutcome, Evidence, RuleCard
from handrail.engine.rule import Setting

FINDINGS_MAX: Final = 20
"""How many things one check tells of; the rest is counted."""

_unreadable = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]")

Apply: TypeAlias = Callable[[Mapping[str, Any], Setting], Awaitable[CheckOutcome]]
Inputs: TypeAlias = Callable[[Mapping[str, Any], Setting], Awaitable[str]]


async def untold(_parameters: Mapping[str, Any], _setting: Setting) -> str:
    """For rules whose outcome depends on what can't be told, or costs no more to find out again."""
    return ""


@dataclass(frozen=True)
class FunctionRule:
    """A rule whose work is done by two functions."""

    card: RuleCard
    do: Apply
    reads: Inputs = untold

    async def apply(self, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        """What it finds."""
        return await self.do(parameters, setting)

    async def inputs(self, parameters: Mapping[str, Any], setting: Setting) -> str:
        """The digest of all that its outcome depends on."""
        return await self.reads(parameters, setting)


def outcome(findings: Iterable[Finding], evidence: Evidence) -> CheckOutcome:
    """What a rule came to, with as many findings as are told."""
    told = bounded(findings)
    return CheckOutcome(findings=told, evidence=replace(evidence, passed=not told))


def evidence_of(card: RuleCard, *, digest: str = "", counts: Mapping[str, int] | None = None) -> Evidence:
    """The beginning of a record; whether it passed is told with the outcome."""
    return Evidence(rule=card.name, version=card.version, passed=False, digest=digest, counts=counts or {})


def found_at(rule: str, where: str, message: str, fix: str = "", *, excerpt: str = "") -> Finding:
    """A finding at a place of the project; how bad it is, the check says."""
    return Finding(
        rule=rule,
        severity=Severity.MAJOR,
        where=readable(where),
        message=readable(message),
        fix=fix,
        excerpt="\n".join(map(readable, excerpt.splitlines())),
    )


def not_done(rule: str, message: str, fix: str) -> Finding:
    """The finding that the rule could not do its work because something is missing: never a pass."""
    return replace(found_at(rule, "checks", message, fix), unapplied=True)


def undone(card: RuleCard, message: str, fix: str) -> CheckOutcome:
    """The outcome of a rule that could not do its work; another time it may."""
    evidence = replace(evidence_of(card), is_settled=False)
    return CheckOutcome(findings=(not_done(card.name, message, fix),), evidence=evidence)


def bounded(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The first findings, and how many more there are."""
    every = list(findings)
    if len(every) <= FINDINGS_MAX:
        return tuple(every)
    more = f"and {len(every) - FINDINGS_MAX:,} more like these"
    return (*every[:FINDINGS_MAX], found_at(every[0].rule, "checks", more, every[0].fix))


def readable(text: str) -> str:
    """A text that can be written down: names of files may hold anything."""
    return _unreadable.sub("?", text)


def named(values: Sequence[str], *, most: int = FINDINGS_MAX) -> str:
    """Some names in a sentence, and how many more there are."""
    shown = readable(", ".join(values[:most]))
    return shown if len(values) <= most else f"{shown} and {len(values) - most:,} more"
