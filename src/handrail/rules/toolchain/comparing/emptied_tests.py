"""Tests that were emptied, and tests that have only another name: compares the sources of tests with older ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import RuleCard
from handrail.rules.files.project import PathRefused, ProjectFiles
from handrail.rules.function_rule import found_at
from handrail.rules.toolchain.comparing.lost_tests import RESTORE
from handrail.rules.toolchain.comparing.old_view import OldFiles, is_test_like, present_files
from handrail.rules.toolchain.comparing.renamed_words import renamed_words, reworded
from handrail.rules.toolchain.comparing.worded_tests import GRAMMARS, Checks, WrittenTest
from handrail.rules.toolchain.comparing.written_tests import SOURCE_BYTES_MAX, read_tests

SUFFIXES = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
GROUPING = SUFFIXES[1:]
"""Sources whose tests have the titles of their groups before their own."""
INSIDE = ".rs"
"""Sources of this kind may have tests in them."""
WORDS = {
    Checks.NOTHING: "checks nothing any more",
    Checks.RUNS: "asserts nothing any more",
    Checks.SOMETIMES: "asserts only under a condition now",
}
MARKED = "passes now because it fails"

_dotted = re.compile(r"^[\w.]+$")


def emptied(card: RuleCard, old: OldFiles, project: ProjectFiles, lost: Container[str] = ()) -> Iterator[Finding]:
    """The tests that checked something before and check less now, in their file or in another; not those that are
    reported as lost."""
    before, now = _contents(old, project)
    known = {(path, test.name): test for path, test in _each(before)}
    moved = {test.bare: test for _, test in _tests(before)}
    for path, test in _each(now):
        was = known.get((path, test.name), moved.get(test.bare) if test.is_test else None)
        if was is not None and f"{path}::{test.name}" not in lost and (words := _lost_words(was, test)):
            yield found_at(card.name, f"{path}:{test.line}", f"{test.name} {words}", RESTORE)


def _lost_words(was: WrittenTest, test: WrittenTest) -> str:
    """What a test, or a function that asserts for tests, does not check any more; empty if it does."""
    if test.is_test and test.must_fail and not was.must_fail:
        return MARKED
    is_less = test.checks < was.checks and (test.is_test or (was.checks is Checks.ASSERTS and test.body))
    return WORDS[test.checks] if is_less else ""


def doubled(card: RuleCard, old: OldFiles, project: ProjectFiles) -> Iterator[Finding]:
    """The tests that are written a second time under their name, so that Python forgets the first."""
    before, now = _contents(old, project)
    was, count = (Counter((path, test.name) for path, test in _tests(contents)) for contents in (before, now))
    last = {(path, test.name): test.line for path, test in _tests(now) if path.endswith(".py")}
    for (path, name), line in last.items():
        if count[path, name] > was[path, name] > 0:
            message = f"{name} is written {count[path, name]} times in this file: only the last one runs"
            yield found_at(card.name, f"{path}:{line}", message, "give it a name of its own")


def gone(card: RuleCard, old: OldFiles, project: ProjectFiles) -> Iterator[Finding]:
    """The tests that are no longer written anywhere: what can be said without running the tests of that time."""
    before, now = _contents(old, project)
    written, renamed = {test.bare for _, test in _tests(now)}, renames(old, project)
    for path, test in _tests(before):
        if test.checks and test.bare not in written and test.name not in renamed:
            yield found_at(card.name, f"{path}::{test.name}", f"{test.name} is not among the tests any more", RESTORE)


def _each(contents: Mapping[str, list[WrittenTest]]) -> Iterator[tuple[str, WrittenTest]]:
    return ((path, test) for path, tests in contents.items() for test in tests)


def _tests(contents: Mapping[str, list[WrittenTest]]) -> Iterator[tuple[str, WrittenTest]]:
    return ((path, test) for path, test in _each(contents) if test.is_test)


@dataclass(frozen=True)
class Renamed:
    """The tests whose content is there under another name; asked by the name that a runner has for a test."""

    names: frozenset[str]
    titles: frozenset[str] = frozenset()
    """The tests of JavaScript that are as they were: only the groups around them, named by a runner, may differ."""

    def __contains__(self, function: object) -> bool:
        text = str(function)
        if text.partition("::")[2] in self.names or text.rpartition("::")[2] in self.names:
            return True
        if _dotted.match(text):
            return "::".join(text.split(".")[-2:]) in self.names
        return any(text.endswith(f" {name}") for name in self.names)


def renames(old: OldFiles, project: ProjectFiles) -> Renamed:
    """The tests that only have another name: their content is the same, but for names that the product changed, too."""
    before, now = _contents(old, project)
    known = {test.name: test.body for _, test in _tests(before)}
    bodies = {test.body for _, test in _tests(now) if test.name not in known and test.checks}
    words = renamed_words(old.contents, present_files(old, project)) if bodies else {}
    names = frozenset(name for name, body in known.items() if body in bodies or reworded(body, words) in bodies)
    written = {(test.name, test.body) for path, test in _tests(before) if path.endswith(GROUPING)}
    return Renamed(names, frozenset(test.name for _, test in _tests(now) if (test.name, test.body) in written))


def _contents(
    old: OldFiles, project: ProjectFiles
) -> tuple[Mapping[str, list[WrittenTest]], Mapping[str, list[WrittenTest]]]:
    read = (*SUFFIXES, *GRAMMARS)
    paths = [path for path in old.contents if path.endswith(read) and (is_test_like(path) or path.endswith(INSIDE))]
    before = {path: read_tests(path, old.contents[path] or b"") for path in paths}
    return before, {path: read_tests(path, _present(project, path)) for path in paths}


def _present(project: ProjectFiles, path: str) -> bytes:
    try:
        return project.read(path, bytes_max=SOURCE_BYTES_MAX)
    except PathRefused:
        return b""  # deleted: its tests are lost
