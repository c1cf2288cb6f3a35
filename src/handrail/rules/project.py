"""The project, as rules see it: paths that stay inside, files that are read within bounds, and globs over them.

Links are followed as long as they lead to something in the project: a path is resolved first, and then opened by
foundation/rooted.py, which follows none. What is looked for is the rules' business."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from handrail.engine.rule import Setting
from handrail.foundation.rooted import (
    HAS_HANDLES,
    PATH_LENGTH_MAX,
    Blocked,
    Identity,
    Why,
    entered,
    identities,
    identity,
    is_printable_path,
)

PATHS_MAX: Final = 100
FILE_BYTES_MAX: Final = 10_000_000
PATH_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": PATH_LENGTH_MAX}
GLOBS_SCHEMA: Final = {"type": "array", "minItems": 1, "maxItems": PATHS_MAX, "items": PATH_SCHEMA}
BLOCKED_WORDS: Final = {
    Why.NO_FOLDER: f"can't be read: {os.strerror(errno.ENOENT)}",
    Why.NOT_A_FOLDER: f"can't be read: {os.strerror(errno.ENOTDIR)}",
    Why.CLOSED: "belongs to handrail itself",
    Why.NOTHING_THERE: f"can't be read: {os.strerror(errno.ENOENT)}",
    Why.NOT_A_FILE: "is no plain file",
    Why.REPLACED: "was replaced while it was opened",
}

_wild = re.compile(r"[*?\[]")


class Astray(Exception):
    """A path that no rule may follow, or that can't be read; says why."""


@dataclass(frozen=True)
class Project:
    """A folder, and the folders in it that are nobody's business."""

    root: Path
    private: tuple[Path, ...] = ()

    @cached_property
    def _closed(self) -> frozenset[Identity]:
        """The private folders by what they are: a name can be spelled in many ways."""
        return identities(self.private)

    def place(self, path: str) -> Path:
        """Where a path leads in the end, whether or not something is there; Astray if that is no place for a rule."""
        if not is_printable_path(path):
            raise Astray(f"a path holds control characters or is longer than {PATH_LENGTH_MAX:,} characters")
        try:
            real = (self.root / path).resolve()
        except (OSError, RuntimeError):  # a ring of links
            raise Astray(f"{path} leads nowhere") from None
        if not real.is_relative_to(self.root):
            raise Astray(f"{path} leads out of the project")
        if self.is_private(real):
            raise Astray(f"{path} belongs to handrail itself")
        return real

    def is_private(self, real: Path) -> bool:
        """Whether a place in the project, spelled without links, is one that no rule may look into."""
        if not self._closed:
            return False
        above = (folder for folder in (real, *real.parents) if folder.is_relative_to(self.root))
        return any(_is_one_of(self._closed, folder) for folder in above)

    def status(self, path: str) -> os.stat_result | None:
        """What the system knows of what a path leads to; None if nothing is there."""
        try:
            return self.place(path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise Astray(f"{path} can't be looked at: {error.strerror}") from None

    def opened(self, path: str) -> int:
        """The handle of a plain file, with no link followed that was put in meanwhile; Astray if it is none."""
        parts = self.place(path).relative_to(self.root).parts
        if not parts:
            raise Astray(f"{path} {BLOCKED_WORDS[Why.NOT_A_FILE]}")  # the project itself
        try:
            with entered(self.root, parts, closed=self._closed, by_handle=HAS_HANDLES) as entry:
                return entry.open_file()
        except Blocked as blocked:
            raise Astray(f"{path} {BLOCKED_WORDS[blocked.why]}") from None
        except OSError as error:
            raise Astray(f"{path} can't be read: {error.strerror}") from None

    def read(self, path: str, *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        """What a file holds; Astray if it holds more than that, or is no plain file."""
        with os.fdopen(self.opened(path), "rb") as file:
            content = file.read(bytes_max + 1)
        if len(content) > bytes_max:
            raise Astray(f"{path} is larger than {bytes_max:,} bytes")
        return content


def project_of(setting: Setting) -> Project:
    """The project that a rule is applied to."""
    return project_at(setting.project, setting.private)


def project_at(root: Path, private: Iterable[Path]) -> Project:
    """The project in that folder."""
    return Project(root.resolve(), tuple(private))


def paths_of(parameters: Mapping[str, Any], one: str = "path", many: str = "paths") -> list[str]:
    """The paths that a check names, in one parameter or the other."""
    return [*([parameters[one]] if one in parameters else []), *parameters.get(many, [])]


def is_in(path: str, globs: Iterable[str]) -> bool:
    """Whether a path is one of those that globs name: `*` stays in a folder, `**` goes through all, a folder's name
    stands for all that is in it."""
    parts = tuple(path.rstrip("/").split("/"))
    return any(_fits(parts, tuple(part for part in glob.split("/") if part not in {"", "."})) for glob in globs)


def _fits(parts: tuple[str, ...], glob: tuple[str, ...]) -> bool:
    """Row by row over the parts of the glob: which beginnings of the path it can stand for."""
    reached = {0}
    for one in glob:
        if one == "**":
            reached = set(range(min(reached), len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], one)}
        if not reached:
            return False
    is_folder = not glob or not _wild.search(glob[-1])
    return len(parts) in reached or is_folder


def literal_folder(glob: str) -> str:
    """The folder below which all lies that a glob names."""
    parts = [part for part in glob.split("/") if part not in {"", "."}]
    wild = next((at for at, part in enumerate(parts) if _wild.search(part)), len(parts))
    return "/".join(parts[:wild])


def _is_one_of(closed: frozenset[Identity], folder: Path) -> bool:
    try:
        return identity(folder.lstat()) in closed
    except OSError:  # nothing is there, or it is not ours to look at
        return False
