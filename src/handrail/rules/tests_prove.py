"""`tests_fail` and `tests_prove`: named tests are red when they should be, and for the right reason."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, FixedBy
from handrail.domain.checks.rule import CheckOutcome, RuleCard
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import TESTS_FAIL, TESTS_PROVE
from handrail.rules.files.baseline import since_of
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import PathRefused, is_in, project_of
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome, unchecked_outcome
from handrail.rules.toolchain.comparing.emptied_tests import SUFFIXES
from handrail.rules.toolchain.comparing.fixed_failures import always_fails
from handrail.rules.toolchain.comparing.lost_tests import function_of
from handrail.rules.toolchain.comparing.old_view import OldFiles, in_view, is_test_like, old_files
from handrail.rules.toolchain.comparing.test_names import file_of, is_named, nearest
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.suite import TestSuite, tests_depend_on
from handrail.rules.toolchain.task import CannotRun, Result, Task
from handrail.rules.toolchain.toolchain_runner import NotStarted

ASSERTIONS: Final = frozenset({"AssertionError", "Failed", "failureException", "ComparisonFailure"})
NEVER_THE_BUG: Final = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "TabError"})
"""Errors that say that the test itself can't be run, whatever is expected."""
NOT_YET: Final = (
    "let the test get to its assertion: what it imports must be there; if it tests new code, write that first without "
    "what it is to do"
)
FILES_MAX: Final = 2_000
"""How many files are searched for a test that the runner does not place."""
RED: Final = frozenset({"failed", "errors"})
UNCHANGED: Final = "nothing but tests has changed, so there is no change that they could prove"
ONLY_HERE: Final = "the tests pass in the project, but not in a copy of it, so that no other state can be tried"
NEEDS_SANDBOX: Final = "let them pass in a copy, or ask a person for the sandbox: `handrail doctor` says what it needs"
NAME_THEM: Final = "run the tests by a runner that names them: set `language` or `command`"
WRITE: Final = "let it assert what is wrong"
PROVE: Final = "let the test check what the change is for; if it is about something else, leave it out of the list"
NAME_IT: Final = "name the test as the runner does"


_unimportable = re.compile(rf"\b(?:{'|'.join(sorted(NEVER_THE_BUG))})\b")


