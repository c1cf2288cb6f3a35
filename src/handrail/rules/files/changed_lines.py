"""Which lines have changed since the start of a run: what `only: changed` judges.

A file that was not committed when the run started is compared with the commit before it, because only its digest is
known: if it has changed since, its lines of before count, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.changed_lines import ChangedLines, added_lines
from handrail.engine.checking.rule import Setting
from handrail.rules.files.baseline import changes_since, is_compared, since_of, state_of
from handrail.rules.files.git import borrowed
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.ignoring.ignore_rules import Since
from handrail.rules.files.project import ProjectFiles, project_of

CHANGED: Final = "changed"
DIFF: Final = ("diff", "--no-renames", "--relative", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty")
NOTHING: Final[frozenset[int]] = frozenset()


async def changed_lines(project: ProjectFiles, since: Since) -> ChangedLines:
    """The lines that have changed since then, committed or not; GitUnavailable if that can't be known."""
    found = await changes_since(project, since)
    async with borrowed(project, since.commit) as repository:
        said, _ = await repository.compared(*DIFF, "--name-only", "-z", repository.base)
        lines = added_lines(await repository.output(*DIFF, "-U0", repository.base))
    names = [name.decode(errors="surrogateescape") for name in said.split(b"\0") if name]
    # The two lists have the same order; where they differ (an unfinished merge), all lines count as changed.
    known = dict(zip(names, lines, strict=True)) if len(names) == len(lines) else None
    files = {
        one.path: None if one.is_untracked or known is None else known.get(one.path, NOTHING) for one in found.files
    }
    return ChangedLines(files=files, since=since.name)


def judges_changed(parameters: Mapping[str, Any], setting: Setting) -> bool:
    """Whether a check judges only what has changed: in a run, unless it says otherwise or runs a command of its own."""
    if "only" in parameters:
        return bool(parameters["only"] == CHANGED)
    return is_compared(setting) and "command" not in parameters


async def changed_for(parameters: Mapping[str, Any], setting: Setting) -> ChangedLines | None:
    """What a check judges; None if that is everything. GitUnavailable if it can't be known."""
    if not judges_changed(parameters, setting):
        return None
    return await changed_lines(project_of(setting), since_of(parameters, setting))


async def with_since(own: str, parameters: Mapping[str, Any], setting: Setting) -> str:
    """The digest of a check's inputs, with what it compares with, if it does; empty if that is unknown."""
    if not own or not judges_changed(parameters, setting):
        return own
    try:
        return f"{own} {await state_of(project_of(setting), since_of(parameters, setting))}"
    except GitUnavailable:
        return ""


def existing(changed: ChangedLines, project: ProjectFiles) -> Sequence[str]:
    """The changed files that are still there."""
    return [path for path in changed.files if (project.root / path).is_file()]
