"""Rules: what a check applies to an output, as values and shapes. The rules themselves are in rules/. Pure.

A plain rule looks at values alone. One that reads files, runs commands or waits is the engine's to apply
(engine/rule.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct, field, to_builtins

from handrail.domain.check import Finding
from handrail.domain.json import Json

SchemaJudge: TypeAlias = Callable[[Any, Any], Sequence[Finding]]
"""What is wrong with a value by a JSON Schema."""


class Given(Struct, frozen=True, kw_only=True):
    """What a rule may look at: the output, and ways to work out expressions over the run and to apply schemas."""

    output: Json
    evaluate: Callable[[str], Json]
    fits: SchemaJudge


Find: TypeAlias = Callable[[Mapping[str, Any], Given], Iterable[Finding]]
"""The work of a plain rule: parameters and what is given in, findings out. It does not raise, print, read or wait."""


class Reads(StrEnum):
    """What a rule looks at beside its parameters."""

    OUTPUT = "output"
    PROJECT = "project"
    NETWORK = "network"


class RuleCard(Struct, frozen=True, kw_only=True):
    """What a rule says of itself."""

    name: str
    summary: str
    """What holds if it finds nothing, in one sentence."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """By name: the JSON Schema of a parameter."""
    required: tuple[str, ...] = ()
    reads: Reads = Reads.OUTPUT
    version: str = "1.0.0"
    """SemVer; what it found under another version is not what it would find now."""
    origin: str = "built in"
    """The package that brings it."""
    timeout: str = "60s"
    example: Mapping[str, Any] = field(default_factory=dict)
    """Parameters as an author would write them."""


class PlainRule(Struct, frozen=True):
    """A rule that looks at values alone."""

    card: RuleCard
    find: Find


Rules: TypeAlias = Mapping[str, PlainRule]
"""The plain rules that can be applied, by name."""

SHARED: Final[Mapping[str, Any]] = {
    "of": {"type": "string", "maxLength": 1_000},
    "timeout": {"type": "string", "maxLength": 20},
}
"""Parameters that every rule takes: their schemas."""
OF_CHECK: Final = frozenset({"rule", "when", "severity", "message"})
"""What stands beside the parameters where a check is written."""


def subject_name(parameters: Mapping[str, Any]) -> str:
    """The name of what a check looks at: the output, or the part of it that `of` names."""
    of = str(parameters.get("of", ""))
    return f"output.{of}" if of and not of.startswith("[") else f"output{of}"


def parameters_of(check: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a check as it is written inside another."""
    return {name: value for name, value in check.items() if name not in OF_CHECK}


def parameters_schema(card: RuleCard) -> Mapping[str, Any]:
    """The JSON Schema of all that a check with this rule may be given."""
    return {
        "type": "object",
        "properties": {**card.parameters, **SHARED},
        "required": list(card.required),
        "additionalProperties": False,
    }


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a check leaves behind: what ran, on what, and what came of it."""

    rule: str
    version: str
    passed: bool
    ran: tuple[str, ...] = ()
    """The command, if it ran one."""
    digest: str = ""
    """Of all that it looked at."""
    tree: str = ""
    """The digest of the project's files as they were then, if it looked at the project."""
    exit: int | None = None
    took: int = 0
    """Milliseconds."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """The versions of the programs that were used."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """What was counted: tests, failures, warnings, lines."""
    excerpt: str = ""
    cached: bool = False
    """Whether it was found before, on the very same, and not again."""
    is_settled: bool = True
    """Whether the same would be found again on the very same; not so if a program was missing, or the rule broke."""


class CheckOutcome(Struct, frozen=True, kw_only=True):
    """The result of one check: it passed, failed, could not be applied, or was not run."""

    findings: tuple[Finding, ...] = ()
    evidence: Evidence | None = None
    was_run: bool = True
    """Whether a rule looked at anything. If not, no check can say how bad that is, and nothing is vouched for."""

    @property
    def passed(self) -> bool:
        """Whether the rule looked and found nothing."""
        return self.was_run and not self.findings

    @property
    def is_unapplied(self) -> bool:
        """Whether the check could not be applied: neither passed nor failed."""
        return bool(self.findings) and self.findings[0].unapplied

    @property
    def is_not_run(self) -> bool:
        """Whether the check was left out here, and might pass or fail elsewhere."""
        return not self.was_run and not self.is_unapplied


def evidence_data(evidence: Evidence) -> Mapping[str, Any]:
    """Evidence as the journal keeps it."""
    data: Mapping[str, Any] = to_builtins(evidence)
    return data
