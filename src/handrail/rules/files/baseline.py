"""Looks at a project when a run starts, and compares it with that later: what `since: run` and `since: step` mean.

A file that was not committed then and has the same content now has not changed since; a file that was committed in the
meantime has. Git is asked as in git.py: nothing that the repository configures is run or trusted."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.domain.run.baseline import Baseline
from handrail.engine.checking.rule import Setting
from handrail.rules.files.git import apart_files, branch_of, changes, commit_of, present
from handrail.rules.files.git_facts import NoRepository, git_program, is_marked
from handrail.rules.files.git_language import EMPTY, Changed, Changes
from handrail.rules.files.git_process import WORDS_MAX, GitUnavailable
from handrail.rules.files.ignoring.ignore_rules import BY_NAMES, BY_RULES, OUTER, SPARSE, Since, mark_of_apart
from handrail.rules.files.ignoring.newly_ignored import newly_ignored, outer_mark
from handrail.rules.files.project import ProjectFiles, project_at
from handrail.rules.files.tree import UNKNOWN, files_in, listed_digest, marks_of

OBSERVED_S_MAX: Final = 3.0
"""How long looking at a project may take; after that only its commit is recorded."""
TREE_S_MAX: Final = 0.05
"""How long is waited for the digest of all files, beyond the rest."""
DIRTY_MAX: Final = 200
NO_REPOSITORY: Final = "there was no repository then"
TOO_SLOW: Final = "git gave no answer in time then"
START_AGAIN: Final = "start the run again, with the repository in its place"
RUN, STEP, HEAD = "run", "step", "HEAD"

log = logging.getLogger(__name__)


async def observed(root: Path, *, private: Sequence[Path] = ()) -> Baseline | None:
    """The present state of a project; None if there is no git to ask.

    A repository that can't be looked at quickly is recorded by its commit alone: then what was not committed counts as
    changed later. That there is none, or none that can be read, is recorded, too: else the start of a run could be
    hidden by hiding the repository for a moment."""
    project = project_at(root, private)
    until_s = time.monotonic() + OBSERVED_S_MAX
    try:
        git_program(project)
    except GitUnavailable as error:
        log.debug("the baseline is not recorded: %s", error)
        return None
    try:
        async with asyncio.timeout(OBSERVED_S_MAX):
            found = await present(project)
            paths = [one.path for one in found.uncommitted]
            dirty = await asyncio.to_thread(marks_of, project, paths[:DIRTY_MAX], until_s=until_s)
            # Rules of ignoring outside of the project decide what counts as its files: they must not change unseen.
            dirty[OUTER] = await outer_mark(project)
            dirty |= {SPARSE: mark_of_apart(found.apart)} if found.apart else {}
    except NoRepository:
        return await asyncio.to_thread(_without_repository, project, until_s)
    except (GitUnavailable, TimeoutError) as error:
        return await _commit_only(project, str(error))
    # Only if it is quick. It tells later that nothing has changed at all; without it every file is compared.
    digest = await asyncio.to_thread(listed_digest, project, found.files, within_s=TREE_S_MAX)
    more = max(0, len(paths) - DIRTY_MAX)
    return Baseline(commit=found.commit, branch=found.branch, tree=digest, dirty=dirty, more=more)


def _without_repository(project: ProjectFiles, until_s: float) -> Baseline:
    """A folder in no repository, by its files."""
    files = files_in(project, "", DIRTY_MAX)
    marks = marks_of(project, files[:DIRTY_MAX], until_s=until_s)
    more = max(0, len(files) - DIRTY_MAX)
    return Baseline(commit=EMPTY["sha1"], dirty=marks, more=more, missing=NO_REPOSITORY)


async def _commit_only(project: ProjectFiles, why: str) -> Baseline:
    log.debug("the baseline is recorded without the files that are not committed: %s", why)
    try:
        async with asyncio.timeout(OBSERVED_S_MAX):
            return Baseline(commit=await commit_of(project, HEAD), branch=await branch_of(project), more=1)
    except (GitUnavailable, TimeoutError) as error:
        return Baseline(missing=(str(error) or TOO_SLOW)[:WORDS_MAX])


def is_compared(setting: Setting) -> bool:
    """Whether the project can be compared with the start of a run: not if it was in no repository and still is not."""
    start = setting.baselines.run
    return start is not None and (not start.missing or is_marked(setting.project.resolve()))


def since_of(parameters: Mapping[str, Any], setting: Setting) -> Since:
    """What a check compares with: the beginning of the run unless it says otherwise; HEAD if there was none.

    GitUnavailable if the project could not be looked at then."""
    asked = parameters.get("since", parameters.get("against", RUN))
    if asked not in {RUN, STEP}:
        return Since(asked, asked)
    known = setting.baselines
    if known.run is not None and not is_compared(setting):
        return Since(HEAD, HEAD)  # there is no repository: git will say so
    if asked == STEP and known.step is not None:
        return _since(known.step, "the start of the step")
    return _since(known.run, "the start of the run") if known.run is not None else Since(HEAD, HEAD)


def _since(baseline: Baseline, name: str) -> Since:
    if not baseline.missing:
        return Since(baseline.commit, name, _listed(baseline))
    if baseline.missing != NO_REPOSITORY:
        raise not_comparable(name, baseline.missing)
    if baseline.more:
        raise not_comparable(name, f"{NO_REPOSITORY}, and more than {DIRTY_MAX} files")
    return Since(baseline.commit, name, _listed(baseline), is_bare=True)


def commits_after(parameters: Mapping[str, Any], setting: Setting) -> Since:
    """What commits are compared with. GitUnavailable if there was no repository, but there were files: then older
    commits can't be distinguished from those of the run."""
    since = since_of(parameters, setting)
    if since.is_bare and since.dirty:
        raise not_comparable(since.name, NO_REPOSITORY)
    return since


