"""`tests_notice`: named tests turn red when the product is broken where they should notice. It is broken in a copy."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import TESTS_NOTICE as CARD
from handrail.rules.files.project import PathRefused, ProjectFiles, project_of
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome
from handrail.rules.tests_prove import concluded, green_now, not_red, started
from handrail.rules.toolchain.comparing.old_view import OldFiles, in_view, is_test_like
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.suite import TestSuite, tests_depend_on
from handrail.rules.toolchain.task import Task
from handrail.rules.toolchain.toolchain_runner import NotStarted

BREAK: Final = "name a string that is in the file exactly once, and another string that changes what the code does"


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    try:
        return await _noticing(parameters, setting)
    except NotStarted as error:
        return CheckOutcome(findings=(error.finding,))


async def _noticing(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    breaks: Sequence[Mapping[str, str]] = parameters["breaks"]
    broken = await asyncio.to_thread(lambda: [_broken(one, project_of(setting)) for one in breaks])
    if wrong := [one for one in broken if isinstance(one, Finding)]:
        return outcome(wrong, evidence_of(CARD))
    names = list(dict.fromkeys(one["test"] for one in breaks))
    runs = TestSuite(CARD, {**parameters, "tests": names}, setting)
    ready = await started(runs, setting)
    if isinstance(ready, CheckOutcome):
        return ready
    views = [files for files in broken if isinstance(files, OldFiles)]
    return await _noticed(runs, *ready, views)


async def _noticed(runs: TestSuite, site: Site, tasks: Sequence[Task], broken: Sequence[OldFiles]) -> CheckOutcome:
    now = await green_now(runs, tasks, site, runs.parameters["tests"])
    if isinstance(now, CheckOutcome):
        return now
    results, findings = now
    for one, files in zip(runs.parameters["breaks"], broken, strict=True):
        if findings:
            break  # what is red already can't notice anything
        after = [await runs.once(in_view(task, files, site, runs.setting), site) for task in tasks]
        findings += [_unnoticed(one, found) for found in not_red(CARD, one["test"], after)]
    return concluded(CARD, findings, tasks, results, runs.setting)


def _broken(one: Mapping[str, str], project: ProjectFiles) -> OldFiles | Finding:
    """The file as it is when it is broken; a finding if it can't be broken like that."""
    file, old = one["file"], one["old"].encode()
    if is_test_like(file):
        return found_at(CARD.name, file, f"{file} belongs to the tests; the product must be broken", BREAK)
    try:
        content = project.read(file)
    except PathRefused as error:
        return found_at(CARD.name, file, str(error), BREAK)
    if (count := content.count(old)) != 1:
        return found_at(CARD.name, file, f"{one['old']!r} is {count} times in {file}, not once", BREAK)
    if one["old"].split() == one["new"].split():
        return found_at(CARD.name, file, f"{one['old']!r} and {one['new']!r} are the same", BREAK)
    return OldFiles({file: content.replace(old, one["new"].encode())})


def _unnoticed(one: Mapping[str, str], found: Finding) -> Finding:
    message = f"with {one['new']!r} instead of {one['old']!r} in {one['file']}: {found.message}"
    return found_at(
        CARD.name, one["test"], message, "let the test assert what the break changes, or break it elsewhere"
    )


async def _reads(parameters: Mapping[str, Any], setting: Setting) -> str:
    return await tests_depend_on({"since": "run", **parameters}, setting)


tests_notice: Final = FunctionRule(CARD, _apply, _reads)
