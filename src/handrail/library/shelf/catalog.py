"""Catalogs: find the document of a workflow by its id, for `extends` and `workflow`.

Finds and reads, checks nothing: a file that can't be read is skipped, and never hides a good one."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from handrail.domain.definition.semver import best
from handrail.domain.errors import Invalid
from handrail.domain.metrics.cache_catalog import DOCUMENTS
from handrail.foundation.cache_use import use_of
from handrail.foundation.locked_cache import LockedCache
from handrail.foundation.plain_file import NotPlain, is_within, read_plain, root_around
from handrail.library.documents.document import DOCUMENT_BYTES_MAX, Document
from handrail.library.importing.importers import as_ours, read_any
from handrail.library.workrail.importer import called_here

FILES_MAX: Final = 2_000
"""How many files of one folder and its sub-folders are read: a full folder must not hide the others."""
FOLDERS_MAX: Final = 200
"""How many sub-folders of one folder are read."""
ROUTINES_FOLDER: Final = "routines"
"""Where WorkRail's files have the steps that they share."""
NAME_NOT_RESOLVED: Final = 1_921
"""What Windows calls a link that leads to itself."""
CACHE_BYTES_MAX: Final = 4_000_000
_use: Final = use_of(DOCUMENTS)
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

    def originals(self, names: Sequence[str]) -> Sequence[Document]:
        """All documents with one of these ids as they were written, in whatever format."""

    def ids(self) -> Sequence[str]:
        """The ids there are, for suggestions."""


class Catalog(WorkflowLookup, Protocol):
    """A lookup that can tell whether it has changed."""

    def fingerprint(self) -> str:
        """A string that changes when anything in the catalog does."""


class EmptyCatalog:
    """A catalog with nothing in it."""

    def find(self, name: str) -> Sequence[Candidate]:
        """Nothing."""
        return ()

    def originals(self, names: Sequence[str]) -> Sequence[Document]:
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


class _Listing(Struct, frozen=True):
    """The files of one folder and its sub-folders that are read."""

    files: tuple[_File, ...]
    left_out: str = ""


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

        `beside` is read before all other folders, without its sub-folders except `routines`: it is the folder of a
        single file, which may be the root of a large project."""
        known: dict[Path, str] = {}
        near = () if beside is None else (beside, Path(beside) / ROUTINES_FOLDER)
        for folder in (*near, *folders):
            known.setdefault(_real(folder), os.fspath(folder))
        self.folders = tuple(known.values())
        deep = {_real(folder) for folder in folders}
        self._subfolders_max = tuple(FOLDERS_MAX if folder in deep else 0 for folder in known)
        roots = {_real(folder): Path(root) for folder, root in (within or {}).items()}
        if beside is not None and (root := roots.get(_real(beside))):
            roots.setdefault(_real(Path(beside) / ROUTINES_FOLDER), root)
        self._roots = tuple(roots.get(folder) for folder in known)
        self._ids: dict[_File, tuple[str, ...]] = {}
        self._made_of: dict[_File, str] = {}
        """The files that refer to others, and the fingerprint of the catalog when they were converted."""
        self._documents: LockedCache[_File, Document | Invalid] = _use.keeps(LockedCache(CACHE_BYTES_MAX))
        self.left_out: Mapping[str, str] = {}
        """The folders that have more than is read, and what is not; as of the last look."""

    def find(self, name: str) -> Sequence[Candidate]:
        """All readable documents with this id, in the order of folders and file names."""
        found: list[Candidate] = []
        if "/" not in name and "\\" not in name and ".." not in name:  # else it looks like a path, which is never an id
            name = called_here(name)  # a workflow is also found by the id that it has in another format
        for file in self._files():
            # Reading a file for any `id:` is a hundred times cheaper than parsing it, and most files are not the one.
            document = self._document(file) if name in self._ids_in(file) else None
            if document is not None and isinstance(document.value, dict) and document.value.get("id") == name:
                version = str(document.value.get("version", ""))
                found.append(Candidate(version, document, file.folder))
        return found

    def originals(self, names: Sequence[str]) -> Sequence[Document]:
        """All readable documents with one of these ids, as they were written."""
        here = {called_here(name) for name in names}
        found: list[Document] = []
        for file in self._files():
            if here.isdisjoint(self._ids_in(file)):
                continue
            try:
                document = read_any(self._content(file), name=file.path)
            except Invalid:
                continue
            if isinstance(document.value, dict) and document.value.get("id") in names:
                found.append(document)
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

    def content(self, path: str) -> bytes:
        """The content of a listed file; NotPlain if it is no longer a file inside its folder's root."""
        folders = zip(self.folders, self._roots, strict=True)
        root = next((root for folder, root in folders if root_around(Path(path), Path(folder))), None)
        return read_plain(Path(path), bytes_max=DOCUMENT_BYTES_MAX, within=root)

    def fingerprint(self) -> str:
        """A hash of all names, sizes and times of change."""
        return hashlib.sha256(repr([(file.path, file.stamp) for file in self._files()]).encode()).hexdigest()

    def _files(self) -> list[_File]:
        listings = [
            self._listing_of(folder, place, subfolders_max)
            for place, (folder, subfolders_max) in enumerate(zip(self.folders, self._subfolders_max, strict=True))
        ]
        files = [file for listing in listings for file in listing.files]
        found = zip(self.folders, listings, strict=True)
        self.left_out = {folder: listing.left_out for folder, listing in found if listing.left_out}
        # A long-lived server would otherwise remember every version of every file that was ever there.
        for gone in self._ids.keys() - set(files):
            self._ids.pop(gone, None)
            self._made_of.pop(gone, None)
        return files

    def _listing_of(self, folder: str, place: int, subfolders_max: int) -> _Listing:
        root = self._roots[place]
        if _is_loop(folder) or (root is not None and not is_within(Path(folder), root)):
            # Not even listed: it stands for its files, so that it is reported as one that can't be read.
            return _Listing((_File(folder, (0, 0), place),))
        return _listed(folder, place, subfolders_max)

    def _ids_in(self, file: _File) -> tuple[str, ...]:
        if file not in self._ids:
            try:
                content = self._content(file)
            except Invalid:
                content = b""
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
        if cached is not None and not self._is_stale(file):
            _use.hit()
        else:
            with _use.making():
                cached = self._read(file)
            self._documents.put(file, cached, weight=min(file.stamp[1], DOCUMENT_BYTES_MAX))
        return cached if isinstance(cached, Document) else None

    def _read(self, file: _File) -> Document | Invalid:
        self._made_of.pop(file, None)
        try:
            return as_ours(read_any(self._content(file), name=file.path), partial(self._referred, file))
        except Invalid as error:
            return error

    def _referred(self, file: _File, names: Sequence[str]) -> Sequence[Document]:
        """The documents that a file refers to; it is converted again when any file has changed."""
        # A file that is made from others changes when they do, although its own time stays the same.
        self._made_of[file] = self.fingerprint()
        return self.originals(names)

    def _is_stale(self, file: _File) -> bool:
        return file in self._made_of and self._made_of[file] != self.fingerprint()

    def _content(self, file: _File) -> bytes:
        root, path = self._roots[file.folder], Path(file.path)
        if _is_loop(path):
            raise Invalid(f"{path} is a link that leads back to itself: it is not read", hint="remove the link")
        if root is not None and not is_within(path, root):
            raise Invalid(f"{path} is a link out of the project: it is not read", hint="copy it into the project")
        try:
            return read_plain(path, bytes_max=DOCUMENT_BYTES_MAX, within=root)
        except (FileNotFoundError, NotADirectoryError):  # deleted just now
            return b""
        except NotPlain as error:
            raise Invalid(str(error), hint="make it a regular file of a sensible size, or remove it") from error


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


