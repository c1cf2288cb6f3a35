"""Rules: the types that describe a rule, its card, its outcome and its evidence. Pure.

The rules themselves are in rules/. A plain rule reads only values. Rules that read files, run commands or wait are
applied by the engine (protocol in engine/checking/rule.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, TypeAlias

from msgspec import Struct, field, to_builtins

from handrail.domain.checks.finding import Finding
from handrail.domain.definition.duration import DURATION_PATTERN
from handrail.domain.json import Json

SchemaJudge: TypeAlias = Callable[[Any, Any], Sequence[Finding]]
"""Returns what is wrong with a value according to a JSON Schema."""


class Given(Struct, frozen=True, kw_only=True):
    """What a rule may read: the output, expressions evaluated over the run, and a schema check."""

    output: Json
    evaluate: Callable[[str], Json]
    fits: SchemaJudge


Find: TypeAlias = Callable[[Mapping[str, Any], Given], Iterable[Finding]]
"""A plain rule: takes its parameters and what it may read, returns findings. It does not raise, print, read or wait."""


class Reads(StrEnum):
    """What a rule reads besides its parameters."""

    OUTPUT = "output"
    PROJECT = "project"
    NETWORK = "network"


class LooksAt(StrEnum):
    """What a rule looks at: the world, or only the words that were submitted."""

    WORLD = "world"
    WORDS = "words"


class RuleCard(Struct, frozen=True, kw_only=True):
    """The description of a rule, given by the rule itself."""

    name: str
    summary: str
    """What is true if the rule finds nothing, in one sentence."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of each parameter, by name."""
    required: tuple[str, ...] = ()
    reads: Reads = Reads.OUTPUT
    version: str = "1.0.0"
    """SemVer. Cached outcomes of another version are not reused."""
    origin: str = "built in"
    """The package that provides it."""
    timeout: str = "60s"
    example: Mapping[str, Any] = field(default_factory=dict)
    """Parameters as an author would write them."""

    @property
    def looks_at(self) -> LooksAt:
        """Whether a pass says something about the world; the form of an output proves nothing about it."""
        return LooksAt.WORDS if self.reads is Reads.OUTPUT else LooksAt.WORLD


class PlainRule(Struct, frozen=True):
    """A rule that reads only values."""

    card: RuleCard
    find: Find


Rules: TypeAlias = Mapping[str, PlainRule]
"""The plain rules that can be applied, by name."""

SHARED: Final[Mapping[str, Any]] = {
    "of": {"type": "string", "maxLength": 1_000},
    "timeout": {"type": "string", "maxLength": 20, "pattern": DURATION_PATTERN},
}
"""The schemas of the parameters that every rule accepts."""
OF_CHECK: Final = frozenset({"rule", "when", "severity", "message"})
"""The keys of a written check that are not parameters of its rule."""


def subject_name(parameters: Mapping[str, Any]) -> str:
    """The name of what a check reads: the output, or the part of it that `of` names."""
    of = str(parameters.get("of", ""))
    return f"output.{of}" if of and not of.startswith("[") else f"output{of}"


def parameters_of(check: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a check that is written inside another."""
    return {name: value for name, value in check.items() if name not in OF_CHECK}


def parameters_schema(card: RuleCard) -> Mapping[str, Any]:
    """The JSON Schema of the parameters that a check with this rule accepts."""
    return {
        "type": "object",
        "properties": {**card.parameters, **SHARED},
        "required": list(card.required),
        "additionalProperties": False,
    }


class Evidence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a check: what ran, on which inputs, and its result."""

    rule: str
    version: str
    passed: bool
    ran: tuple[str, ...] = ()
    """The command, if it ran one."""
    digest: str = ""
    """The digest of everything that it read."""
    tree: str = ""
    """The digest of the project's files at that time, if it read the project."""
    exit: int | None = None
    took: int = 0
    """Milliseconds."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """The versions of the programs that were used."""
    chosen: Mapping[str, str] = field(default_factory=dict)
    """By program: where it is, and why it was chosen."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counts such as tests, failures, warnings, lines."""
    excerpt: str = ""
    caveat: str = ""
    """What is weaker about it than usual: its commands ran without a sandbox."""
    cached: bool = False
    """Whether the outcome was reused from an earlier run on identical inputs."""
    looks_at: LooksAt = LooksAt.WORDS
    """What the rule looked at, or those of its parts that decided; journals written before do not say."""
    is_settled: bool = True
    """Whether identical inputs give the same outcome again; not if a program was missing or the rule crashed."""


class CheckOutcome(Struct, frozen=True, kw_only=True):
    """The result of one check: it passed, failed, could not be applied, or was not run."""

    findings: tuple[Finding, ...] = ()
    evidence: Evidence | None = None
    was_run: bool = True
    """Whether the rule was run at all. If not, the severity of the check does not apply, and nothing is verified."""
    is_note: bool = False
    """Whether there was nothing to judge, such as a project without a linter: it was not run, and blocks nothing."""
    looks_at: LooksAt = LooksAt.WORDS
    """What the rule looked at, or those of its parts that decided."""
    remarks: tuple[Finding, ...] = ()
    """What a person should see although it refuses nothing: minor, whatever the severity of the check."""

    @property
    def passed(self) -> bool:
        """Whether the rule was run and found nothing."""
        return self.was_run and not self.findings

    @property
    def is_unapplied(self) -> bool:
        """Whether the check could not be applied, so that it neither passed nor failed."""
        return bool(self.findings) and self.findings[0].unapplied

    @property
    def is_not_run(self) -> bool:
        """Whether the check was left out here; elsewhere it might pass or fail."""
        return not self.was_run and not self.is_unapplied


def looked_at(evidence: Mapping[str, Any]) -> LooksAt:
    """What a check looked at, by its stored evidence; if older evidence has a digest or a command, it was the world."""
    is_of_world = any(evidence.get(key) for key in ("tree", "digest", "ran"))
    return LooksAt(evidence.get("looks_at") or (LooksAt.WORLD if is_of_world else LooksAt.WORDS))


def evidence_data(evidence: Evidence) -> Mapping[str, Any]:
    """Evidence as it is stored in the journal."""
    data: Mapping[str, Any] = to_builtins(evidence)
    return data
