"""The site: the folder of a project that a tool chain works in, and a bounded list of its files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.rules.files.project import PathRefused, ProjectFiles

ENTRIES_MAX: Final = 50_000
DEPTH_MAX: Final = 30
TEXT_BYTES_MAX: Final = 1_000_000
SHOWN_MAX: Final = 300
SKIPPED: Final = frozenset(
    {"__pycache__", "bower_components", "build", "dist", "node_modules", "out", "site-packages", "target", "vendor"}
    | {"env", "venv"}
)
"""Folders with generated or downloaded files, not sources."""


class Site(Struct, frozen=True):
    """A folder in a project."""

    project: ProjectFiles
    folder: Path
    """Inside the project's root, without links."""
    files: tuple[str, ...] = ()
    """All source files, relative to the folder, with `/`."""
    old: Mapping[str, bytes | None] = field(default_factory=dict)
    """Files as they were at another time, relative to the folder; None if they were not there."""

    @property
    def cwd(self) -> str:
        """The folder, relative to the project's root; empty if it is the root."""
        inside = self.folder.relative_to(self.project.root).as_posix()
        return "" if inside == "." else inside

    def sources(self, *suffixes: str) -> tuple[str, ...]:
        """The files with one of these suffixes."""
        return tuple(name for name in self.files if name.endswith(suffixes))

    def has(self, name: str) -> bool:
        """Whether there is such a file directly in the folder."""
        return self.old[name] is not None if name in self.old else (self.folder / name).is_file()

    def text(self, name: str) -> str:
        """The text of a file; empty if it can't be read."""
        if name in self.old:
            return (self.old[name] or b"")[:TEXT_BYTES_MAX].decode(errors="replace")
        try:
            content = self.project.read(f"{self.cwd or '.'}/{name}", bytes_max=TEXT_BYTES_MAX)
        except PathRefused:
            return ""
        return content.decode(errors="replace")

    def then(self, contents: Mapping[str, bytes | None]) -> Site:
        """The same folder with other contents of some files, which are named relative to the project."""
        start = f"{self.cwd}/" if self.cwd else ""
        old = {path.removeprefix(start): content for path, content in contents.items() if path.startswith(start)}
        there = (name for name, content in old.items() if content is not None)
        files = sorted({*(name for name in self.files if name not in old), *there})
        return replace(self, files=tuple(files), old=old)

    def above(self) -> Iterator[Path]:
        """The folder and its parents, up to the project's root: where its programs may be installed."""
        for folder in (self.folder, *self.folder.parents):
            yield folder
            if folder == self.project.root:
                return

    def shown(self, path: str) -> str:
        """The path of a file relative to the project, however a command spelled it."""
        spelled = os.path.normpath(self.folder / path.strip().removeprefix("file://"))
        root = self.project.root
        inside = Path(spelled).is_relative_to(root)
        return (Path(spelled).relative_to(root).as_posix() if inside else spelled)[:SHOWN_MAX]

    def inside(self, path: str) -> str:
        """A path of an author, below the folder, as `./x`: never an option; PathRefused if it leads out."""
        real = self.project.place(f"{self.cwd or '.'}/{path}")
        if not real.is_relative_to(self.folder):
            raise PathRefused(f"{path} leads out of {self.cwd or 'the project'}")
        return f"./{PurePosixPath(real.relative_to(self.folder))}"


def site_at(project: ProjectFiles, path: str = ".", *, lists: bool = True) -> Site:
    """The site in that folder of the project, with its files if they are wanted; PathRefused if there is none."""
    folder = project.place(path or ".")
    if not folder.is_dir():
        raise PathRefused(f"there is no folder {path}")
    return Site(project, folder, tuple(_listed(project, folder)) if lists else ())


def _listed(project: ProjectFiles, folder: Path) -> Iterator[str]:
    seen = 0
    for here, folders, names in os.walk(folder):
        at = Path(here)
        depth = len(at.relative_to(folder).parts)
        folders[:] = [] if depth >= DEPTH_MAX else _worth(project, at, folders)
        seen += len(names) + len(folders)
        if seen > ENTRIES_MAX:
            raise PathRefused(f"{folder.name} has more than {ENTRIES_MAX:,} files; name a part of it with `path`")
        yield from ((at / name).relative_to(folder).as_posix() for name in sorted(names))


def _worth(project: ProjectFiles, at: Path, names: Sequence[str]) -> list[str]:
    kept = (name for name in sorted(names) if name not in SKIPPED and not name.startswith("."))
    return [name for name in kept if not project.is_private(at / name)]
