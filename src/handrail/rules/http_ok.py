"""`http_ok`: a URL answers with an expected status. The caller provides the function that fetches it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from handrail.domain.checks.finding import Finding, FixedBy
from handrail.domain.checks.rule import CheckOutcome
from handrail.domain.definition.duration import duration_ms
from handrail.domain.definition.model import Category
from handrail.engine.checking.rule import RuleUnavailable, Setting
from handrail.engine.tool import ToolFailed
from handrail.rules.cards import HTTP_OK as CARD
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome, unchecked_outcome

Fetch: TypeAlias = Callable[[str, float], Awaitable[int]]
"""Returns the status of a GET of a URL within a number of seconds; raises ToolFailed or OSError if there is none."""

TIMEOUT: Final = "10s"
TIMEOUT_S_MAX: Final = 50.0
GOOD: Final = range(200, 300)
LASTING: Final = frozenset({Category.PERMISSION, Category.INVALID_INPUT, Category.NOT_FOUND})
"""Errors that a retry would not change."""


def http_ok(fetch: Fetch) -> FunctionRule:
    """The rule, with the function that it may use to reach the network."""

    async def apply(parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        url, seconds = parameters["url"], duration_ms(parameters.get("timeout", TIMEOUT)) / 1_000
        try:
            status = await fetch(url, min(seconds, TIMEOUT_S_MAX))
        except ToolFailed as error:
            if error.category not in LASTING:
                raise RuleUnavailable(f"{_shown(url)} did not answer: {error.message}") from error
            return unchecked_outcome(CARD, error.message, "name a URL that may be reached", FixedBy.AGENT)
        except (OSError, TimeoutError) as error:
            raise RuleUnavailable(f"{_shown(url)} did not answer: {error}") from error
        findings = _findings(url, status, parameters.get("expect", GOOD))
        return outcome(findings, evidence_of(CARD, counts={"status": status}))

    return FunctionRule(CARD, apply)


def _findings(url: str, status: int, expected: Sequence[int]) -> list[Finding]:
    if status in expected:
        return []
    wanted = "200 to 299" if expected is GOOD else ", ".join(map(str, expected))
    message = f"{_shown(url)} answered {status}, not {wanted}"
    return [found_at(CARD.name, _shown(url), message, "fix the server, then submit again")]


def _shown(url: str) -> str:
    """A URL without the parts that may contain secrets."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('?')[0].split('#')[0].rpartition('@')[2]}"[:200]
