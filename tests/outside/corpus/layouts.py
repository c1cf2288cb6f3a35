"""Projects as people also have them: other layouts, other ways to run tests. Small, written for these tests.

All have the same product, so that a lie or honest work can be tried in any of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from outside.corpus.yard import Case, Checks, Yard, clean_shell

PRODUCT = '''"""Prices of a shop."""


def total(prices, discount=0):
    """The sum of prices, less a discount."""
    return round(sum(prices) * (1 - discount), 2)


def label(amount):
    """An amount as people read it."""
    return f"{amount:.2f} EUR"
'''
RIGHT = "sum(prices) * (1 - discount)"
WRONG = "sum(prices) * (1 + discount)"


@dataclass(frozen=True)
class Layout:
    """A project: its files, the one with the product, the one with its tests, and its environment."""

    name: str
    code: str
    tests: str
    files: Mapping[str, str]
    made: Callable[[Path, Path, pytest.MonkeyPatch], None] = field(default=lambda *_: None)
    """Makes its environment, given the home folder and the project."""
    right: str = RIGHT
    wrong: str = WRONG

    def breaks(self, yard: Yard) -> None:
        """The product gives wrong results, which a test of the project notices."""
        yard.edit(self.code, self.right, self.wrong)


def laid_out(layout: Layout, home: Path, monkeypatch: pytest.MonkeyPatch) -> Yard:
    """The project with its environment, and the shell of its developer."""
    clean_shell(monkeypatch, home)
    yard = Yard(home, layout.name)
    yard.write(layout.files)
    layout.made(home, yard.root, monkeypatch)
    return yard


Work = Callable[[Yard, Layout], object]
Table = Mapping[str, tuple[Checks, Work, tuple[str, ...]]]
"""By name: what is checked, what is done, and in which projects."""


def layout_cases(layouts: Mapping[str, Layout], table: Table, *, honest: bool) -> list[Case]:
    """The submissions of a table."""
    return [
        Case(name=name, project=one, is_honest=honest, checks=checks, work=partial(_done, work, layouts[one]))
        for name, (checks, work, projects) in table.items()
        for one in projects
    ]


def _done(work: Work, layout: Layout, yard: Yard) -> None:
    work(yard, layout)
