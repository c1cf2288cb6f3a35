"""Files that are ignored only by a rule that is new since some time: such a rule hides nothing from checks.

The rules of that time are those of its commit, and of files that have not changed since. Which of them are still the
same is decided in ignore_rules.py."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Final

from handrail.foundation.plain_file import NotPlain, read_plain
from handrail.rules.files.git import borrowed, hidden_files, outer_patterns
from handrail.rules.files.git_facts import facts_of
from handrail.rules.files.ignoring.ignore_rules import (
    EVERY,
    Rules,
    contents_in_order,
    kept_patterns,
    mark_of_patterns,
    newly_hidden,
    sources_of,
)
from handrail.rules.files.project import ProjectFiles
from handrail.rules.files.tree import files_in, marks_of

RULES_BYTES_MAX: Final = 1_000_000
EACH_MAX: Final = 5_000
"""How many files of an ignored folder are named; of a larger one, only the folder is."""


async def outer_mark(project: ProjectFiles) -> str:
    """The mark of the patterns outside of the work tree, as they are now."""
    return mark_of_patterns(await outer_patterns(project))


async def newly_ignored(project: ProjectFiles, then: Rules) -> list[str]:
    """The files that are ignored only by rules that are not of that time."""
    hidden = await hidden_files(project)
    if not hidden:
        return []
    old = await _old_rules(project, then, sources_of(hidden))
    outer_differs = then.outer_differs(await outer_mark(project))
    return await asyncio.to_thread(_files, project, newly_hidden(hidden, old, outer_differs=outer_differs))


async def _old_rules(project: ProjectFiles, then: Rules, sources: Sequence[str]) -> dict[str, Container[str]]:
    """For each of these files, from the top, the patterns of that time that are still as they were."""
    top = (await facts_of(project)).parts.top
    inside = {source: top / source for source in sources if (top / source).is_relative_to(project.root)}
    names = {source: path.relative_to(project.root).as_posix() for source, path in inside.items()}
    contents = await _contents(project, then.commit, sources)
    marks = await asyncio.to_thread(marks_of, project, [name for name in names.values() if name in then.dirty])
    same = {source for source, name in names.items() if name in marks and marks[name] == then.dirty[name]}
    return {
        source: EVERY if source in same else kept_patterns(contents.get(source, b""), _read(top / source))
        for source in sources
    }


def _read(file: Path) -> bytes:
    try:
        return read_plain(file, bytes_max=RULES_BYTES_MAX)
    except (OSError, NotPlain):  # then it is not as it was
        return b""


async def _contents(project: ProjectFiles, commit: str, sources: Sequence[str]) -> dict[str, bytes]:
    """What these files contained in a commit, by path from the top; without those that were not there."""
    asked = [one for one in sources if "\n" not in one]
    if not asked:
        return {}
    async with borrowed(project, commit, index=False) as repository:
        lines = "".join(f"{repository.base}:{one}\n" for one in asked).encode(errors="surrogateescape")
        return contents_in_order(asked, await repository.output("cat-file", "--batch", stdin=lines))


def _files(project: ProjectFiles, paths: Sequence[str]) -> list[str]:
    """The files, with those in folders."""
    found: list[str] = []
    for path in project.not_private(paths):
        inside = files_in(project, path, EACH_MAX) if path.endswith("/") else [path]
        found += inside if len(inside) <= EACH_MAX else [path]
    return sorted(set(found))
