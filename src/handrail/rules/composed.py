"""Rules made of rules, as the gate applies them: `all_of`, `any_of`, `none_of`. What stands inside may wait.

The same over plain rules alone, without waiting, is composition.py's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from handrail.domain.check import Finding
from handrail.domain.rule import Outcome, RuleCard
from handrail.engine.rule import Setting
from handrail.rules.subject import finding

CHECKS: Final = {
    "type": "array",
    "minItems": 1,
    "maxItems": 50,
    "items": {"type": "object", "required": ["rule"], "properties": {"rule": {"type": "string"}}},
}

Named: TypeAlias = tuple[str, Outcome]
Verdict: TypeAlias = Callable[[Sequence[Named], Mapping[str, Any]], Iterable[Finding]]


@dataclass(frozen=True)
class ComposedRule:
    """A rule that puts together what others find."""

    card: RuleCard
    verdict: Verdict

    async def apply(self, parameters: Mapping[str, Any], setting: Setting) -> Outcome:
        """What the checks inside come to, together."""
        checks = parameters["checks"]
        found = await asyncio.gather(*(setting.nested(check) for check in checks))
        named = [
            (str(check["rule"]), outcome) for check, outcome in zip(checks, found, strict=True) if outcome is not None
        ]
        return Outcome(findings=tuple(self.verdict(named, parameters)))

    async def inputs(self, parameters: Mapping[str, Any], setting: Setting) -> str:
        """Those inside remember for themselves."""
        return ""


def _all_of(named: Sequence[Named], _parameters: Mapping[str, Any]) -> Iterable[Finding]:
    return [found for _, outcome in named for found in outcome.findings]


def _any_of(named: Sequence[Named], parameters: Mapping[str, Any]) -> Iterable[Finding]:
    if not named or any(not outcome.findings for _, outcome in named):
        return []
    names = ", ".join(name for name, _ in named)
    return [finding("any_of", parameters, f"none of these passes: {names}", named[0][1].findings[0].fix)]


def _none_of(named: Sequence[Named], parameters: Mapping[str, Any]) -> Iterable[Finding]:
    for name, outcome in named:
        if not outcome.findings:
            yield finding("none_of", parameters, f"`{name}` passes, and must not", "take it out")
        elif outcome.findings[0].where.startswith("checks"):
            yield outcome.findings[0]  # it did not fail: it could not be applied


def _card(name: str, summary: str) -> RuleCard:
    inside = [
        {"rule": "file_exists", "path": "CHANGELOG.md"},
        {"rule": "contains", "of": "summary", "text": "changelog"},
    ]
    return RuleCard(
        name=name,
        summary=summary,
        parameters={"checks": CHECKS},
        required=("checks",),
        timeout="1h",
        example={"checks": inside},
    )


COMPOSED: Final = (
    ComposedRule(_card("all_of", "Each of `checks` passes."), _all_of),
    ComposedRule(_card("any_of", "At least one of `checks` passes."), _any_of),
    ComposedRule(_card("none_of", "None of `checks` passes."), _none_of),
)
