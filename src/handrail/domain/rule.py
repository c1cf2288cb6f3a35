"""Rules: what a check applies to an output, as values and shapes. The rules themselves are in rules/. Pure.

A plain rule looks at values alone. One that reads files, runs commands or waits is the engine's to apply
(engine/rule.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeAlias

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


Rule: TypeAlias = Callable[[Mapping[str, Any], Given], Iterable[Finding]]
"""A plain rule: its parameters and what is given in, findings out. It does not raise, print, read files or wait."""
Rules: TypeAlias = Mapping[str, Rule]
"""The plain rules that can be applied, by name."""


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


class Outcome(Struct, frozen=True, kw_only=True):
    """What a rule came to."""

    findings: tuple[Finding, ...] = ()
    evidence: Evidence | None = None


def evidence_data(evidence: Evidence) -> Mapping[str, Any]:
    """Evidence as the journal keeps it."""
    data: Mapping[str, Any] = to_builtins(evidence)
    return data
