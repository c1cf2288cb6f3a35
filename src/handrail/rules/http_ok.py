"""`http_ok`: an address answers as it should. How it is reached, and which may be, whoever makes the rule says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from handrail.domain.check import Finding
from handrail.domain.definition import Category
from handrail.domain.duration import duration_ms
from handrail.domain.rule import CheckOutcome
from handrail.engine.rule import RuleUnavailable, Setting
from handrail.engine.tool import ToolFailed
from handrail.rules.cards import HTTP_OK as CARD
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome, undone

Fetch: TypeAlias = Callable[[str, float], Awaitable[int]]
"""The status that an address answers a GET with, within so many seconds; ToolFailed, OSError if it does not."""

TIMEOUT: Final = "10s"
TIMEOUT_S_MAX: Final = 50.0
GOOD: Final = range(200, 300)
LASTING: Final = frozenset({Category.PERMISSION, Category.INVALID_INPUT, Category.NOT_FOUND})
"""Refusals that another try would not change."""


def http_ok(fetch: Fetch) -> FunctionRule:
    """The rule, with the way to the network that it may use."""

    async def apply(parameters: Mapping[str, Any], _setting: Setting) -> CheckOutcome:
        url, seconds = parameters["url"], duration_ms(parameters.get("timeout", TIMEOUT)) / 1_000
        try:
            status = await fetch(url, min(seconds, TIMEOUT_S_MAX))
        except ToolFailed as error:
            if error.category not in LASTING:
                raise RuleUnavailable(f"{_shown(url)} did not answer: {error.message}") from error
            return undone(CARD, error.message, "name an address that may be reached")
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
    return [found_at(CARD.name, _shown(url), message, "mend what answers there, then hand in again")]


def _shown(url: str) -> str:
    """An address without what may be secret in it."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.split('?')[0].split('#')[0].rpartition('@')[2]}"[:200]
