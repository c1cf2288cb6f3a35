"""Commands on an older state of the project: files are put back as they were, in the view that is thrown away.

The project itself is never changed: a sandbox without such a view is refused. What the results mean is decided by the
rules."""

from __future__ import annotations

import asyncio
import base64
import io
import re
import tarfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from handrail.engine.checking.rule import Setting
from handrail.rules.files.baseline import Since, changes_since
from handrail.rules.files.git_history import files_at
from handrail.rules.files.project import PathRefused, ProjectFiles
from handrail.rules.toolchain.program import find
from handrail.rules.toolchain.site import Site, site_at
from handrail.rules.toolchain.task import CannotRun, Task

SCRIPT: Final = """set -e
cd "$1"
head -c "$2" | base64 -d | xargs -0 -r rm -f --
head -c "$3" | base64 -d | tar -xf -
cd "$4"
shift 4
exec "$@"
"""
"""Reads the names of files to remove and an archive of files to write, each of a given length, then runs the command
with the rest of the input."""
NO_VIEW: Final = CannotRun(
    message="an older state of the project can't be tried here: commands run without a sandbox",
    fix="ask a person to allow the sandbox: `handrail doctor` says what it needs",
)

_test_like = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing)/|(?:^|/)(?:test_|conftest)[^/]*$|[._-](?:tests?|spec)\.[^/]*$"
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


def is_test_like(path: str) -> bool:
    """Whether a file belongs to tests, by its name."""
    return bool(_test_like.search(path))


async def old_files(project: ProjectFiles, since: Since) -> OldFiles:
    """The files that have changed since then, as they were; GitUnavailable if they can't be read."""
    changed = await changes_since(project, since)
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


def in_old_view(task: Task, old: OldFiles, site: Site, setting: Setting) -> Task | CannotRun:
    """The same command, with these files as they were."""
    shell = find(site, "sh")
    # Writing would change the project itself if its view is not thrown away.
    if shell is None or not getattr(setting.sandbox, "is_throw_away", False):
        return NO_VIEW
    gone = "\0".join(path for path, content in old.contents.items() if content is None)
    removed, archive = _encoded(gone.encode(errors="surrogateescape")), _encoded(_archive(old.contents))
    depth = len(site.cwd.split("/")) if site.cwd else 0
    up, down = "/".join([".."] * depth) or ".", site.cwd or "."
    words = (str(shell.path), "-c", SCRIPT, "sh", up, str(len(removed)), str(len(archive)), down)
    return replace(task, argv=(*words, *task.argv), stdin=removed + archive + task.stdin, writable=True)


def _archive(contents: Mapping[str, bytes | None]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, content in contents.items():
            if content is not None:
                entry = tarfile.TarInfo(f"./{path}")
                entry.size, entry.mode = len(content), 0o755 if content.startswith(b"#!") else 0o644
                archive.addfile(entry, io.BytesIO(content))
    return file.getvalue()


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
