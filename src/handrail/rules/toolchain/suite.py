"""Runs the tests of a project for rules that look at single tests: now, or in an older state of the project."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Container, Mapping, Sequence
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
from handrail.rules.toolchain.comparing.emptied_tests import doubled, emptied, gone, renames
from handrail.rules.toolchain.comparing.hidden_failures import (
    TestSide,
    hidden,
    is_of_tests,
    less_demanding,
    own_modules,
    test_side,
    weakened,
)
from handrail.rules.toolchain.comparing.hiding import is_setting
from handrail.rules.toolchain.comparing.lost_tests import losses, skipped_since
from handrail.rules.toolchain.comparing.old_view import OldFiles, in_view, is_test_like, old_files, present_files
from handrail.rules.toolchain.comparing.product_questions import answered, right_only_if_tested
from handrail.rules.toolchain.comparing.whole_tests import COMMANDS, asserting, is_less, runners
from handrail.rules.toolchain.installed.altered import altered
from handrail.rules.toolchain.parameters import VERSIONS, depends_on, planned, planned_at
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import Canary, CanaryVerdict, CannotRun, Result, Task, TaskKind, heard_of
from handrail.rules.toolchain.toolchain_runner import NotStarted, ToolchainRunner, bounds_of, last_words, time_ms

UNHEARD = "a test that must fail passes when it is put here: something in the project makes failures pass"
UNSAID = "a test that must fail is not reported as failed when it is put here: something in the project hides it"
RESTORE_SETTINGS = "restore conftest.py, setup files, reporters and settings of the runner"
RESTORE_TESTS = "restore the tests and their command; if they had to change, ask for a step that allows it"
AS_THEY_WERE = "as the tests and their command were at the start, they fail now"
NOT_THAT = "let the tests import the product itself"
EDITED = "this file of the test runner is not as it was installed"
INSTALL_AGAIN = "install it again: python -m pip install --force-reinstall pytest pluggy"
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
        self._imported_before: dict[str, str] = {}
        self.remarks: list[Finding] = []
        """What a person should see, and refuses nothing."""

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
            return [not_checked(self.card.name, f"the tests can't be compared: {error}", error.fix or ALLOW, error.by)]
        if not old.contents:
            return []
        # Twice, in two ways: a test can be lost to the runner (renamed, skipped, left out by settings), or still run
        # and check nothing any more, which only its source shows.
        findings = await self._compared(old, site, plan)
        lost = {one.where for one in findings}
        return [*await asyncio.to_thread(self._less, old, lost), *findings]

    def _less(self, old: OldFiles, lost: Container[str]) -> list[Finding]:
        """The tests of which their sources show that they check less. Reads files."""
        project = project_of(self.setting)
        return [*emptied(self.card, old, project, lost), *doubled(self.card, old, project)]

    async def _compared(self, old: OldFiles, site: Site, plan: Sequence[Task | CannotRun]) -> list[Finding]:
        try:
            before = await self._tests_before(old, site)
            # A canary is run also if nothing was lost: settings that make failures pass lose no test.
            lost = await self._lost_since(old, before) or await self._gone(old, before)
            lost += [*self._imported_elsewhere(site), *await asyncio.to_thread(self._edited, plan)]
            unheard = await self._unheard(plan, site, old)
            return [*lost, *unheard] or await self._hidden(old, site, plan, before) or await self._as_a_whole(old, site)
        except NotStarted as error:
            return [error.finding]

    async def _hidden(
        self, old: OldFiles, site: Site, plan: Sequence[Task | CannotRun], before: Mapping[str, str]
    ) -> list[Finding]:
        """The failures that changes of the tests hide: seen by taking these changes out, in a view."""
        side, mine = await asyncio.to_thread(self._test_side, old, site)
        found = list(weakened(self.card, side))
        now = self._now()
        if side.suspects and not found:
            without = await self._tried(plan, site, old.only(side.hiding))
            found += hidden(self.card, side, now, without, before)
        if (side.changed or side.data or side.rebound) and not found:
            as_it_was = await self._tried(plan, site, old.only(mine))
            is_strict = self.parameters.get("expectations") == "kept"
            against, remarks = less_demanding(self.card, side, now, as_it_was, is_strict=is_strict)
            found += against
            self.remarks += remarks
        return found or await self._asking(old, site, plan)

    async def _asking(self, old: OldFiles, site: Site, plan: Sequence[Task | CannotRun]) -> list[Finding]:
        """The tests that pass only because the product knows that it is tested."""
        contents = await asyncio.to_thread(present_files, old, project_of(self.setting))
        product = answered(old, contents)
        if product is None:
            return []
        return list(right_only_if_tested(self.card, product, self._now(), await self._tried(plan, site, product.files)))

    async def _as_a_whole(self, old: OldFiles, site: Site) -> list[Finding]:
        """Commands that name no tests, so that none can be missed: whether those of the start, with the tests of the
        start, succeed on the product of now."""
        if not self.results or any(result.tests for result in self.results):
            return []
        side, mine = await asyncio.to_thread(self._test_side, old, site)
        named = runners(old, [site.text(one) for one in COMMANDS if site.has(one)])
        mine |= asserting(old) | named
        said = await self._failing_then(old.only(mine), site) if mine else ""
        if not said or await self._failing_then(old, site):
            return []  # it succeeds, or it failed at the start already
        found = replace(found_at(self.card.name, sorted(mine)[0], AS_THEY_WERE, RESTORE_TESTS), excerpt=said)
        if named or self._is_less(old, side, mine):
            return [found]
        self.remarks.append(found)
        return []

    def _is_less(self, old: OldFiles, side: TestSide, mine: Collection[str]) -> bool:
        """Whether tests without names are less than they were: steered otherwise, or with fewer values compared."""
        contents = present_files(old, project_of(self.setting))
        is_strict = self.parameters.get("expectations") == "kept"
        return is_strict or is_less(old, contents, mine) or bool(side.suspects) or any(map(is_setting, mine))

    async def _failing_then(self, old: OldFiles, site: Site) -> str:
        """How the commands of the start fail with these files as they were; empty if they succeed."""
        then = await asyncio.to_thread(planned_at, TaskKind.TEST, self.parameters, site.then(old.contents))
        bounds = bounds_of(time_ms(self.card, self.parameters))
        for task in then:
            if isinstance(task, Task):
                ran = await self.runner.ran(in_view(task, old, site, self.setting), site, self.setting, bounds=bounds)
                if ran.exit not in task.exits:
                    return last_words(ran) or f"exit {ran.exit}"
        return ""

    def _test_side(self, old: OldFiles, site: Site) -> tuple[TestSide, frozenset[str]]:
        """What has changed in tests and their settings, and in which files. Reads files."""
        contents = present_files(old, project_of(self.setting))
        mine = frozenset(path for path in old.contents if is_of_tests(path, old, contents))
        return test_side(old, contents, own_modules(site.files)), mine

    async def _tried(self, plan: Sequence[Task | CannotRun], site: Site, old: OldFiles) -> list[Result]:
        tasks = [task for task in plan if isinstance(task, Task)]
        return [await self.once(in_view(task, old, site, self.setting), site) for task in tasks]

    def _now(self) -> dict[str, str]:
        return {test: how for result in self.results for test, how in result.tests.items()}

    def _imported_elsewhere(self, site: Site) -> list[Finding]:
        """The modules of the product that the tests do not import from where they are any more."""
        now = {name: file for result in self.results for name, file in result.imported.items()}
        moved = ((name, was, now[name]) for name, was in self._imported_before.items() if now.get(name, was) != was)
        return [
            found_at(self.card.name, file, f"the tests import {name} from {file} now, and not from {was}", NOT_THAT)
            for name, was, file in moved
            if not is_test_like(was) and site.has(was)
        ]

    def _edited(self, plan: Sequence[Task | CannotRun]) -> list[Finding]:
        """The finding that what runs the tests was edited after it was installed. Reads files."""
        tasks = [task for task in plan if isinstance(task, Task)]
        file = altered(dict.fromkeys(place for task in tasks for one in task.programs for place in one.needs))
        return [] if file is None else [found_at(self.card.name, str(file), EDITED, INSTALL_AGAIN)]

    async def _gone(self, old: OldFiles, before: Mapping[str, str]) -> list[Finding]:
        """The tests that are gone from the sources, if none of that time could be run: a copy may lack something."""
        if before or not self.setting.sandbox.caveat:
            return []
        return await asyncio.to_thread(lambda: list(gone(self.card, old, project_of(self.setting))))

    async def _tests_before(self, old: OldFiles, site: Site) -> dict[str, str]:
        """The tests that the project's command of that time ran on the files of that time."""
        now = self._now()
        # By the settings of that time, too: the settings of now may be what leaves the tests out.
        then = await asyncio.to_thread(planned_at, TaskKind.TEST, self.parameters, site.then(old.contents))
        before: dict[str, str] = {}
        for task in then:
            if isinstance(task, Task):
                before |= await self._before(task, now, old, site)
        return before

    async def _lost_since(self, old: OldFiles, before: Mapping[str, str]) -> list[Finding]:
        """Those of them that did not run now."""
        now = self._now()
        renamed = await asyncio.to_thread(renames, old, project_of(self.setting))
        return list(losses(self.card, before, now, renamed, renamed.titles))

    async def _before(self, task: Task, now: Mapping[str, str], old: OldFiles, site: Site) -> dict[str, str]:
        # Listing is enough in most cases, and much faster than running all tests twice.
        listing = in_view(replace(task, argv=(*task.argv, *task.lists)), old, site, self.setting)
        listed = await self.once(listing, site)
        self._imported_before |= listed.imported
        before = dict(listed.tests)
        if task.lists and (doubtful := skipped_since(before, now)):
            # They were only listed: a test may have skipped itself before, too.
            ran = (await self.once(in_view(task, old, site, self.setting), site)).tests
            before |= {test: ran[test] for test in doubtful if test in ran}
        return before

    async def _unheard(self, plan: Sequence[Task | CannotRun], site: Site, old: OldFiles) -> list[Finding]:
        """The findings about canaries: tests whose outcome is known, and that the project lets end otherwise."""
        found: list[Finding] = []
        for task in plan:
            if isinstance(task, Task) and task.canary is not None and (words := await self._unsaid(task, site, old)):
                where = "/".join(filter(None, (site.cwd, task.folder)))
                found.append(found_at(self.card.name, where or "checks", words, RESTORE_SETTINGS))
        return found

    async def _unsaid(self, task: Task, site: Site, old: OldFiles) -> str:
        """What is wrong with what the canary of one command says; empty if nothing is known to be wrong."""
        canary = task.canary
        if canary is None:
            return ""
        own = {"/".join(filter(None, (site.cwd, task.folder, canary.path))): canary.text.encode()}
        alone = replace(task, argv=canary.argv)
        heard = await self._heard(alone, canary, OldFiles(own), site)
        if heard is CanaryVerdict.NOTHING and old.contents:
            # It may not be possible to put a test here at all: then nothing was reported at the start, either.
            then = await self._heard(alone, canary, old.with_files(own), site)
            heard = CanaryVerdict.HIDDEN if then is CanaryVerdict.RIGHT else heard
        return {CanaryVerdict.PASSED: UNHEARD, CanaryVerdict.HIDDEN: UNSAID}.get(heard, "")

    async def _heard(self, task: Task, canary: Canary, files: OldFiles, site: Site) -> CanaryVerdict:
        return heard_of(canary, (await self.once(in_view(task, files, site, self.setting), site)).tests)


def with_findings(outcome: CheckOutcome, findings: Sequence[Finding], remarks: Sequence[Finding] = ()) -> CheckOutcome:
    """The outcome with these findings in addition, and with remarks that refuse nothing."""
    outcome = replace(outcome, remarks=(*outcome.remarks, *bounded(remarks)))
    if not findings:
        return outcome
    every = bounded([*outcome.findings, *findings])
    # The evidence says what ran. It must not say that the check passed, now that something speaks against it.
    evidence = replace(outcome.evidence, passed=False) if outcome.evidence is not None else None
    return CheckOutcome(findings=every, evidence=evidence, remarks=outcome.remarks)


async def tests_depend_on(parameters: Mapping[str, Any], setting: Setting) -> str:
    """The digest of everything that tests, and a comparison with an older state, depend on."""
    own = await depends_on(TaskKind.TEST, parameters, setting)
    if not own or (not is_compared(setting) and "since" not in parameters):
        return own
    try:
        since = since_of({"since": parameters.get("since", STEP)}, setting)
        # The other side of the comparison is part of the key: the same files may be compared with another start.
        return f"{own} {await state_of(project_of(setting), since)}"
    except (GitUnavailable, PathRefused):
        return ""
