"""The option `--all-projects` of lists, and how a project is shown: its name, or its folder where two share a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import click

from handrail.engine.reading.run_view import ProjectView
from handrail.interfaces.cli.words.own_command import localized, own_program
from handrail.interfaces.cli.words.table import Column
from handrail.interfaces.pictures.caption import plain


def all_projects_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a list `--all-projects`."""
    return click.option("--all-projects", is_flag=True, help="Of all projects, not only of this one.")(command)


def with_project_column(
    head: Sequence[str | Column], rows: Sequence[Sequence[object]], projects: Sequence[ProjectView | None]
) -> tuple[list[str | Column], list[Sequence[object]]]:
    """A table with the project of each row in its first column."""
    names = _names(projects)
    return ["project", *head], [(name, *row) for name, row in zip(names, rows, strict=True)]


def _names(projects: Sequence[ProjectView | None]) -> list[str]:
    """A short text for each project of a list that tells them apart."""
    known = {one.id: one for one in projects if one is not None}
    names = Counter(one.name for one in known.values() if one.folder)
    return [_name(one, is_unique=names[one.name] <= 1) if one is not None else "" for one in projects]


def _name(project: ProjectView, *, is_unique: bool) -> str:
    if not project.folder:
        return f"({project.name})"
    return plain(project.name if is_unique else project.folder)


def program_for(project: ProjectView | None) -> str:
    """The first words of a command on a run of this project; empty if none works until it has a project."""
    if project is None:
        return own_program()
    return own_program(project.folder) if project.folder else ""


def project_words(project: ProjectView) -> str:
    """Another project in one line, with what works there."""
    if not project.folder:
        return f"{project.name}; {localized(project.hint)}"
    return f"{project.name}, in {project.folder}; work on it with `{own_program(project.folder)} ...`"
