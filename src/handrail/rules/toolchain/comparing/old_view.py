"""Commands on an older state of the project: files are put back as they were, in a view that is thrown away.

The project itself is never changed: the view is that of the sandbox, or a copy where there is none. What the results
mean is decided by the rules."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.engine.checking.rule import Setting
from handrail.rules.files.baseline import NO_REPOSITORY, changes_since, not_comparable
from handrail.rules.files.git_history import files_at
from handrail.rules.files.ignoring.ignore_rules import Since
from handrail.rules.files.project import PathRefused, ProjectFiles
from handrail.rules.toolchain.installed.linked_sources import linked_sources
from handrail.rules.toolchain.site import Site, site_at
from handrail.rules.toolchain.task import Task

PYTHONPATH: Final = "PYTHONPATH"

_test_like = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing|features)/|(?:^|/)(?:test_|conftest|tests?[.-])[^/]*$|[._-](?:tests?|spec)\.[^/]*$"
    r"|\.feature$"
)
_steering = re.compile(
    r"(?:^|/)(?:conftest\.py|sitecustomize\.py|usercustomize\.py|\.?pytest\.(?:ini|toml)|tox\.ini|setup\.cfg"
    r"|\.mocharc[^/]*|(?:jest|vitest|vite)\.(?:config|setup)\.[^/]*)$"
)
"""Files that say which tests there are. They are put back also if git does not see them."""


class OldFiles(Struct, frozen=True):
    """The files that have changed since then, with their content at that time; None if they were not there."""

    contents: Mapping[str, bytes | None]

    def without(self, kept: Sequence[str]) -> OldFiles:
        """The same, without files that stay as they are."""
        return OldFiles({path: content for path, content in self.contents.items() if path not in kept})

    def only(self, wanted: Container[str]) -> OldFiles:
        """The same, with these files alone."""
        return OldFiles({path: content for path, content in self.contents.items() if path in wanted})

    def with_files(self, more: Mapping[str, bytes | None]) -> OldFiles:
        """The same, with more files."""
        return OldFiles({**self.contents, **more})


def is_test_like(path: str) -> bool:
    """Whether a file belongs to tests, by its name."""
    return bool(_test_like.search(path))


def is_steering(path: str) -> bool:
    """Whether a file says which tests there are, or what happens around them."""
    return bool(_steering.search(path))


async def old_files(project: ProjectFiles, since: Since) -> OldFiles:
    """The files that have changed since then, as they were; GitUnavailable if they can't be read."""
    changed = await changes_since(project, since)
    # Without a repository only digests of the start are known: enough to see a change, not to put the file back.
    if since.is_bare and (lost := [one.path for one in changed.files if since.dirty.get(one.path)]):
        raise not_comparable(since.name, f"what {lost[0]} contained is not known, because {NO_REPOSITORY}")
    # A conftest.py that git ignores is not among the changes, yet it decides which tests there are.
    unseen = await asyncio.to_thread(_unseen, project)
    paths = dict.fromkeys([*(one.path for one in changed.files), *unseen])
    then = await files_at(project, since.commit, list(paths))
    listed = {one.path for one in changed.files}
    return OldFiles({path: content for path, content in then.items() if path in listed or content != unseen[path]})


def _unseen(project: ProjectFiles) -> dict[str, bytes]:
    """Files that steer tests, whether or not git sees them."""
    found: dict[str, bytes] = {}
    with suppress(PathRefused):  # too many files: those that git lists must do
        for name in site_at(project).files:
            if _steering.search(name):
                found[name] = project.read(name)
    return found


def present_files(old: OldFiles, project: ProjectFiles) -> dict[str, bytes]:
    """The files that have changed, as they are; without those that are gone or can't be read."""
    found: dict[str, bytes] = {}
    for path in old.contents:
        with suppress(PathRefused):
            found[path] = project.read(path)
    return found


def in_view(task: Task, old: OldFiles, site: Site, setting: Setting) -> Task:
    """The same command, with these files as they were, in a view of the project that is thrown away."""
    env = task.env if not setting.sandbox.caveat else _own_first(task, site)
    return replace(task, env=env, apart=True, replaced=old.contents, writable=True)


def _own_first(task: Task, site: Site) -> Mapping[str, str]:
    """The environment, with the project's own code before what is installed.

    Without a sandbox the view is a copy at another path: an environment in which the project is installed as a link to
    its sources would still import those of the project itself."""
    root = site.project.root
    linked = [place for one in task.programs for place in linked_sources(one.path, root)]
    if not linked:
        return task.env
    known = filter(None, [task.env.get(PYTHONPATH, ""), *map(str, dict.fromkeys(linked))])
    return {**task.env, PYTHONPATH: os.pathsep.join(known)}