def _real(folder: str | os.PathLike[str]) -> Path:
    return Path(os.path.realpath(folder))  # Path.resolve raises for a link to itself, on some versions of Python


def _is_loop(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a link that leads to itself, by itself or by way of others."""
    if not Path(path).is_symlink():
        return False
    try:
        Path(path).stat()
    except OSError as error:
        return error.errno == errno.ELOOP or getattr(error, "winerror", 0) == NAME_NOT_RESOLVED
    return False


def _is_workflow(name: str) -> bool:
    return name.endswith(SUFFIXES) and not name.endswith(TEST_SUFFIXES)


def _listed(folder: str, place: int, subfolders_max: int) -> _Listing:
    levels = _levels(folder, subfolders_max)
    more = ""
    if len(levels.entries) > FILES_MAX:
        more = f"it has more than {FILES_MAX:,} files: the others are not read; move some elsewhere"
    elif levels.is_cut and subfolders_max:
        more = f"it has more than {FOLDERS_MAX} sub-folders: the others are not read; move some elsewhere"
    return _Listing(tuple(_files_of(levels.entries[:FILES_MAX], place)), more)


def _files_of(entries: Sequence[os.DirEntry[str]], place: int) -> Iterator[_File]:
    for entry in entries:
        try:
            status = entry.stat()
        except OSError:  # deleted just now, or a broken link
            continue
        if not stat.S_ISDIR(status.st_mode):  # a pipe or a device is reported as one that can't be read
            yield _File(entry.path, (status.st_mtime_ns, status.st_size), place)


class _Levels(NamedTuple):
    entries: list[os.DirEntry[str]]
    """The files that may hold a workflow, at most one more than are read."""
    is_cut: bool
    """Whether there are more sub-folders than are read."""


def _levels(root: str, subfolders_max: int) -> _Levels:
    """The files that may hold a workflow, level by level, so that a full sub-folder never hides a file above it.

    Linked folders are not followed: they may lead out of the project, or form a cycle."""
    folders, files, is_cut = [root], list[os.DirEntry[str]](), False
    for folder in folders:  # grows during the loop
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        below = [one.path for one in found if not one.name.startswith(".") and one.is_dir(follow_symlinks=False)]
        room = max(0, subfolders_max + 1 - len(folders))
        folders += below[:room]
        is_cut = is_cut or len(below) > room
        files += islice((entry for entry in found if _is_workflow(entry.name)), FILES_MAX + 1 - len(files))
        if len(files) > FILES_MAX:
            break
    return _Levels(files, is_cut)
