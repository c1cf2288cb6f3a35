"""`diff_within`: only allowed paths were changed, within limits on files and lines."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import DIFF_WITHIN as CARD
from handrail.rules.files.baseline import changes_since, since_of
from handrail.rules.files.files_changed import git_evidence, within
from handrail.rules.files.git_language import Changes
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import PathRefused, ProjectFiles, is_in, project_of
from handrail.rules.function_rule import FunctionRule, found_at, named, outcome, unchecked_outcome

NEW_BYTES_MAX: Final = 200_000_000
"""How many bytes of untracked files are counted."""
BLOCK_BYTES: Final = 1_000_000


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    project = project_of(setting)
    try:
        since = since_of(parameters, setting)
        found = await changes_since(project, since)
        lines = await asyncio.to_thread(_lines, project, found)
    except GitUnavailable as error:
        return unchecked_outcome(CARD, str(error), error.fix, error.by)
    evidence = await git_evidence(CARD, found, within(found, parameters["paths"]), project)
    evidence = replace(evidence, counts={**evidence.counts, "lines": lines})
    return outcome(_findings(parameters, found, lines, since.name), evidence)


def _findings(parameters: Mapping[str, Any], found: Changes, lines: int, since: str) -> Iterator[Finding]:
    paths = parameters["paths"]
    most_files, most_lines = parameters.get("max_files"), parameters.get("max_lines")
    if most_files is not None and len(found.files) > most_files:
        message = f"{len(found.files):,} files changed since {since}, at most {most_files:,} may"
        yield found_at(CARD.name, named([one.path for one in found.files], most=3), message, "change fewer files")
    if most_lines is not None and lines > most_lines:
        message = f"{lines:,} lines changed since {since}, at most {most_lines:,} may"
        yield found_at(CARD.name, _largest(found), message, "make the change smaller, or split it into steps")
    for one in found.files:
        if not is_in(one.path, paths):
            message = f"{one.path} has changed since {since}, and is not in {named(paths, most=5)}"
            yield found_at(CARD.name, one.path, message, "restore it")


def _largest(found: Changes) -> str:
    return max(found.files, key=lambda one: one.added + one.deleted + one.is_untracked).path


def _lines(project: ProjectFiles, found: Changes) -> int:
    """How many lines were added or deleted, including new files."""
    known = sum(one.added + one.deleted for one in found.files)
    left, new = NEW_BYTES_MAX, 0
    for one in found.files:
        if one.is_untracked:
            lines, size = _counted(project, one.path, left)
            left, new = left - size, new + lines
    return known + new


def _counted(project: ProjectFiles, path: str, bytes_max: int) -> tuple[int, int]:
    """How many lines and bytes a file has."""
    lines, size, last = 0, 0, b"\n"
    try:
        file = project.opened(path)
    except PathRefused:  # a link, or a folder with a repository of its own: counts as one line
        return 1, 0
    try:
        while block := os.read(file, BLOCK_BYTES):
            lines, size, last = lines + block.count(b"\n"), size + len(block), block[-1:]
            if size > bytes_max:
                raise GitUnavailable(f"new files have more than {NEW_BYTES_MAX:,} bytes", "delete or ignore them")
    finally:
        os.close(file)
    return lines + (last != b"\n"), size


diff_within: Final = FunctionRule(CARD, _apply)
