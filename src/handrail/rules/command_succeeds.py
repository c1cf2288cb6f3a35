"""`command_succeeds`: a command given by the author ends with an expected exit code and output."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import PlannedCommand, Setting
from handrail.engine.sandbox import Ran
from handrail.rules.cards import COMMAND_SUCCEEDS as CARD
from handrail.rules.files.project import PathRefused, project_of
from handrail.rules.function_rule import FunctionRule, not_cached, not_checked
from handrail.rules.toolchain.parameters import VERSIONS, command_task, planned_commands
from handrail.rules.toolchain.reading import generic_result
from handrail.rules.toolchain.site import Site, site_at
from handrail.rules.toolchain.task import CannotRun, Problem, Result, Task
from handrail.rules.toolchain.toolchain_runner import ToolchainRunner

SHOWN_MAX: Final = 80

_runner = ToolchainRunner(CARD, VERSIONS, asks_versions=False)


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    try:
        site, plan = await asyncio.to_thread(_planned, parameters, setting)
    except PathRefused as error:
        return CheckOutcome(
            findings=(not_checked(CARD.name, str(error), "name a folder in the project", FixedBy.AGENT),)
        )
    return await _runner.run_all(plan, site, parameters, setting)


def _planned(parameters: Mapping[str, Any], setting: Setting) -> tuple[Site, Sequence[Task | CannotRun]]:
    site = site_at(project_of(setting), parameters.get("cwd", "."), lists=False)
    return site, [_task(parameters, site)]


async def _would(parameters: Mapping[str, Any], setting: Setting) -> Sequence[PlannedCommand]:
    return await asyncio.to_thread(planned_commands, _planned, parameters, setting)


def _task(parameters: Mapping[str, Any], site: Site) -> Task | CannotRun:
    task = command_task(site, parameters["argv"], parameters.get("env", {}), is_test=False)
    exits = tuple(parameters.get("expect", (0,)))
    wanted = parameters.get("stdout_contains", "")

    def read(ran: Ran) -> Result:
        if ran.exit not in exits:
            return Result(problems=generic_result(ran).problems)
        return Result() if wanted in ran.stdout else Result(problems=(_unsaid(wanted),))

    return (
        task if isinstance(task, CannotRun) else replace(task, read=read, exits=exits, fix="make the command succeed")
    )


def _unsaid(wanted: str) -> Problem:
    return Problem(message=f"`{wanted[:SHOWN_MAX]}` is not in its standard output")


# Never cached: it is unknown what a command depends on.
command_succeeds: Final = FunctionRule(CARD, _apply, not_cached, _would)