def not_comparable(name: str, why: str) -> GitUnavailable:
    """The error that something can't be compared with the start."""
    return GitUnavailable(f"this can't be compared with {name}: {why}", START_AGAIN)


async def require_start(project: ProjectFiles, since: Since) -> None:
    """GitUnavailable if the commit of the start is gone, which an agent can't fix; others are named by who asks."""
    try:
        await commit_of(project, since.commit)
    except GitUnavailable as error:
        if error.by is not FixedBy.AGENT or since.name == since.commit:
            raise
        gone = f"its commit {since.commit[:12]} is gone: it was amended or rebased away, and git removed it"
        raise not_comparable(since.name, gone) from error


def _listed(baseline: Baseline) -> Mapping[str, str]:
    """The digests, unless they were erased from the journal."""
    return {path: mark for path, mark in baseline.dirty.items() if isinstance(mark, str)}


async def changes_since(project: ProjectFiles, since: Since) -> Changes:
    """What has changed since then, committed or not; also what was not committed then and is gone now."""
    await require_start(project, since)
    found = await changes(project, since.commit)
    now = await _marks_now(project, since)
    # Git takes what a sparse checkout leaves out for unchanged: if it leaves out something else now, it is gone.
    left_out = await apart_files(project)
    hidden = await newly_ignored(project, since.rules)
    listed = {one.path: one for one in with_hidden(found, hidden).files}
    if since.dirty.get(SPARSE, BY_NAMES) != mark_of_apart(left_out):
        listed |= await asyncio.to_thread(_gone, project, left_out)
    # What was uncommitted then and is clean now was changed as well: git alone would not list it.
    other = {path: Changed(path) for path in since.dirty if not _is_same(since, now, path)}
    files = {path: one for path, one in {**other, **listed}.items() if not _is_same(since, now, path)}
    return replace(found, files=tuple(files[path] for path in sorted(files)))


def _gone(project: ProjectFiles, names: Sequence[str]) -> dict[str, Changed]:
    absent = [one for one in names if not (project.root / one).exists()]
    return {path: Changed(path, deleted=1) for path in project.not_private(absent)}


def with_hidden(found: Changes, hidden: Sequence[str]) -> Changes:
    """Changes with files that git ignores by a new rule."""
    listed = {one.path for one in found.files}
    more = (Changed(path, is_untracked=True) for path in hidden if path not in listed)
    return replace(found, files=(*found.files, *more))


async def without_old(project: ProjectFiles, found: Changes, since: Since) -> Changes:
    """Changes without files that were already so at the beginning."""
    now = await _marks_now(project, since)
    return replace(found, files=tuple(one for one in found.files if not _is_same(since, now, one.path)))


async def _marks_now(project: ProjectFiles, since: Since) -> dict[str, str]:
    now = await asyncio.to_thread(marks_of, project, since.dirty)
    if since.dirty.get(OUTER, "").startswith(BY_RULES):
        now[OUTER] = await outer_mark(project)
    if SPARSE in since.dirty:
        now[SPARSE] = mark_of_apart(await apart_files(project))
    return now


def _is_same(since: Since, now: Mapping[str, str], path: str) -> bool:
    """Whether a file was not committed at the beginning, and has the same content now."""
    return path in since.dirty and since.dirty[path] == now[path] != UNKNOWN


async def state_of(project: ProjectFiles, since: Since) -> str:
    """A string that differs if something else is compared with: for the digest of a rule's inputs."""
    dirty = sorted((str(path), str(mark)) for path, mark in since.dirty.items())
    commit = await commit_of(project, since.commit)
    hidden = await newly_ignored(project, since.rules)  # not in the digest of the project's files
    return f"{commit} {dirty} {await asyncio.to_thread(marks_of, project, hidden) if hidden else ''}"


def since_words(since: Since, found: Changes) -> str:
    """For a sentence: the name, and the commit that it stands for."""
    return f"{since.name} ({found.base[:12]})"
