"""Findings: what a check reports about a definition or a step's output.

Values only. The checks of definitions are in analysis/, the built-in checks of outputs in rules/."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct

Path: TypeAlias = tuple[str | int, ...]
"""Where a value is in a document: ("steps", 2, "after", 0)."""


class Severity(StrEnum):
    """How much a finding matters: critical and major block, minor is kept as a note."""

    CRITICAL = "critical"
    MAJOR = "major"
    MINOR = "minor"


BLOCKING: Final[Mapping[Severity, frozenset[Severity]]] = {
    Severity.CRITICAL: frozenset({Severity.CRITICAL}),
    Severity.MAJOR: frozenset({Severity.CRITICAL, Severity.MAJOR}),
    Severity.MINOR: frozenset(Severity),
}
"""For each bar that a step can set: which findings block."""


class FixedBy(StrEnum):
    """Who can fix what a finding says."""

    AGENT = "agent"
    """Who submitted the output: its refusal counts as a try."""
    PERSON = "person"
    """Who looks after this machine: a program, the sandbox or the repository is missing or broken."""
    AUTHOR = "author"
    """Who wrote the workflow or the rule."""


WHO: Final = {FixedBy.AGENT: "you", FixedBy.PERSON: "a person", FixedBy.AUTHOR: "the author"}
"""For a sentence to the agent."""


class Position(Struct, frozen=True):
    """A position in text, counted from 1, as editors do."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class Flaw(Struct, frozen=True, kw_only=True):
    """A finding before its place in the text is known; `line` and `column` count from 1 inside the value at `path`."""

    rule: str
    severity: Severity
    path: Path
    message: str
    fix: str = ""
    line: int = 1
    column: int = 1
    on_key: bool = False
    """Whether the key is wrong rather than its value."""


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One finding of a check: which rule, how severe, where, what is wrong and how to fix it."""

    rule: str
    severity: Severity
    where: str
    message: str
    fix: str = ""
    excerpt: str = ""
    """A few lines of the content in question."""
    at: Position | None = None
    unapplied: bool = False
    """Whether the check itself could not be applied: that says nothing about the output, good or bad."""
    fixed_by: FixedBy = FixedBy.AGENT

    def __str__(self) -> str:
        place = f"{self.at}: " if self.at else ""
        fix = f" ({self.fix})" if self.fix else ""
        return f"{place}{self.severity.value}: {self.where}: {self.message}{fix}"


def finding_without_text(flaw: Flaw) -> Finding:
    """The finding for a flaw in data without source text: it has a path but no line."""
    where = place(flaw.path)
    return Finding(rule=flaw.rule, severity=flaw.severity, where=where, message=flaw.message, fix=flaw.fix)


def blocks(findings: Iterable[Finding], bar: Severity = Severity.MAJOR) -> bool:
    """Whether any finding is at least as severe as the bar, so that what was checked is refused."""
    refused = BLOCKING[bar]
    return any(finding.severity in refused for finding in findings)


def place(path: Path) -> str:
    """A path as people write it: `steps[2].after[0]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "the document"


def finding_data(finding: Finding) -> Mapping[str, Any]:
    """A finding as it is stored in the journal."""
    data = {"rule": finding.rule, "severity": finding.severity.value, "where": finding.where}
    more = {"excerpt": finding.excerpt, "fixed_by": "" if finding.fixed_by is FixedBy.AGENT else finding.fixed_by.value}
    return {**data, "message": finding.message, "fix": finding.fix, **{key: text for key, text in more.items() if text}}
