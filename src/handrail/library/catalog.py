"""Catalogs: where a workflow's text is found by its id, for `extends` and `workflow`.

Finds and reads, judges nothing: a file that can't be read is simply not there, and never hides a good one."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Protocol, cast

from msgspec import Struct

from handrail.domain.errors import Invalid
from handrail.library.document import DOCUMENT_BYTES_MAX, Document, read_document
from handrail.library.recent import Recent

FILES_MAX: Final = 2_000
KEPT_BYTES_MAX: Final = 4_000_000
SUFFIXES: Final = (".yaml", ".yml", ".json")

# Any `id: name`, however nested: cheaper than parsing, and parsing then tells which of them is the document's own.
_id = re.compile(rb"""\bid["']?\s*:\s*["']?([A-Za-z0-9_./-]{1,200})""")


class Candidate(Struct, frozen=True):
    """A document that has the id one looked for."""

    version: str
    document: Document


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

    def __init__(self, folders: Sequence[str | os.PathLike[str]]) -> None:
        known: dict[Path, str] = {}
        for folder in folders:
            known.setdefault(Path(folder).resolve(), os.fspath(folder))
        self.folders = tuple(known.values())
        self._ids: dict[_File, tuple[str, ...]] = {}
        self._documents: Recent[Document | Invalid] = Recent(KEPT_BYTES_MAX)

    def find(self, name: str) -> Sequence[Candidate]:
        """All readable documents with this id, in the order of folders and file names."""
        found: list[Candidate] = []
        for file in self._files():
            document = self._document(file) if name in self._ids_in(file) else None
            if document is not None and isinstance(document.value, dict) and document.value.get("id") == name:
                found.append(Candidate(str(document.value.get("version", "")), document))
        return found

    def ids(self) -> Sequence[str]:
        """The first id that each file names: nearly always its own."""
        return tuple(dict.fromkeys(ids[0] for file in self._files() if (ids := self._ids_in(file))))

    def documents(self) -> Iterator[Document]:
        """Every readable document that has an id and steps, in the order of folders and file names."""
        for file in self._files():
            document = self._document(file)
            value = document.value if document is not None else None
            if isinstance(value, dict) and isinstance(value.get("id"), str) and "steps" in value:
                yield cast("Document", document)

    def fingerprint(self) -> str:
        """A hash of all names, sizes and times of change."""
        return hashlib.sha256(repr([(file.path, file.stamp) for file in self._files()]).encode()).hexdigest()

    def _files(self) -> list[_File]:
        files = [file for folder in self.folders for file in _listed(folder)][:FILES_MAX]
        for gone in self._ids.keys() - set(files):
            self._ids.pop(gone, None)
        return files

    def _ids_in(self, file: _File) -> tuple[str, ...]:
        if file not in self._ids:
            names = (found[1].decode() for found in _id.finditer(_content(file.path)))
            self._ids[file] = tuple(dict.fromkeys(names))
        return self._ids[file]

    def _document(self, file: _File) -> Document | None:
        kept = self._documents.get(file)
        if kept is None:
            try:
                kept = read_document(_content(file.path), name=file.path)
            except Invalid as error:
                kept = error
            self._documents.keep(file, kept, weight=file.stamp[1])
        return kept if isinstance(kept, Document) else None


def _listed(folder: str) -> Iterator[_File]:
    try:
        with os.scandir(folder) as entries:
            files = [entry for entry in entries if entry.name.endswith(SUFFIXES) and entry.is_file()]
    except OSError:
        return
    for entry in sorted(files, key=lambda entry: entry.name):
        try:
            status = entry.stat()
        except OSError:  # it went away just now
            continue
        if status.st_size <= DOCUMENT_BYTES_MAX:
            yield _File(entry.path, (status.st_mtime_ns, status.st_size))


def _content(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(DOCUMENT_BYTES_MAX + 1)
    except OSError:
        return b""
