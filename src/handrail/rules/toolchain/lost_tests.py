"""Which tests were lost: compares the tests that ran now with those of an older state of the project.

A test counts by its function: fewer cases of one function are a loss, too. A test that was moved to another file under
its name is not lost. Tests that were skipped before may be skipped now."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import RuleCard
from handrail.rules.files.project import PathRefused, ProjectFiles
from handrail.rules.function_rule import found_at
from handrail.rules.toolchain.old_view import OldFiles, is_test_like

RESTORE: Final = "restore the test; if it had to go, ask for a step that allows it"
SOURCE_BYTES_MAX: Final = 1_000_000
RAN: Final = frozenset({"passed", "failed", "errors"})


def function_of(test: str) -> str:
    """The function of a test, without the case: `test_a.py::test_b[1]` is `test_a.py::test_b`."""
    return test.partition("[")[0]


def _bare(function: str) -> str:
    return function.rpartition("::")[2] or function


def skipped_since(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The tests that ran before and are skipped or expected to fail now."""
    return [test for test, how in now.items() if how not in RAN and before.get(test) in RAN]


def losses(card: RuleCard, before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[Finding]:
    """The tests that ran before and do not now."""
    old = Counter(function_of(test) for test, how in before.items() if how in RAN)
    new = Counter(function_of(test) for test, how in now.items() if how in RAN)
    listed = Counter(map(function_of, now))
    moved = set(map(_bare, listed.keys() - set(map(function_of, before))))
    for function, count in old.items():
        if new[function] >= count or (not listed[function] and _bare(function) in moved):
            continue
        yield found_at(card.name, function, _words(function, count, new[function], listed[function], now), RESTORE)


def _words(function: str, count: int, left: int, listed: int, now: Mapping[str, str]) -> str:
    if not listed:
        return f"{function} ran when the step was given out, and is not among the tests any more"
    how = Counter(how for test, how in now.items() if function_of(test) == function and how not in RAN)
    if how and not left:
        word = "expected to fail" if how["xfailed"] else "skipped"
        return f"{function} ran when the step was given out, and is {word} now"
    return f"{function} had {count:,} cases when the step was given out, and {left:,} of them run now"


def emptied(card: RuleCard, old: OldFiles, project: ProjectFiles) -> Iterator[Finding]:
    """The Python tests that checked something before and check nothing now."""
    sources = {path: text for path, text in old.contents.items() if path.endswith(".py") and is_test_like(path)}
    for path, content in sources.items():
        before, now = _checking(content or b""), _checking(_present(project, path))
        for name, line in now.items():
            if line and before.get(name) == 0:
                yield found_at(card.name, f"{path}:{line}", f"{name} checks nothing any more", RESTORE)


def _present(project: ProjectFiles, path: str) -> bytes:
    try:
        return project.read(path, bytes_max=SOURCE_BYTES_MAX)
    except PathRefused:
        return b""  # deleted: its tests are lost


def _checking(source: bytes) -> dict[str, int]:
    """By test function: 0 if it checks something, else the line where it starts."""
    if len(source) > SOURCE_BYTES_MAX:
        return {}
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    return dict(_functions(tree.body, ""))


def _functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, int]]:
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _functions(one.body, f"{prefix}{one.name}::")
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test"):
            yield f"{prefix}{one.name}", 0 if _does_something(one) else one.lineno


def _does_something(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a test asserts or calls anything that is not always true."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id == "print"):
            return True
    return False
