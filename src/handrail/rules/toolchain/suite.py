"""Runs the tests of a project for rules that look at single tests: now, or in an older state of the project."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome, RuleCard
from handrail.engine.checking.rule import Setting
from handrail.rules.files.baseline import STEP, since_of, state_of
from handrail.rules.files.git import GitUnavailable
from handrail.rules.files.project import PathRefused, project_of
from handrail.rules.function_rule import bounded, not_checked
from handrail.rules.toolchain.lost_tests import emptied, losses, skipped_since
from handrail.rules.toolchain.old_view import OldFiles, in_old_view, old_files
from handrail.rules.toolchain.parameters import VERSIONS, depends_on, planned
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Result, Task, TaskKind
from handrail.rules.toolchain.toolchain_runner import NotStarted, ToolchainRunner, bounds_of, time_ms

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
        if self.setting.baselines.run is None and "since" not in self.parameters:
            return []
        since = since_of({"since": self.parameters.get("since", STEP)}, self.setting)
        project = project_of(self.setting)
        try:
            old = await old_files(project, since)
        except GitUnavailable as error:
            return [not_checked(self.card.name, f"the tests can't be compared: {error}", ALLOW)]
        if not old.concerns_tests:
            return []
        findings = await asyncio.to_thread(lambda: list(emptied(self.card, old, project)))
        return [*findings, *await self._lost_since(old, site, [one for one in plan if isinstance(one, Task)])]

    async def _lost_since(self, old: OldFiles, site: Site, tasks: Sequence[Task]) -> list[Finding]:
        findings: list[Finding] = []
        try:
            for task, result in zip(tasks, self.results, strict=False):
                findings += await self._lost_of(task, result.tests, old, site)
        except NotStarted as error:
            findings.append(error.finding)
        return findings

    async def _lost_of(self, task: Task, now: Mapping[str, str], old: OldFiles, site: Site) -> list[Finding]:
        if not now:
            return []  # this runner does not name its tests
        listing = in_old_view(replace(task, argv=(*task.argv, *task.lists)), old, site, self.setting)
        if isinstance(listing, CannotRun):
            return []
        before = dict((await self.once(listing, site)).tests)
        if task.lists and (doubtful := skipped_since(before, now)):
            # They were only listed: a test may have skipped itself before, too.
            running = in_old_view(task, old, site, self.setting)
            ran = (await self.once(running, site)).tests if isinstance(running, Task) else {}
            before |= {test: ran[test] for test in doubtful if test in ran}
        return list(losses(self.card, before, now))


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
    if not own or (setting.baselines.run is None and "since" not in parameters):
        return own
    try:
        since = since_of({"since": parameters.get("since", STEP)}, setting)
        return f"{own} {await state_of(project_of(setting), since)}"
    except (GitUnavailable, PathRefused):
        return ""