async def _apply_fail(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    try:
        return await _failing(parameters, setting)
    except NotStarted as error:
        return CheckOutcome(findings=(error.finding,))


async def _apply_prove(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    try:
        return await _proving(parameters, setting)
    except NotStarted as error:
        return CheckOutcome(findings=(error.finding,))


async def _failing(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    runs = TestSuite(TESTS_FAIL, parameters, setting)
    found = await started(runs, setting)
    if isinstance(found, CheckOutcome):
        return found
    site, tasks = found
    results = [await runs.once(task, site) for task in tasks]
    if nameless := _nameless(TESTS_FAIL, tasks, results):
        return nameless
    findings = await asyncio.to_thread(_not_red_rightly, parameters, results, site)
    return concluded(TESTS_FAIL, findings, tasks, results, setting)


def _not_red_rightly(parameters: Mapping[str, Any], results: Sequence[Result], site: Site) -> list[Finding]:
    """What is wrong with tests that must fail: how they fail, and whether they could ever pass."""
    names = parameters["tests"]
    expected = ASSERTIONS | ({name.rpartition(".")[2] for name in parameters.get("raises", ())} - NEVER_THE_BUG)
    findings = [one for name in names for one in not_red(TESTS_FAIL, name, results, expected)]
    return findings or list(_fixed(names, results, site))


def _fixed(names: Sequence[str], results: Sequence[Result], site: Site) -> Iterator[Finding]:
    """The tests that are red whatever the code does, as far as their source shows it."""
    for name in names:
        red = [test for test, (how, _) in _outcomes(name, results).items() if how in RED]
        reasons = [reason for test in red for reason in _reasons(test, site)]
        if reasons and all(reasons):
            message = f"{name} fails whatever the code does: it {reasons[0]}"
            yield found_at(TESTS_FAIL.name, name, message, "let it call the code that is wrong, and assert the result")


def _reasons(test: str, site: Site) -> list[str]:
    """Why a test fails in any case, by each file that has it; empty texts for those in which it may pass."""
    file, between, _ = test.partition("::")
    names = [file] if between and site.has(file) else [name for name in site.files if is_test_like(name)]
    read = [name for name in names if name.endswith(SUFFIXES)][:FILES_MAX]
    found = (always_fails(name, site.text(name).encode(), test) for name in read)
    return [reason for reason in found if reason is not None]


async def _proving(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    runs = TestSuite(TESTS_PROVE, parameters, setting)
    found = await started(runs, setting)
    if isinstance(found, CheckOutcome):
        return found
    try:
        old = await _source_before(parameters, setting)
    except GitUnavailable as error:
        return unchecked_outcome(TESTS_PROVE, str(error), error.fix, error.by)
    if not old.contents:
        return outcome(
            [found_at(TESTS_PROVE.name, "checks", UNCHANGED, "change the code first")], evidence_of(TESTS_PROVE)
        )
    return await _proven(runs, *found, old)


async def _proven(runs: TestSuite, site: Site, tasks: Sequence[Task], old: OldFiles) -> CheckOutcome:
    names, setting = runs.parameters["tests"], runs.setting
    now = await green_now(runs, tasks, site, names)
    if isinstance(now, CheckOutcome):
        return now
    results, findings = now
    if nameless := _nameless(TESTS_PROVE, tasks, results):
        return nameless
    if not findings:
        before = [await runs.once(in_view(task, old, site, setting), site) for task in tasks]
        findings = [one for name in names for one in _green_before(TESTS_PROVE, name, before)]
    return concluded(TESTS_PROVE, findings, tasks, results, setting)


def _nameless(card: RuleCard, tasks: Sequence[Task], results: Sequence[Result]) -> CheckOutcome | None:
    """The outcome if tests ran and none of the runners says which."""
    if any(result.tests for result in results) or not any(result.counts.get("tests") for result in results):
        return None
    names = ", ".join(task.programs[0].name for task in tasks)
    message = f"{names} does not say which tests ran, so single tests can't be judged"
    return unchecked_outcome(card, message, NAME_THEM, FixedBy.AUTHOR)


async def started(runs: TestSuite, setting: Setting) -> tuple[Site, list[Task]] | CheckOutcome:
    """Where and how the named tests are run; an outcome if that is not possible."""
    card = runs.card
    try:
        site, plan = await runs.plan(_narrowed(runs.parameters))
    except PathRefused as error:
        return unchecked_outcome(card, str(error), "name a path in the project", FixedBy.AGENT)
    if impossible := [one for one in plan if isinstance(one, CannotRun)]:
        return unchecked_outcome(card, impossible[0].message, impossible[0].fix, impossible[0].fixed_by)
    if why_not := await setting.sandbox.trial():
        return CheckOutcome(findings=(runs.runner.unusable(why_not),))
    return site, [one for one in plan if isinstance(one, Task)]


async def green_now(
    runs: TestSuite, tasks: Sequence[Task], site: Site, names: Sequence[str]
) -> tuple[list[Result], list[Finding]] | CheckOutcome:
    """What became of the tests with the project as it is, and which of the named ones do not pass.

    They are run where the other state will be tried. Without a sandbox that is a copy: if they pass only in the project
    itself, a test that is red in the copy says nothing, and that is the outcome."""
    nothing = OldFiles({})
    results = [await runs.once(in_view(task, nothing, site, runs.setting), site) for task in tasks]
    findings = _all_not_green(runs.card, names, results)
    if findings and runs.setting.sandbox.caveat:
        here = [await runs.once(task, site) for task in tasks]
        if not _all_not_green(runs.card, names, here):
            return unchecked_outcome(runs.card, f"{ONLY_HERE}: {findings[0].message}", NEEDS_SANDBOX)
    return results, findings


def _all_not_green(card: RuleCard, names: Sequence[str], results: Sequence[Result]) -> list[Finding]:
    return [one for name in names for one in not_green(card, name, results)]


def _narrowed(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters, with the files of the tests as `paths` if their names have them."""
    files = [file for name in parameters["tests"] if (file := file_of(name))]
    if "paths" in parameters or "command" in parameters or len(files) < len(parameters["tests"]):
        return parameters
    return {**parameters, "paths": list(dict.fromkeys(files))}


async def _source_before(parameters: Mapping[str, Any], setting: Setting) -> OldFiles:
    """The files that have changed since the run started, as they were, without those that stay."""
    old = await old_files(project_of(setting), since_of(parameters, setting))
    keep = parameters.get("keep")
    kept = [path for path in old.contents if (is_in(path, keep) if keep is not None else is_test_like(path))]
    return old.without(kept)


def _outcomes(name: str, results: Sequence[Result]) -> dict[str, tuple[str, str]]:
    """What became of the tests of that name, and the kind of error: all cases of a function, if it names one."""
    return {
        test: (how, result.raised.get(test) or _raised(test, result))
        for result in results
        for test, how in result.tests.items()
        if is_named(test, name)
    }


def _raised(test: str, result: Result) -> str:
    """The kind of error of a failed test, from the problem that it was reported as."""
    named = ((one.message.partition(" fails")[0].strip(), one.raised) for one in result.problems if one.raised)
    return next((raised for name, raised in named if name and function_of(test).endswith(name)), "")


def not_red(
    card: RuleCard, name: str, results: Sequence[Result], expected: Collection[str] = ASSERTIONS
) -> Iterator[Finding]:
    """What is wrong with a test that must fail, at an assertion or with one of the expected errors."""
    found = _outcomes(name, results)
    if not found:
        yield _not_there(card, name, results)
        return
    red = [raised for how, raised in found.values() if how == "failed"]
    if not red:
        how = next(iter(found.values()))[0]
        word = {"errors": "does not get to its assertion"}.get(how, f"is {how}")
        yield found_at(card.name, name, f"{name} must fail, but {word}", WRITE)
    elif wrong := _wrong_error(red, expected):
        fix = NOT_YET if wrong in NEVER_THE_BUG else f"{WRITE}; an error that is the bug itself belongs into `raises`"
        yield found_at(card.name, name, f"{name} fails with {wrong}, not at an assertion", fix)


def _wrong_error(raised: Sequence[str], expected: Collection[str]) -> str:
    """The error with which all cases fail, if it is none of those that are expected."""
    if any(one in expected for one in raised):
        return ""
    return next(filter(None, raised), "")


def _not_there(card: RuleCard, name: str, results: Sequence[Result]) -> Finding:
    """The finding that a test did not run: because its file can't be imported, if that is so."""
    file = file_of(name) or name.rpartition(".")[0]
    problems = [one for result in results for one in result.problems if _unimportable.search(one.message)]
    broken = next((one for one in problems if file and file in one.message), None)
    if broken is None:
        return _unknown(card, name, results)
    return found_at(card.name, name, f"{name} can't be run: {broken.message}", NOT_YET, excerpt=broken.excerpt)


def _unknown(card: RuleCard, name: str, results: Sequence[Result]) -> Finding:
    near = nearest(name, (test for result in results for test in result.tests))
    fix = f"{NAME_IT}; the nearest that ran: {', '.join(near)}" if near else NAME_IT
    return found_at(card.name, name, f"there is no test {name} among those that ran", fix)


def not_green(card: RuleCard, name: str, results: Sequence[Result]) -> Iterator[Finding]:
    """What is wrong with a test that must pass."""
    found = _outcomes(name, results)
    if not found:
        yield _unknown(card, name, results)
    for test, (how, _) in found.items():
        if how != "passed":
            yield found_at(card.name, test, f"{test} must pass now, but is {how}", "make it pass")


def _green_before(card: RuleCard, name: str, before: Sequence[Result]) -> Iterator[Finding]:
    found = _outcomes(name, before)
    # A file that can't be imported without the change is red, too; but not if nothing ran at all.
    is_red = any(how in RED for how, _ in found.values()) or (not found and any(result.problems for result in before))
    if not is_red:
        message = f"{name} also passes without the change, so it does not prove it"
        yield found_at(card.name, name, message, PROVE)


def concluded(
    card: RuleCard, findings: Sequence[Finding], tasks: Sequence[Task], results: Sequence[Result], setting: Setting
) -> CheckOutcome:
    """The outcome of a rule about named tests, with what was run."""
    counts: dict[str, int] = {}
    for result in results:
        for name, count in result.counts.items():
            counts[name] = counts.get(name, 0) + count
    evidence = evidence_of(card, counts=counts)
    ran = tasks[0].argv if tasks else ()
    return outcome(findings, replace(evidence, ran=ran, caveat=setting.sandbox.caveat))


async def _reads(parameters: Mapping[str, Any], setting: Setting) -> str:
    return await tests_depend_on({"since": "run", **parameters}, setting)


tests_fail: Final = FunctionRule(TESTS_FAIL, _apply_fail, _reads)
tests_prove: Final = FunctionRule(TESTS_PROVE, _apply_prove, _reads)
