"""`tests_fail` and `tests_prove`: named tests are red when they should be, and for the right reason."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome, RuleCard
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import TESTS_FAIL, TESTS_PROVE
from handrail.rules.files.baseline import since_of
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import PathRefused, is_in, project_of
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome, unchecked_outcome
from handrail.rules.toolchain.comparing.lost_tests import function_of
from handrail.rules.toolchain.comparing.old_view import OldFiles, in_old_view, is_test_like, old_files
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.suite import TestSuite, tests_depend_on
from handrail.rules.toolchain.task import CannotRun, Result, Task
from handrail.rules.toolchain.toolchain_runner import NotStarted

ASSERTIONS: Final = frozenset({"AssertionError", "Failed", "failureException", "ComparisonFailure"})
NEVER_THE_BUG: Final = frozenset({"ImportError", "ModuleNotFoundError", "SyntaxError", "IndentationError", "TabError"})
"""Errors that say that the test itself can't be run, whatever is expected."""
RED: Final = frozenset({"failed", "errors"})
WRITE: Final = "name the test as the runner does, and let it assert what is wrong"


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
    expected = ASSERTIONS | ({name.rpartition(".")[2] for name in parameters.get("raises", ())} - NEVER_THE_BUG)
    findings = [one for name in parameters["tests"] for one in not_red(TESTS_FAIL, name, results, expected)]
    return concluded(TESTS_FAIL, findings, tasks, results)


async def _proving(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    runs = TestSuite(TESTS_PROVE, parameters, setting)
    found = await started(runs, setting)
    if isinstance(found, CheckOutcome):
        return found
    site, tasks = found
    try:
        old = await _source_before(parameters, setting)
    except GitUnavailable as error:
        return unchecked_outcome(TESTS_PROVE, str(error), error.fix)
    if not old.contents:
        message = "nothing but tests has changed, so there is no change that they could prove"
        return outcome(
            [found_at(TESTS_PROVE.name, "checks", message, "change the code first")], evidence_of(TESTS_PROVE)
        )
    results = [await runs.once(task, site) for task in tasks]
    if nameless := _nameless(TESTS_PROVE, tasks, results):
        return nameless
    findings = [one for name in parameters["tests"] for one in not_green(TESTS_PROVE, name, results)]
    if not findings:
        without = [in_old_view(task, old, site, setting) for task in tasks]
        if impossible := [one for one in without if isinstance(one, CannotRun)]:
            return unchecked_outcome(TESTS_PROVE, impossible[0].message, impossible[0].fix)
        before = [await runs.once(task, site) for task in without if isinstance(task, Task)]
        findings = [one for name in parameters["tests"] for one in _green_before(TESTS_PROVE, name, before)]
    return concluded(TESTS_PROVE, findings, tasks, results)


def _nameless(card: RuleCard, tasks: Sequence[Task], results: Sequence[Result]) -> CheckOutcome | None:
    """The outcome if tests ran and none of the runners says which."""
    if any(result.tests for result in results) or not any(result.counts.get("tests") for result in results):
        return None
    names = ", ".join(task.programs[0].name for task in tasks)
    message = f"{names} does not say which tests ran, so single tests can't be judged"
    return unchecked_outcome(card, message, "run the tests by a runner that names them: set `language` or `command`")


async def started(runs: TestSuite, setting: Setting) -> tuple[Site, list[Task]] | CheckOutcome:
    """Where and how the named tests are run; an outcome if that is not possible."""
    card = runs.card
    try:
        site, plan = await runs.plan(_narrowed(runs.parameters))
    except PathRefused as error:
        return unchecked_outcome(card, str(error), "name a path in the project")
    if impossible := [one for one in plan if isinstance(one, CannotRun)]:
        return unchecked_outcome(card, impossible[0].message, impossible[0].fix)
    if why_not := await setting.sandbox.trial():
        return CheckOutcome(findings=(runs.runner.unusable(why_not),))
    return site, [one for one in plan if isinstance(one, Task)]


def _narrowed(parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters, with the files of the tests as `paths` if their names have them."""
    files = [name.partition("::")[0] for name in parameters["tests"] if "::" in name]
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
        if _is_named(test, name)
    }


def _is_named(test: str, name: str) -> bool:
    """Whether a name stands for a test: in full, without its file or class, or without its case."""
    file, between, (function, slash, case) = *name.rpartition("::")[:2], name.rpartition("::")[2].partition("/")
    names = {name, f"{file}{between}{function}[{case}]"} if slash else {name}  # a case as Go writes it
    ends = tuple(f"{before}{one}" for one in names for before in ("::", ".", " "))
    return any(one in names or one.endswith(ends) for one in (test, function_of(test)))


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
        yield found_at(card.name, name, f"there is no test {name} among those that ran", WRITE)
        return
    red = {test: raised for test, (how, raised) in found.items() if how == "failed"}
    if not red:
        how = next(iter(found.values()))[0]
        word = {"errors": "does not get to its assertion"}.get(how, f"is {how}")
        yield found_at(card.name, name, f"{name} must fail, but {word}", WRITE)
        return
    wrong = next((raised for raised in red.values() if raised and raised not in expected), "")
    if wrong and not any(raised in expected for raised in red.values()):
        yield found_at(card.name, name, f"{name} fails with {wrong}, not at an assertion", WRITE)


def not_green(card: RuleCard, name: str, results: Sequence[Result]) -> Iterator[Finding]:
    """What is wrong with a test that must pass."""
    found = _outcomes(name, results)
    if not found:
        yield found_at(card.name, name, f"there is no test {name} among those that ran", WRITE)
    for test, (how, _) in found.items():
        if how != "passed":
            yield found_at(card.name, test, f"{test} must pass now, but is {how}", "make it pass")


def _green_before(card: RuleCard, name: str, before: Sequence[Result]) -> Iterator[Finding]:
    found = _outcomes(name, before)
    # A file that can't be imported without the change is red, too; but not if nothing ran at all.
    is_red = any(how in RED for how, _ in found.values()) or (not found and any(result.problems for result in before))
    if not is_red:
        message = f"{name} also passes without the change, so it does not prove it"
        yield found_at(card.name, name, message, "let the test check what the change is for")


def concluded(
    card: RuleCard, findings: Sequence[Finding], tasks: Sequence[Task], results: Sequence[Result]
) -> CheckOutcome:
    """The outcome of a rule about named tests, with what was run."""
    counts: dict[str, int] = {}
    for result in results:
        for name, count in result.counts.items():
            counts[name] = counts.get(name, 0) + count
    evidence = evidence_of(card, counts=counts)
    return outcome(findings, replace(evidence, ran=tasks[0].argv if tasks else ()))


async def _reads(parameters: Mapping[str, Any], setting: Setting) -> str:
    return await tests_depend_on({"since": "run", **parameters}, setting)


tests_fail: Final = FunctionRule(TESTS_FAIL, _apply_fail, _reads)
tests_prove: Final = FunctionRule(TESTS_PROVE, _apply_prove, _reads)
