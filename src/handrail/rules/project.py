"""The project, as rules see it: paths that stay inside, files that are read within bounds, and globs over them.

Links are followed as long as they lead to something in the project. What is looked for is the rules' business."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from handrail.engine.rule import Setting

PATH_LENGTH_MAX: Final = 1_000
PATHS_MAX: Final = 100
FILE_BYTES_MAX: Final = 10_000_000
NO_FOLLOW: Final = getattr(os, "O_NOFOLLOW", 0)
NO_BLOCK: Final = getattr(os, "O_NONBLOCK", 0)  # else opening a pipe waits for its other end
BINARY: Final = getattr(os, "O_BINARY", 0)
FOLDER_FLAGS: Final = os.O_RDONLY | NO_FOLLOW | getattr(os, "O_DIRECTORY", 0)
FILE_FLAGS: Final = os.O_RDONLY | NO_FOLLOW | NO_BLOCK | BINARY
HAS_HANDLES: Final = bool(NO_FOLLOW) and os.open in os.supports_dir_fd
PATH_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": PATH_LENGTH_MAX}
GLOBS_SCHEMA: Final = {"type": "array", "minItems": 1, "maxItems": PATHS_MAX, "items": PATH_SCHEMA}

_control = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_wild = re.compile(r"[*?\[]")


class Astray(Exception):
    """A path that no rule may follow, or that can't be read; says why."""


@dataclass(frozen=True)
class Project:
    """A folder, and the folders in it that are nobody's business."""

    root: Path
    private: tuple[Path, ...] = ()

    @cached_property
    def _closed(self) -> frozenset[tuple[int, int]]:
        """The private folders by what they are: a name can be spelled in many ways."""
        found = [folder.stat() for folder in self.private if folder.exists()]
        return frozenset((status.st_dev, status.st_ino) for status in found)

    def place(self, path: str) -> Path:
        """Where a path leads in the end, whether or not something is there; Astray if that is no place for a rule."""
        if len(path) > PATH_LENGTH_MAX or _control.search(path):
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
        return any(_identity(folder) in self._closed for folder in above)

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
        real = self.place(path)
        try:
            handle = self._open(real.relative_to(self.root).parts)
        except OSError as error:
            raise Astray(f"{path} can't be read: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise Astray(f"{path} is no plain file")
        return handle

    def read(self, path: str, *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        """What a file holds; Astray if it holds more than that, or is no plain file."""
        with os.fdopen(self.opened(path), "rb") as file:
            content = file.read(bytes_max + 1)
        if len(content) > bytes_max:
            raise Astray(f"{path} is larger than {bytes_max:,} bytes")
        return content

    def _open(self, parts: Sequence[str]) -> int:
        if not HAS_HANDLES:
            return os.open(self.root.joinpath(*parts), FILE_FLAGS)
        here = os.open(self.root, os.O_RDONLY)
        for count, part in enumerate(parts, 1):
            above = here
            try:
                here = os.open(part, FILE_FLAGS if count == len(parts) else FOLDER_FLAGS, dir_fd=above)
            finally:
                os.close(above)
        return here


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


def _identity(folder: Path) -> tuple[int, int]:
    try:
        status = folder.lstat()
    except OSError:
        return (-1, -1)
    return (status.st_dev, status.st_ino)
