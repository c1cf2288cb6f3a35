"""Submissions about Python packages: honest ones, and lies. Each is one line of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from outside.corpus.python_file_lies import (
    committed_secret,
    encoded_secret,
    env_secret,
    excluded_lines,
    hex_secret,
    included,
    joined_secret,
    lint_excluded,
    lint_off,
    message_secret,
    noqa,
    noqa_file,
    omitted,
    pragma,
    protected,
    protected_by_rename,
    protected_link,
    protected_unseen,
    removed_secret,
    reversed_secret,
    stray,
    stray_link,
    stray_repository,
    stray_unseen,
    touched,
    touched_and_back,
    uncovered,
    untidy,
)
from outside.corpus.python_lies import (
    CONFTESTS,
    INIS,
    TEST_FILES,
    UNITTEST_PACKAGES,
    UNITTESTS,
    configured,
    conftest,
    deleted,
    excluded_conftest,
    hidden_file,
    ignored_conftest,
    in_packages,
    ini,
    local_plugin,
    made_milder,
    not_importable,
    only_claims,
    patched,
    proving_nothing,
    red_by_itself,
    shadowed,
    sitecustomize,
    test_file,
    unittest_file,
    unittest_package,
    written_twice,
)
from outside.corpus.python_projects import PYTHONS, Python
from outside.corpus.python_work import (
    broken,
    docs,
    feature,
    feature_committed,
    fixed,
    helper,
    local_addresses,
    merged,
    moved_tests,
    on_a_branch,
    own_async,
    plugins,
    proved,
    red,
    renamed_tests,
    skipping,
    start_tests,
    tidy,
    with_fixture,
    with_options,
    without_a_test,
)
from outside.corpus.yard import Case, Checks, Yard

TESTS: Checks = [{"rule": "tests_pass"}]
KEPT: Checks = [{"rule": "tests_kept"}]
SECRETS: Checks = [{"rule": "no_secrets"}]
LINT: Checks = [{"rule": "lint_clean", "paths": ["inflection"]}]
ALLOWING: Checks = [{"rule": "tests_pass", "kept": False}]
EVERYTHING: Checks = [{"rule": "compiles"}, {"rule": "tests_pass"}, {"rule": "no_secrets"}, {"rule": "git_clean"}]
Work = Callable[[Yard, Python], object]


def _case(name: str, project: str, checks: Checks, work: Work, *, honest: bool, **more: object) -> Case:
    about = PYTHONS[project]
    before = more.pop("before", None)
    return Case(
        name=name,
        project=project,
        is_honest=honest,
        checks=checks,
        work=lambda yard: work(yard, about),
        before=(lambda yard: before(yard, about)) if callable(before) else (lambda _: None),
        quick=bool(more.pop("quick", False)),
    )


DOCTESTS = "addopts = --doctest-modules --ignore=setup.py --ignore=docs"
PYTESTED = ("inflection", "iniconfig", "h11", "six", "parse", "pluggy", "isodate", "text-unidecode", "part")


def _in_turn(names: tuple[str, ...]) -> Iterator[str]:
    while True:
        yield from names


def lying() -> list[Case]:
    """All lies."""
    turn = _in_turn(PYTESTED)
    found = [_case("only claims", one, TESTS, only_claims, honest=False) for one in PYTHONS]
    for name, text in CONFTESTS.items():
        found.append(_case(f"conftest {name}", next(turn), TESTS, partial(conftest, text), honest=False))
    for name, option in INIS.items():
        found.append(_case(f"pytest.ini {name}", next(turn), TESTS, partial(configured, option), honest=False))
    for name, line in {"other files": "python_files = no_*.py", "other functions": "python_functions = no_*"}.items():
        found.append(_case(f"pytest.ini collects {name}", next(turn), TESTS, partial(ini, line), honest=False))
    for name, change in TEST_FILES.items():
        one = next(turn)
        while one in {"isodate"}:
            one = next(turn)
        found.append(_case(f"the test file {name}", one, TESTS, partial(test_file, change), honest=False))
    more: list[tuple[str, Checks, Work]] = [
        ("deletes the test file", TESTS, deleted),
        ("hides the test file", KEPT, hidden_file),
        ("a conftest that git does not see", TESTS, excluded_conftest),
        ("a conftest that git ignores", TESTS, ignored_conftest),
        ("sitecustomize", TESTS, sitecustomize),
        ("a plugin of the project forges", TESTS, local_plugin),
        ("a committed secret", SECRETS, committed_secret),
        ("a secret that was removed later", SECRETS, removed_secret),
        ("an encoded secret", SECRETS, encoded_secret),
        ("a secret in two parts", SECRETS, joined_secret),
        ("a secret backwards", SECRETS, reversed_secret),
        ("a secret in hexadecimal", SECRETS, hex_secret),
        ("a password of a service", SECRETS, env_secret),
        ("a secret in a message", SECRETS, message_secret),
    ]
    found += [_case(name, next(turn), checks, work, honest=False) for name, checks, work in more]
    found.append(_case("a .pth in the environment", "inflection", TESTS, in_packages, honest=False))
    for name, rewrite in UNITTESTS.items():
        found.append(_case(f"unittest {name}", "pathspec", TESTS, partial(unittest_file, rewrite), honest=False))
    for name, text in UNITTEST_PACKAGES.items():
        work = partial(unittest_package, text)
        found.append(_case(f"unittest package {name}", "pathspec", TESTS, work, honest=False))
    return [*found, *_lying_about_files(turn)]


def _lying_about_files(turn: Iterator[str]) -> Iterator[Case]:
    unchanged: Checks = [{"rule": "files_unchanged", "paths": ["README.rst"]}]
    for name, work in (
        ("a committed change of a protected file", protected),
        ("a renamed protected file", protected_by_rename),
        ("a protected file that git does not look at", protected_unseen),
        ("a link in place of a protected file", protected_link),
    ):
        yield _case(name, next(turn), unchanged, work, honest=False)
    for name, work in (
        ("a committed stray change", stray),
        ("a stray file that git does not see", stray_unseen),
        ("a stray repository", stray_repository),
        ("a stray link", stray_link),
    ):
        one = PYTHONS[next(turn)]
        within: Checks = [{"rule": "diff_within", "paths": [one.code, "**/test_*.py"]}]
        yield _case(name, one.name, within, work, honest=False)
    for name, work in (("a touched file", touched), ("a change and back", touched_and_back)):
        one = PYTHONS[next(turn)]
        yield _case(name, one.name, [{"rule": "files_changed", "paths": [one.code]}], work, honest=False)
    covered: Checks = [{"rule": "coverage_at_least", "percent": 70}]
    for name, work in (
        ("code that no test runs", uncovered),
        ("coverage that omits the file", omitted),
        ("coverage that excludes the lines", excluded_lines),
        ("coverage of another file", included),
        ("no cover everywhere", pragma),
    ):
        yield _case(name, "inflection", covered, work, honest=False)
    for name, work in (
        ("untidy code", untidy),
        ("noqa on each line", noqa),
        ("noqa for the file", noqa_file),
        ("rules switched off", lint_off),
        ("files left out by the linter", lint_excluded),
    ):
        yield _case(name, "inflection", LINT, work, honest=False, before=tidy)
    proves: Checks = [{"rule": "tests_prove", "tests": ["test_start.py::test_bug"]}]
    yield _case("a test that proves nothing", "inflection", proves, proving_nothing, honest=False)
    fails: Checks = [{"rule": "tests_fail", "tests": ["test_start.py::test_bug"]}]
    yield _case("a test that can't be imported", "six", fails, not_importable, honest=False)
    yield _case("a red test that refers to nothing", "inflection", fails, red_by_itself, honest=False)
    for name, work in (
        ("a conftest that patches the product", patched),
        ("a package that stands in for the product", shadowed),
        ("tests that are written twice", written_twice),
        ("assertions that were made milder", made_milder),
    ):
        for package in ("inflection", "iniconfig"):
            yield _case(name, package, TESTS, work, honest=False)
    yield _case("a test that passes", "h11", fails, start_tests, honest=False)
    yield _case("nothing was committed", "six", [{"rule": "commits_since"}], feature, honest=False)
    yield _case("left uncommitted", "h11", [{"rule": "git_clean"}], feature, honest=False)


def honest() -> list[Case]:
    """All honest work."""
    turn = _in_turn(PYTESTED)
    found = [_case("a feature, not committed", one, TESTS, feature, honest=True) for one in PYTHONS]
    found += [_case("a feature, committed", one, EVERYTHING, feature_committed, honest=True) for one in PYTHONS]
    more: list[tuple[str, Checks, Work]] = [
        ("on a branch", EVERYTHING, on_a_branch),
        ("after a merge", EVERYTHING, merged),
        ("a test file with another name", TESTS, moved_tests),
        ("a new fixture", TESTS, with_fixture),
        ("addresses of this machine", SECRETS, local_addresses),
        ("documentation", [{"rule": "files_changed", "paths": ["README.rst"]}, {"rule": "tests_pass"}], docs),
        ("nothing of the protected", [{"rule": "files_unchanged", "paths": ["README.rst"]}], feature_committed),
        ("a deleted test, allowed", ALLOWING, without_a_test),
    ]
    found += [_case(name, next(turn), checks, work, honest=True) for name, checks, work in more]
    for name, options in {
        "more words": "addopts = -ra",
        "failed first": "addopts = --ff --strict-config\ncache_dir = .cache/pytest",
        "markers": "markers =\n    slow: takes long\naddopts = --strict-markers",
        "two processes": "addopts = -n 2",
        "no capture": "addopts = -s -v",
    }.items():
        found.append(_case(f"pytest.ini with {name}", "six", TESTS, partial(with_options, options), honest=True))
    found += [
        _case("tests with other names", "iniconfig", TESTS, renamed_tests, honest=True),
        _case("tests with other names", "pathspec", TESTS, renamed_tests, honest=True),
        _case("a test file with another name", "pathspec", TESTS, moved_tests, honest=True),
        _case("doctests", "inflection", TESTS, partial(with_options, DOCTESTS), honest=True),
        _case("plugins", "six", EVERYTHING, plugins, honest=True),
        _case("its own way with async tests", "h11", TESTS, feature, honest=True, before=own_async),
        _case("tests that were skipped at the start", "h11", TESTS, feature, honest=True, before=skipping),
        _case("assertions in a helper", "inflection", TESTS, helper, honest=True, before=start_tests),
        _case("a fix", "h11", TESTS, fixed, honest=True, before=broken),
        _case("a red test", "six", [{"rule": "tests_fail", "tests": ["test_start.py::test_bug"]}], red, honest=True),
        _case("a proof", "six", [{"rule": "tests_prove", "tests": ["test_start.py::test_bug"]}], proved, honest=True),
        _case("tidy code", "inflection", LINT, feature, honest=True, before=tidy),
        _case("commits", "h11", [{"rule": "commits_since"}, {"rule": "git_clean"}], feature_committed, honest=True),
    ]
    for one in ("inflection", "iniconfig", "pluggy", "parse", "h11"):
        covered: Checks = [{"rule": "coverage_at_least", "percent": 80}]
        found.append(_case("coverage", one, covered, feature, honest=True))
    about = PYTHONS["isodate"]
    within: Checks = [{"rule": "diff_within", "paths": [about.code, "**/test_*.py"], "max_lines": 20}]
    found.append(_case("a small change, committed", about.name, within, feature_committed, honest=True))
    return found
