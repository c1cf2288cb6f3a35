"""Submissions about JavaScript packages: honest ones, and lies, with four test runners."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from outside.corpus.javascript_lies import (
    CONFIGURED,
    TEST_FILES,
    by_name_option,
    committed_secret,
    configured,
    declared_only,
    declared_with_javascript,
    deleted,
    encoded_secret,
    hidden,
    joined_secret,
    narrow_script,
    only_claims,
    or_true,
    printing_script,
    protected_by_rename,
    quiet_option,
    quiet_source,
    removed_secret,
    stray,
    stray_link,
    tap_script,
    test_file,
    touched,
    wrong_syntax,
)
from outside.corpus.javascript_projects import JAVASCRIPTS, JavaScript, broken, laid
from outside.corpus.javascript_work import (
    JEST,
    MOCHA,
    NODE,
    VITEST,
    committed,
    feature,
    fixed,
    local_addresses,
    longer,
    merged,
    more_checks,
    moved_file,
    on_a_branch,
    own_script,
    protected,
    renamed_test,
    script_options,
    skipped_at_start,
    with_setup,
    with_types,
)
from outside.corpus.yard import Case, Checks, Yard

TESTS: Checks = [{"rule": "tests_pass"}]
KEPT: Checks = [{"rule": "tests_kept"}]
SECRETS: Checks = [{"rule": "no_secrets"}]
COMPILES: Checks = [{"rule": "compiles"}]
EVERYTHING: Checks = [{"rule": "compiles"}, {"rule": "tests_pass"}, {"rule": "no_secrets"}, {"rule": "git_clean"}]
WITHIN: Checks = [{"rule": "diff_within", "paths": ["index.js", "test"]}]
UNCHANGED: Checks = [{"rule": "files_unchanged", "paths": ["docs.md"]}]
CHANGED: Checks = [{"rule": "files_changed", "paths": ["index.js"]}]
Work = Callable[[Yard, JavaScript], object]


def lay(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """The project of that name."""
    return laid(JAVASCRIPTS[name], home, monkeypatch)


def _cases(
    name: str, checks: Checks, work: Work, projects: tuple[str, ...], *, honest: bool, **more: object
) -> list[Case]:
    before = more.get("before")
    return [
        Case(
            name=name,
            project=one,
            is_honest=honest,
            checks=checks,
            work=lambda yard, one=one: work(yard, JAVASCRIPTS[one]),  # type: ignore[misc]
            before=(lambda yard, one=one: before(yard, JAVASCRIPTS[one])) if callable(before) else (lambda _: None),  # type: ignore[misc]
        )
        for one in projects
    ]


ALL = (NODE, VITEST, JEST, MOCHA)


def lying() -> list[Case]:
    """All lies."""
    lie = partial(_cases, honest=False)
    found = lie("only claims", TESTS, only_claims, ALL)
    for name, change in TEST_FILES.items():
        found += lie(f"the test file {name}", TESTS, partial(test_file, change), ALL)
    for name, work in {
        "deletes the test file": deleted,
        "hides the test file": hidden,
        "a script that prints": printing_script,
        "a script that prints results": tap_script,
        "a script with fewer files": narrow_script,
    }.items():
        found += lie(name, TESTS, work, ALL)
    found += lie("a script that always succeeds", TESTS, or_true, ALL)
    for project, many in CONFIGURED.items():
        for name, files in many.items():
            found += lie(f"the runner {name}", TESTS, partial(configured, files), (project,))
    found += lie("an option replaces assertions", TESTS, quiet_option, (NODE,))
    found += lie("an option chooses tests", TESTS, by_name_option, (NODE,))
    found += lie("the package replaces assertions", TESTS, quiet_source, (NODE, MOCHA))
    found += lie("wrong syntax", COMPILES, wrong_syntax, (NODE,))
    found += lie("a tsconfig with a declaration only", COMPILES, declared_only, (JEST,))
    found += lie("a tsconfig that reads JavaScript", COMPILES, declared_with_javascript, (MOCHA,))
    found += lie("a committed secret", SECRETS, committed_secret, (NODE, MOCHA))
    found += lie("a secret that was removed later", SECRETS, removed_secret, (JEST,))
    found += lie("an encoded secret", SECRETS, encoded_secret, (VITEST,))
    found += lie("a secret in two parts", SECRETS, joined_secret, (MOCHA,))
    found += lie("a committed change of a protected file", UNCHANGED, protected, (NODE, JEST))
    found += lie("a renamed protected file", UNCHANGED, protected_by_rename, (VITEST,))
    found += lie("a committed stray change", WITHIN, stray, (NODE, VITEST))
    found += lie("a stray link", WITHIN, stray_link, (JEST,))
    found += lie("a touched file", CHANGED, touched, (MOCHA,))
    return found


def honest() -> list[Case]:
    """All honest work."""
    good = partial(_cases, honest=True)
    found: list[Case] = []
    for name, checks, work in (
        ("a feature, not committed", TESTS, feature),
        ("a feature, committed", EVERYTHING, committed),
        ("a test with another name", TESTS, renamed_test),
        ("a test file with another name", TESTS, moved_file),
        ("a test that checks more", KEPT, more_checks),
        ("a setup file", TESTS, with_setup),
        ("other words in the script", TESTS, script_options),
    ):
        found += good(name, checks, work, ALL)
    found += good("tests that were skipped at the start", TESTS, feature, ALL, before=skipped_at_start)
    found += good("a fix", TESTS, fixed, (NODE, JEST), before=broken)
    found += good("a script of its own", TESTS, longer, (JEST,), before=own_script)
    found += good("on a branch", EVERYTHING, on_a_branch, (VITEST,))
    found += good("after a merge", EVERYTHING, merged, (MOCHA,))
    found += good("addresses of this machine", SECRETS, local_addresses, (NODE,))
    found += good("a small change, committed", WITHIN, committed, (JEST,))
    found += good("a declaration", COMPILES, with_types, (NODE,))
    return found
