"""A copy of a project for a command without a sandbox: it is at another path, and the command must work there as well.

Installed packages are not copied but linked: what is in an environment of Python, and packages of Node one by one,
because those of a workspace are links back into the project, and must lead into the copy. The history of git is
shared; what is committed in the copy stays there. Links that lead out of the project lead to the same place as before.
Caches are left out. How a copy is made, limited and removed: project_copy.py."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from handrail.engine.sandbox import Job, Ran

ENVIRONMENT_MARKS: Final = ("pyvenv.cfg", "conda-meta")
ENVIRONMENTS: Final = frozenset({".tox", ".nox", "__pypackages__", "bower_components", ".eggs"})
"""Folders of installed packages by their name; those of Python's environments are known by a mark in them."""
CACHES: Final = frozenset({"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"})
PACKAGES: Final = "node_modules"
KEPT_OF_PACKAGES: Final = frozenset({".bin", ".pnpm", ".store"})
"""Folders with a dot in front that are no caches, among the packages of Node."""
LINKS_MAX: Final = 20_000
GIT: Final = ".git"
NOT_OF_GIT: Final = frozenset({"objects", "lfs", "modules", "worktrees", "hooks"})


@dataclass(frozen=True)
class WorkingCopy:
    """What is linked, shared or left out of the copy of a project."""

    root: Path
    copy: Path

    def takes(self, source: Path, target: Path) -> bool:
        """Whether a folder was linked, shared or left out."""
        if source.name == PACKAGES:
            _link({path: self._package(path) for path in _packages(source)}, source, target)
        elif _is_environment(source):
            _link({path: path for path in source.iterdir()}, source, target)
        elif source.parent.name == GIT and source.name in NOT_OF_GIT:
            _share(source, target)
        else:
            return source.name in CACHES
        return True

    def link(self, source: Path) -> Path:
        """Where a link leads to: into the copy if it stays in the project, else to the place that it has now."""
        written = source.readlink()
        place = Path(os.path.normpath(source.parent / written))
        if not place.is_relative_to(self.root):
            return place
        return self.copy / place.relative_to(self.root) if written.is_absolute() else written

    def _package(self, path: Path) -> Path:
        """Where a package is: in the copy if it is a part of the project itself, as in a workspace."""
        real = path.resolve()
        is_own = real.is_relative_to(self.root) and PACKAGES not in real.relative_to(self.root).parts
        return self.copy / real.relative_to(self.root) if is_own else path


def _link(places: Mapping[Path, Path], source: Path, target: Path) -> None:
    """Make a folder of links: not one link, because a pattern that makes git ignore folders ignores no link."""
    target.mkdir()
    for path, place in islice(places.items(), LINKS_MAX):
        other = target / path.relative_to(source)
        other.parent.mkdir(exist_ok=True)
        other.symlink_to(place)


def _is_environment(folder: Path) -> bool:
    return folder.name in ENVIRONMENTS or any((folder / mark).exists() for mark in ENVIRONMENT_MARKS)


def _packages(folder: Path) -> Iterator[Path]:
    """The packages in a folder, also those of a scope."""
    for path in folder.iterdir():
        if path.name.startswith("@") and not path.is_symlink():
            yield from path.iterdir()
        elif path.name in KEPT_OF_PACKAGES or path.is_file() or not path.name.startswith("."):
            yield path


def _share(source: Path, target: Path) -> None:
    """Let the copy read the objects of the repository, and write its own."""
    if source.name == "objects":
        (target / "info").mkdir(parents=True)
        (target / "info" / "alternates").write_bytes(os.fsencode(f"{source}\n"))


def at_copy(job: Job, root: Path, copy: Path) -> Job:
    """The job with the copy wherever its words and its environment name the project."""
    env = {name: _moved(value, root, copy) for name, value in job.env.items()}
    return replace(job, argv=tuple(_moved(word, root, copy) for word in job.argv), env=env, apart=False, replaced={})


def as_in_project(ran: Ran, root: Path, copy: Path) -> Ran:
    """What a command said, with the project wherever it names the copy."""
    return replace(ran, stdout=_moved(ran.stdout, copy, root), stderr=_moved(ran.stderr, copy, root))


def _moved(text: str, old: Path, new: Path) -> str:
    """A string with one folder instead of another, wherever that is named: not as a part of another name."""
    if str(old) not in text:
        return text
    return re.sub(rf"(?<![\w.-]){re.escape(str(old))}(?![\w.-])", lambda _: str(new), text)
