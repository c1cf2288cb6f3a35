"""The project as rules see it: paths that stay inside, files that are read up to a size limit, and globs.

Links are followed as long as they lead to something in the project: a path is resolved first, and then opened by
foundation/rooted.py, which follows none. What to look for in the files is decided in the rules themselves."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from handrail.engine.checking.rule import Setting
from handrail.engine.checking.shared_call import SharedLooks
from handrail.foundation.rooted import (
    HAS_HANDLES,
    PATH_LENGTH_MAX,
    Blocked,
    BlockReason,
    Identity,
    entered,
    identities,
    identity,
    is_printable_path,
)

PATHS_MAX: Final = 100
FILE_BYTES_MAX: Final = 10_000_000
PATH_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": PATH_LENGTH_MAX}
GLOBS_SCHEMA: Final = {"type": "array", "minItems": 1, "maxItems": PATHS_MAX, "items": PATH_SCHEMA}
BLOCKED_MESSAGES: Final = {
    BlockReason.NO_FOLDER: f"can't be read: {os.strerror(errno.ENOENT)}",
    BlockReason.NOT_A_FOLDER: f"can't be read: {os.strerror(errno.ENOTDIR)}",
    BlockReason.CLOSED: "belongs to handrail itself",
    BlockReason.NOTHING_THERE: f"can't be read: {os.strerror(errno.ENOENT)}",
    BlockReason.NOT_A_FILE: "is not a plain file",
    BlockReason.REPLACED: "was replaced while it was opened",
}

_wild = re.compile(r"[*?\[]")


class PathRefused(Exception):
    """A path that no rule may follow, or that can't be read; the message says why."""


@dataclass(frozen=True)
class ProjectFiles:
    """A folder, and the private folders in it that rules may not read."""

    root: Path
    private: tuple[Path, ...] = ()
    looks: SharedLooks | None = field(default=None, compare=False)
    """What is looked at together with other checks of the same output; None if nothing is."""

    @cached_property
    def _closed(self) -> frozenset[Identity]:
        """The private folders by identity, because a name can be spelled in many ways."""
        return identities(self.private)

    def place(self, path: str) -> Path:
        """Where a path leads with all links resolved, existing or not; PathRefused if rules may not read it."""
        if not is_printable_path(path):
            raise PathRefused(f"a path has control characters or is longer than {PATH_LENGTH_MAX:,} characters")
        try:
            real = (self.root / path).resolve()
        except (OSError, RuntimeError):  # links that lead to each other
            raise PathRefused(f"{path} leads nowhere") from None
        if not real.is_relative_to(self.root):
            raise PathRefused(f"{path} leads out of the project")
        if self.is_private(real):
            raise PathRefused(f"{path} belongs to handrail itself")
        return real

    def is_private(self, real: Path) -> bool:
        """Whether a path in the project, spelled without links, is one that no rule may read."""
        if not self._closed:
            return False
        above = (folder for folder in (real, *real.parents) if folder.is_relative_to(self.root))
        return any(_is_one_of(self._closed, folder) for folder in above)

    def not_private(self, names: Iterable[str]) -> list[str]:
        """Those of these files that rules may read, in order. Each folder is looked at once."""
        if not self._closed:
            return sorted(names)
        known: dict[str, bool] = {"": self.is_private(self.root)}
        return [name for name in sorted(names) if not self._is_shut(name.rstrip("/"), known)]

    def _is_shut(self, name: str, known: dict[str, bool]) -> bool:
        folder = name.rpartition("/")[0]
        if folder not in known:
            known[folder] = self._is_shut(folder, known)
        return known[folder] or self.is_closed(f"{self.root}/{name}")

    def is_closed(self, folder: str) -> bool:
        """Whether this very folder is private: for a walk from the top, which has looked at those above it."""
        return bool(self._closed) and _is_one_of(self._closed, Path(folder))

    def status(self, path: str) -> os.stat_result | None:
        """The file status of what a path leads to; None if nothing is there."""
        try:
            return self.place(path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise PathRefused(f"{path} can't be checked: {error.strerror}") from None

    def opened(self, path: str) -> int:
        """The handle of a plain file, safe against links that are swapped in; PathRefused if it is not a plain file."""
        parts = self.place(path).relative_to(self.root).parts
        if not parts:
            raise PathRefused(f"{path} {BLOCKED_MESSAGES[BlockReason.NOT_A_FILE]}")  # the project itself
        try:
            with entered(self.root, parts, closed=self._closed, by_handle=HAS_HANDLES) as entry:
                return entry.open_file()
        except Blocked as blocked:
            raise PathRefused(f"{path} {BLOCKED_MESSAGES[blocked.why]}") from None
        except OSError as error:
            raise PathRefused(f"{path} can't be read: {error.strerror}") from None

    def read(self, path: str, *, bytes_max: int = FILE_BYTES_MAX) -> bytes:
        """The content of a file; PathRefused if it is larger than that, or not a plain file."""
        with os.fdopen(self.opened(path), "rb") as file:
            content = file.read(bytes_max + 1)
        if len(content) > bytes_max:
            raise PathRefused(f"{path} is larger than {bytes_max:,} bytes")
        return content


def project_of(setting: Setting) -> ProjectFiles:
    """The project that a rule is applied to."""
    return replace(project_at(setting.project, setting.private), looks=setting.looks)


def project_at(root: Path, private: Iterable[Path]) -> ProjectFiles:
    """The project in that folder."""
    return ProjectFiles(root.resolve(), tuple(private))


def paths_of(parameters: Mapping[str, Any], one: str = "path", many: str = "paths") -> list[str]:
    """The paths that a check names, in one parameter or the other."""
    return [*([parameters[one]] if one in parameters else []), *parameters.get(many, [])]


def is_in(path: str, globs: Iterable[str]) -> bool:
    """Whether one of the globs matches a path: `*` stays in a folder, `**` goes through all, and the name of a folder
    matches everything in it."""
    parts = tuple(path.rstrip("/").split("/"))
    return any(_fits(parts, tuple(part for part in glob.split("/") if part not in {"", "."})) for glob in globs)


def _fits(parts: tuple[str, ...], glob: tuple[str, ...]) -> bool:
    # Dynamic programming instead of backtracking: a glob with many `**` would else take exponential time.
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
    """The folder that contains everything a glob can match."""
    parts = [part for part in glob.split("/") if part not in {"", "."}]
    wild = next((at for at, part in enumerate(parts) if _wild.search(part)), len(parts))
    return "/".join(parts[:wild])


def _is_one_of(closed: frozenset[Identity], folder: Path) -> bool:
    try:
        return identity(folder.lstat()) in closed
    except OSError:  # nothing is there, or it may not be read
        return False
