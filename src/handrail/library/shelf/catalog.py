"""Catalogs: find the document of a workflow by its id, for `extends` and `workflow`.

Finds and reads, checks nothing: a file that can't be read is skipped, and never hides a good one."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from handrail.domain.definition.semver import best
from handrail.domain.errors import Invalid
from handrail.foundation.locked_cache import LockedCache
from handrail.library.documents.document import DOCUMENT_BYTES_MAX, Document, read_document
from handrail.library.importing.importers import as_ours
from handrail.library.workrail.importer import called_here

FILES_MAX: Final = 2_000
"""How many files of one folder and its sub-folders are read: a full folder must not hide the others."""
FOLDERS_MAX: Final = 200
"""How many sub-folders of one folder are read."""
CACHE_BYTES_MAX: Final = 4_000_000
SUFFIXES: Final = (".yaml", ".yml", ".json")
TEST_SUFFIXES: Final = tuple(f".tests{suffix}" for suffix in SUFFIXES)
"""The tests next to a workflow."""

# Any `id: name`, at any depth: this is cheaper than parsing, and only files that match are parsed.
_id = re.compile(rb"""\bid["']?\s*:\s*["']?([A-Za-z0-9_./-]{1,200})""")


class Candidate(Struct, frozen=True):
    """A document with the wanted id, and the index of its folder: earlier folders win."""

    version: str
    document: Document
    folder: int = 0


class WorkflowLookup(Protocol):
    """Where workflows are looked up by id."""

    def find(self, name: str) -> Sequence[Candidate]:
        """All documents with this id, in any version; of equal versions, the first is used."""

    def ids(self) -> Sequence[str]:
        """The ids there are, for suggestions."""


class Catalog(WorkflowLookup, Protocol):
    """A lookup that can tell whether it has changed."""

    def fingerprint(self) -> str:
        """A text that changes when anything in the catalog does."""


class EmptyCatalog:
    """A catalog with nothing in it."""

    def find(self, name: str) -> Sequence[Candidate]:
        """Nothing."""
        return ()

    def ids(self) -> Sequence[str]:
        """None."""
        return ()

    def fingerprint(self) -> str:
        """Always the same."""
        return ""


EMPTY: Final = EmptyCatalog()


class _File(Struct, frozen=True):
    """A file as its folder lists it; the stamp changes with the content."""

    path: str
    stamp: tuple[int, int]
    folder: int
    """The index of its folder in the catalog."""


class FolderCatalog:
    """The workflows in the files of some folders and their sub-folders; earlier folders win.

    A file is parsed only if it mentions the wanted id."""

    def __init__(
        self,
        folders: Sequence[str | os.PathLike[str]],
        *,
        within: Mapping[str, str] | None = None,
        beside: str | os.PathLike[str] | None = None,
    ) -> None:
        """`within` gives a folder's root, which its links may not leave.

        `beside` is read before all other folders, without its sub-folders: it is the folder of a single file, which may
        be the root of a large project."""
        known: dict[Path, str] = {}
        for folder in (*(() if beside is None else (beside,)), *folders):
            known.setdefault(Path(folder).resolve(), os.fspath(folder))
        self.folders = tuple(known.values())
        deep = {Path(folder).resolve() for folder in folders}
        self._subfolders_max = tuple(FOLDERS_MAX if folder in deep else 0 for folder in known)
        self._within = {folder: Path(root).resolve() for folder, root in (within or {}).items()}
        self._ids: dict[_File, tuple[str, ...]] = {}
        self._documents: LockedCache[_File, Document | Invalid] = LockedCache(CACHE_BYTES_MAX)

    def find(self, name: str) -> Sequence[Candidate]:
        """All readable documents with this id, in the order of folders and file names."""
        found: list[Candidate] = []
        for file in self._files():
            document = self._document(file) if name in self._ids_in(file) else None
            if document is not None and isinstance(document.value, dict) and document.value.get("id") == name:
                version = str(document.value.get("version", ""))
                found.append(Candidate(version, document, file.folder))
        return found

    def ids(self) -> Sequence[str]:
        """The first id in each file: nearly always its own."""
        return tuple(dict.fromkeys(ids[0] for file in self._files() if (ids := self._ids_in(file))))

    def files(self) -> Sequence[tuple[str, int, int, int]]:
        """Every file: its path, when it was changed, its size, and the index of its folder."""
        return [(file.path, *file.stamp, file.folder) for file in self._files()]

    def document(self, path: str, changed: int, size: int, folder: int) -> Document | Invalid:
        """The document in a listed file, or why there is none."""
        file = _File(path, (changed, size), folder)
        self._document(file)
        cached = self._documents.get(file)
        return cached if cached is not None else Invalid(f"{path} is too large to be cached")

    def fingerprint(self) -> str:
        """A hash of all names, sizes and times of change."""
        return hashlib.sha256(repr([(file.path, file.stamp) for file in self._files()]).encode()).hexdigest()

    def _files(self) -> list[_File]:
        files = [
            file
            for place, (folder, subfolders_max) in enumerate(zip(self.folders, self._subfolders_max, strict=True))
            for file in _listed(folder, place, subfolders_max)
        ]
        for gone in self._ids.keys() - set(files):
            self._ids.pop(gone, None)
        return files

    def _ids_in(self, file: _File) -> tuple[str, ...]:
        if file not in self._ids:
            is_read = file.stamp[1] <= DOCUMENT_BYTES_MAX and not self._leads_out(file)
            content = _content(file.path) if is_read else b""
            names = [called_here(found[1].decode()) for found in _id.finditer(content)]
            self._ids[file] = tuple(dict.fromkeys(names or self._converted_ids(file)))
        return self._ids[file]

    def _converted_ids(self, file: _File) -> Iterator[str]:
        """The id of a file without an `id:`: other formats have other keys for it."""
        document = self._document(file)
        if document is not None and isinstance(document.value, dict) and isinstance(document.value.get("id"), str):
            yield document.value["id"]

    def _document(self, file: _File) -> Document | None:
        cached = self._documents.get(file)
        if cached is None:
            try:
                self._require_inside(file)
                cached = as_ours(read_document(_content(file.path), name=file.path))
            except Invalid as error:
                cached = error
            self._documents.put(file, cached, weight=min(file.stamp[1], DOCUMENT_BYTES_MAX))
        return cached if isinstance(cached, Document) else None

    def _leads_out(self, file: _File) -> bool:
        root = self._within.get(self.folders[file.folder])
        return root is not None and not Path(file.path).resolve().is_relative_to(root)

    def _require_inside(self, file: _File) -> None:
        if self._leads_out(file):
            raise Invalid(f"{file.path} is a link out of the project: it is not read", hint="copy it into the project")


def chosen(candidates: Sequence[Candidate], versions: str, *, takes_any: bool = False) -> Candidate | None:
    """The best matching version in the first folder that has one: earlier folders shadow later ones.

    With `takes_any` and without a wanted version, a document that is no release is better than none."""
    for folder in sorted({one.folder for one in candidates}):
        here: dict[str, Candidate] = {}
        for one in candidates:
            if one.folder == folder:
                here.setdefault(one.version, one)
        version = best(here, versions)
        if version is None and versions.strip() in {"", "*"}:
            version = "" if "" in here else next(iter(here)) if takes_any else None
        if version is not None:
            return here[version]
    return None


def _is_workflow(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.endswith(TEST_SUFFIXES)


def _listed(folder: str, place: int, subfolders_max: int) -> Iterator[_File]:
    for entry in islice(_entries(folder, subfolders_max), FILES_MAX):
        try:
            status = entry.stat()
        except OSError:  # deleted just now, or a broken link
            continue
        if stat.S_ISREG(status.st_mode):
            yield _File(entry.path, (status.st_mtime_ns, status.st_size), place)


def _entries(root: str, subfolders_max: int) -> Iterator[os.DirEntry[str]]:
    """The files that may hold a workflow, level by level, so that a full sub-folder never hides a file above it.

    Linked folders are not followed: they may lead out of the project, or form a cycle."""
    folders = [root]
    for folder in folders:  # grows during the loop
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        below = (one.path for one in found if not one.name.startswith(".") and one.is_dir(follow_symlinks=False))
        folders += islice(below, max(0, subfolders_max + 1 - len(folders)))
        yield from (entry for entry in found if _is_workflow(entry.name))


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(DOCUMENT_BYTES_MAX + 1)
    except OSError:
        return b""
