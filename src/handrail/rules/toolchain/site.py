"""The site: the folder of a project that a tool chain works in, and a bounded list of its files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from handrail.domain.metrics.cache_catalog import FOLDERS
from handrail.foundation.cache_use import use_of
from handrail.foundation.locked_cache import LockedCache
from handrail.rules.files.project import PathRefused, ProjectFiles

ENTRIES_MAX: Final = 50_000
DEPTH_MAX: Final = 30
TEXT_BYTES_MAX: Final = 1_000_000
SHOWN_MAX: Final = 300
REMEMBERED_MAX: Final = 200_000
"""How many names in folders are remembered."""
SETTLED_NS: Final = 2_000_000_000
SKIPPED: Final = frozenset(
    {"__pycache__", "bower_components", "build", "dist", "node_modules", "out", "site-packages", "target", "vendor"}
    | {"env", "venv"}
)
"""Folders with generated or downloaded files, not sources."""

_Entries: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
_use: Final = use_of(FOLDERS)
_known: LockedCache[str, tuple[tuple[int, int, int], _Entries]] = _use.keeps(LockedCache(REMEMBERED_MAX))


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
        return tuple([name for name in self.files if name.endswith(suffixes)])  # a list is faster: there are many

    def chosen(self, names: Sequence[str], paths: Sequence[str]) -> list[str]:
        """Those of these files that are one of the paths, or below one; all if no path is given."""
        bare = {path.removeprefix("./").rstrip("/") for path in paths}
        if not bare or bare & {"", "."}:
            return list(names)
        below = tuple(f"{path}/" for path in bare)
        return [name for name in names if name in bare or name.startswith(below)]

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

    def below(self, folder: str) -> Site:
        """A folder of this one; itself if none is named."""
        if not folder:
            return self
        start = f"{folder}/"
        files = tuple(name.removeprefix(start) for name in self.files if name.startswith(start))
        old = {path.removeprefix(start): content for path, content in self.old.items() if path.startswith(start)}
        return replace(self, folder=self.folder / folder, files=files, old=old)

    def above(self) -> Iterator[Path]:
        """The folder and its parents, up to the project's root: where its programs may be installed."""
        for folder in (self.folder, *self.folder.parents):
            yield folder
            if folder == self.project.root:
                return

    def shown(self, path: str) -> str:
        """The path of a file relative to the project, however a command spelled it."""
        # By its spelling alone: the command saw the project at the same path, but the file may be gone by now.
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
    """All source files below a folder. Paths are texts, because there are many."""
    seen, waiting = 0, [("", 0)]
    while waiting:
        inside, depth = waiting.pop()
        at = f"{folder}/{inside}" if inside else str(folder)
        folders, names = _entries(at)
        # Links to folders are not followed, but mounts and generated trees can still be endless.
        kept = [] if depth >= DEPTH_MAX else _worth(project, at, folders)
        seen += len(names) + len(kept)
        if seen > ENTRIES_MAX:
            raise PathRefused(f"{folder.name} has more than {ENTRIES_MAX:,} files; name a part of it with `path`")
        start = f"{inside}/" if inside else ""
        yield from (start + name for name in names)
        waiting += [(start + name, depth + 1) for name in reversed(kept)]


def _entries(folder: str) -> _Entries:
    """The folders and the files in a folder, each sorted; those of a folder that has not changed are remembered."""
    looked_ns = time.time_ns()
    try:
        status = Path(folder).stat()
    except OSError:  # removed meanwhile
        return (), ()
    # The inode, too: a folder that was replaced by another may have the times of the old one.
    stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    known = _known.get(folder)
    if known is not None and known[0] == stamp:
        _use.hit()
        return known[1]
    with _use.making():
        found, is_lasting = _read(folder)
    # Another change so soon might leave the same times.
    if is_lasting and max(stamp[0], stamp[1]) < looked_ns - SETTLED_NS:
        _known.put(folder, (stamp, found), weight=1 + len(found[0]) + len(found[1]))
    return found


def _read(folder: str) -> tuple[_Entries, bool]:
    """What is in a folder, and whether that lasts as long as the folder is not changed: what a link leads to may become
    something else, and a folder that could not be read may be readable later."""
    folders: list[str] = []
    names: list[str] = []
    has_links = False
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                has_links = has_links or entry.is_symlink()
                if not entry.is_dir():
                    names.append(entry.name)
                elif not entry.is_symlink():  # a link to a folder is neither
                    folders.append(entry.name)
    except OSError:  # removed meanwhile, or not readable
        return ((), ()), False
    return (tuple(sorted(folders)), tuple(sorted(names))), not has_links


def _worth(project: ProjectFiles, at: str, names: Sequence[str]) -> list[str]:
    kept = (name for name in names if name not in SKIPPED and not name.startswith("."))
    return [name for name in kept if not project.is_closed(f"{at}/{name}")]
