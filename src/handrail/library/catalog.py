"""Catalogs: where a workflow's text is found by its id, for `extends` and `workflow`.

Finds and reads, judges nothing: a file that can't be read is simply not there, and never hides a good one."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from handrail.domain.errors import Invalid
from handrail.domain.semver import best
from handrail.library.document import DOCUMENT_BYTES_MAX, Document, read_document
from handrail.library.recent import Recent
from handrail.library.workrail.shelving import as_ours, called_here

FILES_MAX: Final = 2_000
"""How many files of one folder are looked at: a full one must not hide the others."""
KEPT_BYTES_MAX: Final = 4_000_000
SUFFIXES: Final = (".yaml", ".yml", ".json")
TEST_SUFFIXES: Final = tuple(f".tests{suffix}" for suffix in SUFFIXES)
"""Files beside a workflow that say how it is to be walked."""

# Any `id: name`, however nested: cheaper than parsing, and parsing then tells which of them is the document's own.
_id = re.compile(rb"""\bid["']?\s*:\s*["']?([A-Za-z0-9_./-]{1,200})""")


class Candidate(Struct, frozen=True):
    """A document that has the id one looked for, and in the how-manieth folder it stands: earlier ones go first."""

    version: str
    document: Document
    folder: int = 0


class Source(Protocol):
    """Where workflows are looked up by id."""

    def find(self, name: str) -> Sequence[Candidate]:
        """All documents with this id, whatever their version; of equal ones, the first counts."""

    def ids(self) -> Sequence[str]:
        """The ids there are, for suggestions."""


class Catalog(Source, Protocol):
    """A source that can be asked whether it is still the same."""

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
    """A file as the folder lists it; the stamp changes when its content does."""

    path: str
    stamp: tuple[int, int]


class FolderCatalog:
    """The workflows in the files of some folders; earlier folders go first. Reads a file when it may be the one."""

    def __init__(self, folders: Sequence[str | os.PathLike[str]], *, within: Mapping[str, str] | None = None) -> None:
        """`within` says for a folder which other its files may not lead out of, be it by links."""
        known: dict[Path, str] = {}
        for folder in folders:
            known.setdefault(Path(folder).resolve(), os.fspath(folder))
        self.folders = tuple(known.values())
        self._within = {folder: Path(root).resolve() for folder, root in (within or {}).items()}
        self._ids: dict[_File, tuple[str, ...]] = {}
        self._documents: Recent[Document | Invalid] = Recent(KEPT_BYTES_MAX)

    def find(self, name: str) -> Sequence[Candidate]:
        """All readable documents with this id, in the order of folders and file names."""
        found: list[Candidate] = []
        for file in self._files():
            document = self._document(file) if name in self._ids_in(file) else None
            if document is not None and isinstance(document.value, dict) and document.value.get("id") == name:
                version = str(document.value.get("version", ""))
                found.append(Candidate(version, document, self._place_of(file)))
        return found

    def _place_of(self, file: _File) -> int:
        return self.folders.index(os.path.dirname(file.path))  # noqa: PTH120 - compared with what scandir was given

    def ids(self) -> Sequence[str]:
        """The first id that each file names: nearly always its own."""
        return tuple(dict.fromkeys(ids[0] for file in self._files() if (ids := self._ids_in(file))))

    def files(self) -> Sequence[tuple[str, int, int, int]]:
        """Every file: its path, when it was changed, its size, and in the how-manieth folder it stands."""
        return [(file.path, *file.stamp, self._place_of(file)) for file in self._files()]

    def document(self, path: str, changed: int, size: int) -> Document | Invalid:
        """The document in a file as it was listed, or why there is none."""
        file = _File(path, (changed, size))
        self._document(file)
        kept = self._documents.get(file)
        return kept if kept is not None else Invalid(f"{path} is too large to be kept")

    def fingerprint(self) -> str:
        """A hash of all names, sizes and times of change."""
        return hashlib.sha256(repr([(file.path, file.stamp) for file in self._files()]).encode()).hexdigest()

    def _files(self) -> list[_File]:
        files = [file for folder in self.folders for file in _listed(folder)]
        for gone in self._ids.keys() - set(files):
            self._ids.pop(gone, None)
        return files

    def _ids_in(self, file: _File) -> tuple[str, ...]:
        if file not in self._ids:
            is_read = file.stamp[1] <= DOCUMENT_BYTES_MAX and not self._leads_out(file)
            content = _content(file.path) if is_read else b""
            names = (called_here(found[1].decode()) for found in _id.finditer(content))
            self._ids[file] = tuple(dict.fromkeys(names))
        return self._ids[file]

    def _document(self, file: _File) -> Document | None:
        kept = self._documents.get(file)
        if kept is None:
            try:
                self._require_inside(file)
                kept = as_ours(read_document(_content(file.path), name=file.path))
            except Invalid as error:
                kept = error
            self._documents.keep(file, kept, weight=min(file.stamp[1], DOCUMENT_BYTES_MAX))
        return kept if isinstance(kept, Document) else None

    def _leads_out(self, file: _File) -> bool:
        root = self._within.get(self.folders[self._place_of(file)])
        return root is not None and not Path(file.path).resolve().is_relative_to(root)

    def _require_inside(self, file: _File) -> None:
        if self._leads_out(file):
            raise Invalid(f"{file.path} is a link out of the project: it is not read", hint="copy it into the project")


def chosen(candidates: Sequence[Candidate], versions: str, *, takes_any: bool = False) -> Candidate | None:
    """The best version that fits, of the first folder that has one: what is nearer shadows what is further off.

    With `takes_any`, one that is no release is better than none, if no version was asked for."""
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


def _listed(folder: str) -> Iterator[_File]:
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry for entry in entries if _is_workflow(entry.name)), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found[:FILES_MAX]:
        try:
            status = entry.stat()
        except OSError:  # it went away just now, or leads nowhere
            continue
        if stat.S_ISREG(status.st_mode):
            yield _File(entry.path, (status.st_mtime_ns, status.st_size))


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(DOCUMENT_BYTES_MAX + 1)
    except OSError:
        return b""
