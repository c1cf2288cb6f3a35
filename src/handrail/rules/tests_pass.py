"""`tests_pass` and `tests_kept`: the project's own tests pass, run by its own runner, and none was lost for that."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, FixedBy
from handrail.domain.checks.rule import CheckOutcome, RuleCard
from handrail.engine.checking.rule import PlannedCommand, Setting
from handrail.rules.cards import TESTS_KEPT, TESTS_PASS
from handrail.rules.files.project import PathRefused
from handrail.rules.function_rule import FunctionRule, not_checked
from handrail.rules.toolchain.parameters import planned, planned_commands
from handrail.rules.toolchain.suite import TestSuite, tests_depend_on, with_findings
from handrail.rules.toolchain.task import TaskKind

NAMELESS: Final = "the runner does not say which tests ran, so that it is unknown which were lost"
NAME_THEM: Final = "run the tests by a runner that names them: set `language` or `command`"


async def _apply_pass(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    return await _applied(TESTS_PASS, parameters, setting, compares=parameters.get("kept", True))


async def _apply_kept(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    return await _applied(TESTS_KEPT, parameters, setting, compares=True)


async def _applied(card: RuleCard, parameters: Mapping[str, Any], setting: Setting, *, compares: bool) -> CheckOutcome:
    runs = TestSuite(card, parameters, setting)
    try:
        site, plan = await runs.plan()
    except PathRefused as error:
        return CheckOutcome(findings=(not_checked(card.name, str(error), "name a path in the project", FixedBy.AGENT),))
    outcome = await runs.now(site, plan)
    if outcome.findings or not compares:
        return outcome
    lost = [*_nameless(card, runs), *await runs.lost(site, plan)]
    found, seen = ([replace(one, rule=TESTS_KEPT.name) for one in every] for every in (lost, runs.remarks))
    return with_findings(outcome, found, seen)


def _nameless(card: RuleCard, runs: TestSuite) -> Sequence[Finding]:
    """For `tests_kept` alone, what is wrong if no runner says which tests ran."""
    is_known = card is not TESTS_KEPT or any(result.tests for result in runs.results)
    return [] if is_known else [not_checked(card.name, NAMELESS, NAME_THEM, FixedBy.AUTHOR)]


async def _would(parameters: Mapping[str, Any], setting: Setting) -> Sequence[PlannedCommand]:
    return await asyncio.to_thread(planned_commands, partial(planned, TaskKind.TEST), parameters, setting)


tests_pass: Final = FunctionRule(TESTS_PASS, _apply_pass, tests_depend_on, _would)
tests_kept: Final = FunctionRule(TESTS_KEPT, _apply_kept, tests_depend_on, _would)
