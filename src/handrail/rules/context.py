"""The context of a plugin rule: the output to check, and the project's files, within limits.

It is used in the process of the rule (plugin_host.py), so its limits are a help for authors, not a protection: that
is the sandbox."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from handrail.rules.files.project import PathRefused, ProjectFiles, is_in, project_at

TEXT_BYTES_MAX: Final = 1_000_000
FILES_MAX: Final = 10_000
ENTRIES_MAX: Final = 100_000
"""How many directory entries are read when searching for files."""
ASIDE: Final = frozenset(
    {".git", ".handrail", ".hg", ".mypy_cache", ".tox", ".venv", "__pycache__", "node_modules", "target", "venv"}
)
"""Folders with generated or downloaded files, which rules skip."""


class Unreadable(Exception):
    """A file can't be read as text; if the rule does not catch this, it becomes a finding about that file."""

    def __init__(self, path: str, message: str, fix: str) -> None:
        super().__init__(message)
        self.path, self.fix = path, fix


class Context:
    """What a rule may read besides its parameters."""

    def __init__(self, output: Any, project: Path | None, *, private: Sequence[Path] = ()) -> None:
        """`project` is None for a rule that reads only the output."""
        self.output = output
        """The submitted output, or the part of it that the check names with `of`."""
        self._found = None if project is None else project_at(project, private)

    @property
    def project(self) -> Path:
        """The folder of the project. It can be read, not changed."""
        return self._project.root

    @property
    def _project(self) -> ProjectFiles:
        if self._found is None:
            raise PermissionError("the rule is declared to read only the output; give it reads='project'")
        return self._found

    def exists(self, path: str) -> bool:
        """Whether there is such a file or folder in the project."""
        try:
            return self._project.status(path) is not None
        except PathRefused as error:
            raise _unreadable(path, str(error)) from None

    def read_text(self, path: str) -> str:
        """The text of a file in the project, at most 1,000,000 bytes; Unreadable says why not."""
        if not self.exists(path):
            raise Unreadable(path, f"{path} does not exist", "create it, or name the file that you mean")
        try:
            content = self._project.read(path, bytes_max=TEXT_BYTES_MAX)
        except PathRefused as error:
            raise _unreadable(path, str(error)) from None
        return content.decode("utf-8", errors="replace")

    def files(self, *globs: str) -> Iterator[str]:
        """The paths of the files in the project that match globs, or of all files, sorted, at most 10,000.

        Links are not followed, and folders of tools (.git, node_modules and the like) are skipped."""
        found = 0
        for path in self._walk():
            if found >= FILES_MAX:
                return
            if not globs or is_in(path, globs):
                found += 1
                yield path

    def _walk(self) -> Iterator[str]:
        seen = 0
        for folder, inner, names in os.walk(self.project):
            inner[:] = sorted(name for name in inner if self._is_open(Path(folder, name)))
            seen += len(inner) + len(names)
            if seen > ENTRIES_MAX:
                raise _unreadable(".", f"the project has more than {ENTRIES_MAX:,} files")
            files = (Path(folder, name) for name in sorted(names))
            yield from (file.relative_to(self.project).as_posix() for file in files if _is_plain(file))

    def _is_open(self, folder: Path) -> bool:
        return folder.name not in ASIDE and not self._project.is_private(folder)


def _is_plain(file: Path) -> bool:
    return file.is_file() and not file.is_symlink()


def _unreadable(path: str, message: str) -> Unreadable:
    return Unreadable(path[:200], message[:500], "name a file of the project that can be read")
