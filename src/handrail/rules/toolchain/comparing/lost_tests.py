"""Which tests were lost: compares the tests that ran now with those of an older state of the project.

A test counts by its function: fewer cases of one function are a loss, too. A test that was moved to another file under
its name is not lost. Tests that were skipped before may be skipped now."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping
from typing import Final

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import RuleCard
from handrail.rules.function_rule import found_at

RESTORE: Final = "restore the test; if it had to go, ask for a step that allows it"
MUST_PANIC: Final = " - should panic"
"""How Cargo names a test that passes if it fails: another test than before, unless it was one already."""
RAN: Final = frozenset({"passed", "failed", "errors"})

_dotted = re.compile(r"^[\w.]+$")


def function_of(test: str) -> str:
    """The function of a test, without the case: `test_a.py::test_b[1]` is `test_a.py::test_b`."""
    file, between, own = test.partition("::")
    if between and file.count("[") == file.count("]"):  # a folder may be called `[id]`
        return f"{file}::{own.partition('[')[0]}"
    return test.partition("[")[0]


def _bare(function: str) -> str:
    """Only its own name: after `::`, or after the last dot of a name that Python imports."""
    return function.rpartition("." if _dotted.match(function) else "::")[2]


def skipped_since(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The tests that ran before and are skipped or expected to fail now, also where they moved to another file."""
    idle = {_bare(function_of(test)) for test, how in now.items() if how not in RAN}
    return [test for test, how in before.items() if how in RAN and _bare(function_of(test)) in idle]


def losses(
    card: RuleCard,
    before: Mapping[str, str],
    now: Mapping[str, str],
    renamed: Container[str] = (),
    titles: Collection[str] = (),
) -> Iterator[Finding]:
    """The tests that ran before and do not now; a test whose content is there under another name is not lost, nor is
    one of these titles that is in another group."""
    old = Counter(function_of(test) for test, how in before.items() if how in RAN)
    new = Counter(function_of(test) for test, how in now.items() if how in RAN)
    listed = Counter(map(function_of, now))
    added = new.keys() - set(map(function_of, before))
    moved = set(map(_bare, added))
    for function, count in old.items():
        if max(new[function], new[function.removesuffix(MUST_PANIC)]) >= count:
            continue
        is_elsewhere = _bare(function) in moved or function in renamed or _is_regrouped(function, added, titles)
        if listed[function] or not is_elsewhere:
            yield found_at(card.name, function, _words(function, count, new[function], listed[function], now), RESTORE)


def _is_regrouped(function: str, added: Collection[str], titles: Collection[str]) -> bool:
    """Whether a test runs under the same title behind the title of another group."""
    own = [title for title in titles if _has_title(function, title)]
    return any(_has_title(one, title) for title in own for one in added)


def _has_title(function: str, title: str) -> bool:
    return function == title or function.endswith((f"::{title}", f" {title}"))


def _words(function: str, count: int, left: int, listed: int, now: Mapping[str, str]) -> str:
    if f"{function}{MUST_PANIC}" in now:
        return f"{function} passed when the step was given out, and must panic now"
    if not listed:
        return f"{function} ran when the step was given out, and is not among the tests any more"
    how = Counter(how for test, how in now.items() if function_of(test) == function and how not in RAN)
    if how and not left:
        word = "expected to fail" if how["xfailed"] else "skipped"
        return f"{function} ran when the step was given out, and is {word} now"
    return f"{function} had {count:,} cases when the step was given out, and {left:,} of them run now"
