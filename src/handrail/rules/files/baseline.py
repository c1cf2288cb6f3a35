"""Looks at a project when a run starts, and compares it with that later: what `since: run` and `since: step` mean.

A file that was not committed then and has the same content now has not changed since; a file that was committed in the
meantime has. Git is asked as in git.py: nothing that the repository configures is run or trusted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.domain.run.baseline import Baseline
from handrail.engine.checking.rule import Setting
from handrail.rules.files.git import Changed, Changes, changes, commit_of, present
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import ProjectFiles, project_at
from handrail.rules.files.tree import UNKNOWN, listed_digest, marks_of

OBSERVED_S_MAX: Final = 3.0
"""How long looking at a project may take; after that the baseline is not recorded."""
TREE_S_MAX: Final = 0.05
"""How long is waited for the digest of all files, beyond the rest."""
DIRTY_MAX: Final = 200
EXCLUDES: Final = ".git/info/exclude"
"""Says which files git does not see. No change of it shows up anywhere, so it is compared like the project's files."""
RUN, STEP, HEAD = "run", "step", "HEAD"

log = logging.getLogger(__name__)


class Since(Struct, frozen=True):
    """What a project is compared with."""

    commit: str
    """The name of a commit."""
    name: str
    """In words."""
    dirty: Mapping[str, str] = field(default_factory=dict)
    """The digests of the files that were not committed then."""


async def observed(root: Path, *, private: Sequence[Path] = ()) -> Baseline | None:
    """The present state of a project; None if it is not in a repository, or too large to look at quickly."""
    project = project_at(root, private)
    try:
        async with asyncio.timeout(OBSERVED_S_MAX):
            found = await present(project)
            paths = [one.path for one in found.uncommitted]
            dirty = await asyncio.to_thread(marks_of, project, [*paths[:DIRTY_MAX], EXCLUDES])
    except (GitUnavailable, TimeoutError) as error:
        log.debug("the baseline is not recorded: %s", error)
        return None
    digest = await asyncio.to_thread(listed_digest, project, found.files, within_s=TREE_S_MAX)
    more = max(0, len(paths) - DIRTY_MAX)
    return Baseline(commit=found.commit, branch=found.branch, tree=digest, dirty=dirty, more=more)


def since_of(parameters: Mapping[str, Any], setting: Setting) -> Since:
    """What a check compares with: the beginning of the run unless it says otherwise; HEAD if that is unknown."""
    asked = parameters.get("since", parameters.get("against", RUN))
    if asked not in {RUN, STEP}:
        return Since(asked, asked)
    known = setting.baselines
    if asked == STEP and known.step is not None:
        return Since(known.step.commit, "the start of the step", _listed(known.step))
    if known.run is not None:
        return Since(known.run.commit, "the start of the run", _listed(known.run))
    return Since(HEAD, HEAD)


def _listed(baseline: Baseline) -> Mapping[str, str]:
    """The digests, unless they were erased from the journal."""
    return {path: mark for path, mark in baseline.dirty.items() if isinstance(mark, str)}


async def changes_since(project: ProjectFiles, since: Since) -> Changes:
    """What has changed since then, committed or not; also what was not committed then and is gone now."""
    found = await changes(project, since.commit)
    now = await asyncio.to_thread(marks_of, project, since.dirty)
    listed = {one.path: one for one in found.files}
    other = {path: Changed(path) for path in since.dirty if not _is_same(since, now, path)}
    files = {path: one for path, one in {**other, **listed}.items() if not _is_same(since, now, path)}
    return replace(found, files=tuple(files[path] for path in sorted(files)))


async def without_old(project: ProjectFiles, found: Changes, since: Since) -> Changes:
    """Changes without files that were already so at the beginning."""
    now = await asyncio.to_thread(marks_of, project, since.dirty)
    return replace(found, files=tuple(one for one in found.files if not _is_same(since, now, one.path)))


def _is_same(since: Since, now: Mapping[str, str], path: str) -> bool:
    """Whether a file was not committed at the beginning, and has the same content now."""
    return path in since.dirty and since.dirty[path] == now[path] != UNKNOWN


async def state_of(project: ProjectFiles, since: Since) -> str:
    """A text that differs if something else is compared with: for the digest of a rule's inputs."""
    dirty = sorted((str(path), str(mark)) for path, mark in since.dirty.items())
    return f"{await commit_of(project, since.commit)} {dirty}"


def since_words(since: Since, found: Changes) -> str:
    """For a sentence: the name, and the commit that it stands for."""
    return f"{since.name} ({found.base[:12]})"
