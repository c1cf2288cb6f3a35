"""The gates on real packages: no honest submission is refused, and no lie is accepted.

Every case of the tables goes to a real server as an agent's submission, with default settings, in the real sandbox. A
few are tried in every run of the tests, all of them by `make test-long`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from outside.corpus import (
    javascript_cases,
    javascript_layout_cases,
    other_cases,
    python_cases,
    python_layout_cases,
)
from outside.corpus.javascript_layouts import LAYOUTS as JAVASCRIPT_LAYOUTS
from outside.corpus.layouts import Layout, laid_out
from outside.corpus.python_layouts import LAYOUTS as PYTHON_LAYOUTS
from outside.corpus.python_projects import PYTHONS, laid
from outside.corpus.yard import Case, Verdict, Yard, agent_at

if not sys.platform.startswith("linux"):
    pytest.skip("the corpus was not tried: the sandbox needs Linux", allow_module_level=True)

AT_ONCE = 6
"""How many submissions one test makes: a test that takes too long is ended."""
QUICK = {
    "Python": (
        "honest: inflection: a feature, committed",
        "honest: pathspec: a feature, not committed",
        "a .pth in the environment",
        "the test file returns first",
        "noqa on each line",
        "no cover everywhere",
        "a secret in two parts",
        "unittest package replaces an assertion",
    ),
    "JavaScript": (
        "honest: ms: a feature, committed",
        "ms: a script that prints results",
        "ms: the test file empties its tests",
        "ms: the package replaces assertions",
        "ms: a committed stray change",
    ),
    "Go and C": (),
    "Python layouts": (
        "honest: make-unittest: a feature",
        "honest: flat: another parameter",
        "nose: an adopted assertion",
    ),
    "JavaScript layouts": ("honest: jest-projects: a feature", "plain-script: fewer assertions than before"),
}
"""The ends of the titles of what is tried in every run of the tests."""
TALLY: Counter[str] = Counter()


@dataclass(frozen=True)
class Table:
    """The submissions of a language, and how their projects are made."""

    language: str
    cases: Sequence[Case]
    lay: Callable[[str, Path, pytest.MonkeyPatch], Yard]


def _python(name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    return laid(PYTHONS[name], home, monkeypatch)


def _layout(layouts: Mapping[str, Layout], name: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    return laid_out(layouts[name], home, monkeypatch)


TABLES = {
    one.language: one
    for one in (
        Table("Python", [*python_cases.honest(), *python_cases.lying()], _python),
        Table("JavaScript", [*javascript_cases.honest(), *javascript_cases.lying()], javascript_cases.lay),
        Table("Go and C", other_cases.cases(), other_cases.lay),
        Table("Python layouts", python_layout_cases.cases(), partial(_layout, PYTHON_LAYOUTS)),
        Table("JavaScript layouts", javascript_layout_cases.cases(), partial(_layout, JAVASCRIPT_LAYOUTS)),
    )
}


def _parts(*, quick: bool) -> list[tuple[str, str, int]]:
    """Language, project and the number of the part of its cases: each is one test."""
    found: list[tuple[str, str, int]] = []
    for table in TABLES.values():
        for project in dict.fromkeys(case.project for case in table.cases):
            count = len(_chosen(table, project, quick=quick))
            found += [(table.language, project, start) for start in range(0, count, AT_ONCE)]
    return found


def _chosen(table: Table, project: str, *, quick: bool) -> list[Case]:
    every = [case for case in table.cases if case.project == project]
    return [case for case in every if case.title.endswith(QUICK[table.language])] if quick else every


async def _wrong(
    part: tuple[str, str, int], home: Path, monkeypatch: pytest.MonkeyPatch, *, quick: bool
) -> list[Verdict]:
    language, project, start = part
    table = TABLES[language]
    cases = _chosen(table, project, quick=quick)[start : start + AT_ONCE]
    home.mkdir()
    yard = table.lay(project, home, monkeypatch)
    async with agent_at(yard, cases) as submitted:
        verdicts = [await submitted(case) for case in cases]
    for one in verdicts:
        kind = "honest" if one.case.is_honest else "lying"
        TALLY[f"{language} {kind}"] += 1
        TALLY[f"{language} {kind} wrong"] += not one.is_right
    sys.stdout.write("\n" + "; ".join(_summary(name) for name in TABLES) + "\n")
    return [one for one in verdicts if not one.is_right]


def _summary(language: str) -> str:
    honest, lying = (TALLY[f"{language} {kind}"] for kind in ("honest", "lying"))
    refused, accepted = (TALLY[f"{language} {kind} wrong"] for kind in ("honest", "lying"))
    return f"{language}: {refused} of {honest} honest refused, {accepted} of {lying} lying accepted"


def _shown(verdicts: Sequence[Verdict]) -> list[str]:
    return [f"{one.case.title}: {one.words}" for one in verdicts]


@pytest.mark.parametrize("part", _parts(quick=True), ids=str)
async def test_some_submissions(part: tuple[str, str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(await _wrong(part, tmp_path / "home", monkeypatch, quick=True)) == []


@pytest.mark.long
@pytest.mark.parametrize("part", _parts(quick=False), ids=str)
async def test_all_submissions(part: tuple[str, str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(await _wrong(part, tmp_path / "home", monkeypatch, quick=False)) == []


def test_the_tables_are_large_enough_and_name_each_case_once() -> None:
    for language in ("Python", "JavaScript"):
        cases = TABLES[language].cases
        assert sum(case.is_honest for case in cases) >= 25
        assert sum(not case.is_honest for case in cases) >= 40
    titles = [case.title for table in TABLES.values() for case in table.cases]
    assert len(set(titles)) == len(titles)
    assert [end for ends in QUICK.values() for end in ends if not any(title.endswith(end) for title in titles)] == []
    assert len({project for table in TABLES.values() for project in (case.project for case in table.cases)}) >= 12
