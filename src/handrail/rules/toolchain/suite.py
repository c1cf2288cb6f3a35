"""Runs the tests of a project for rules that look at single tests: now, or in an older state of the project."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome, RuleCard
from handrail.engine.checking.rule import Setting
from handrail.rules.files.baseline import STEP, is_compared, since_of, state_of
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import PathRefused, project_of
from handrail.rules.function_rule import bounded, found_at, not_checked
from handrail.rules.toolchain.comparing.emptied_tests import emptied, gone, renames
from handrail.rules.toolchain.comparing.lost_tests import losses, skipped_since
from handrail.rules.toolchain.comparing.old_view import OldFiles, in_view, old_files
from handrail.rules.toolchain.parameters import VERSIONS, depends_on, planned, planned_at
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Result, Task, TaskKind
from handrail.rules.toolchain.toolchain_runner import NotStarted, ToolchainRunner, bounds_of, time_ms

UNHEARD = "a test that must fail passes when it is put here: something in the project makes failures pass"
RESTORE_SETTINGS = "restore conftest.py, setup files, reporters and settings of the runner"
ALLOW = "fix what is missing, or set `kept: false` for this step"


@dataclass
class TestSuite:
    """The tests of one check: how they are run, and the result of each."""

    card: RuleCard
    parameters: Mapping[str, Any]
    setting: Setting

    def __post_init__(self) -> None:
        self.runner = ToolchainRunner(self.card, VERSIONS)
        self.results: list[Result] = []

    async def plan(self, parameters: Mapping[str, Any] | None = None) -> tuple[Site, Sequence[Task | CannotRun]]:
        """Where and how the tests are run; PathRefused if the check names something else."""
        return await asyncio.to_thread(planned, TaskKind.TEST, parameters or self.parameters, self.setting)

    async def now(self, site: Site, plan: Sequence[Task | CannotRun]) -> CheckOutcome:
        """The outcome of running all tests as they are; `results` has each test."""

        def seen(results: Sequence[Result]) -> tuple[list[Finding], dict[str, int]]:
            self.results = list(results)
            return [], {}

        return await self.runner.run_all(plan, site, self.parameters, self.setting, judged=seen)

    async def once(self, task: Task, site: Site) -> Result:
        """What became of each test of one command, whether or not all passed."""
        bounds = bounds_of(time_ms(self.card, self.parameters), network=False)
        return task.read(await self.runner.ran(task, site, self.setting, bounds=bounds))

    async def lost(self, site: Site, plan: Sequence[Task | CannotRun]) -> list[Finding]:
        """The tests that were lost since the step was given out; nothing is known about that without a run."""
        if not is_compared(self.setting) and "since" not in self.parameters:
            return []
        project = project_of(self.setting)
        try:
            since = since_of({"since": self.parameters.get("since", STEP)}, self.setting)
            old = await old_files(project, since)
        except GitUnavailable as error:
            return [not_checked(self.card.name, f"the tests can't be compared: {error}", ALLOW, error.by)]
        if not old.contents:
            return []
        findings = await self._compared(old, site, plan)
        lost = {one.where for one in findings}
        return [*await asyncio.to_thread(lambda: list(emptied(self.card, old, project, lost))), *findings]

    async def _compared(self, old: OldFiles, site: Site, plan: Sequence[Task | CannotRun]) -> list[Finding]:
        try:
            before = await self._tests_before(old, site)
            lost = await self._lost_since(old, before) or await self._gone(old, before)
            return [*lost, *await self._unheard(plan, site)]
        except NotStarted as error:
            return [error.finding]

    async def _gone(self, old: OldFiles, before: Mapping[str, str]) -> list[Finding]:
        """The tests that are gone from the sources, if none of that time could be run: a copy may lack something."""
        if before or not self.setting.sandbox.caveat:
            return []
        return await asyncio.to_thread(lambda: list(gone(self.card, old, project_of(self.setting))))

    async def _tests_before(self, old: OldFiles, site: Site) -> dict[str, str]:
        """The tests that the project's command of that time ran on the files of that time."""
        now = {test: how for result in self.results for test, how in result.tests.items()}
        then = await asyncio.to_thread(planned_at, TaskKind.TEST, self.parameters, site.then(old.contents))
        before: dict[str, str] = {}
        for task in then:
            if isinstance(task, Task):
                before |= await self._before(task, now, old, site)
        return before

    async def _lost_since(self, old: OldFiles, before: Mapping[str, str]) -> list[Finding]:
        """Those of them that did not run now."""
        now = {test: how for result in self.results for test, how in result.tests.items()}
        renamed = await asyncio.to_thread(renames, old, project_of(self.setting))
        return list(losses(self.card, before, now, renamed))

    async def _before(self, task: Task, now: Mapping[str, str], old: OldFiles, site: Site) -> dict[str, str]:
        listing = in_view(replace(task, argv=(*task.argv, *task.lists)), old, site, self.setting)
        before = dict((await self.once(listing, site)).tests)
        if task.lists and (doubtful := skipped_since(before, now)):
            # They were only listed: a test may have skipped itself before, too.
            ran = (await self.once(in_view(task, old, site, self.setting), site)).tests
            before |= {test: ran[test] for test in doubtful if test in ran}
        return before

    async def _unheard(self, plan: Sequence[Task | CannotRun], site: Site) -> list[Finding]:
        """The findings about canaries: tests that must fail, and that the project lets pass."""
        found: list[Finding] = []
        for task in plan:
            canary = task.canary if isinstance(task, Task) else None
            if not isinstance(task, Task) or canary is None:
                continue
            where = "/".join(filter(None, (site.cwd, task.folder, canary.path)))
            alone = replace(task, argv=canary.argv)
            running = in_view(alone, OldFiles({where: canary.text.encode()}), site, self.setting)
            if "passed" in _of_canary((await self.once(running, site)).tests):
                found.append(found_at(self.card.name, where, UNHEARD, RESTORE_SETTINGS))
        return found


def _of_canary(tests: Mapping[str, str]) -> list[str]:
    return [how for test, how in tests.items() if re.search("handrail.canary", test, re.IGNORECASE)]


def with_findings(outcome: CheckOutcome, findings: Sequence[Finding]) -> CheckOutcome:
    """The outcome with these findings in addition."""
    if not findings:
        return outcome
    every = bounded([*outcome.findings, *findings])
    evidence = replace(outcome.evidence, passed=False) if outcome.evidence is not None else None
    return CheckOutcome(findings=every, evidence=evidence)


async def tests_depend_on(parameters: Mapping[str, Any], setting: Setting) -> str:
    """The digest of everything that tests, and a comparison with an older state, depend on."""
    own = await depends_on(TaskKind.TEST, parameters, setting)
    if not own or (not is_compared(setting) and "since" not in parameters):
        return own
    try:
        since = since_of({"since": parameters.get("since", STEP)}, setting)
        return f"{own} {await state_of(project_of(setting), since)}"
    except (GitUnavailable, PathRefused):
        return ""
