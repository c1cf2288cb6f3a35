"""The index of entries: the content of each file when it was last read, so that only changed files are read again.

It is saved in a cache file for the next process; without one, all files are read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.errors import Invalid
from handrail.domain.metrics.cache_catalog import LIBRARY_INDEX
from handrail.foundation.atomic_file import write_cache
from handrail.foundation.cache_use import now, use_of
from handrail.library.documents.document import Document
from handrail.library.shelf.catalog import FolderCatalog
from handrail.library.shelf.workflow_entry import WorkflowEntry, workflow_entry_of

FORMAT: Final = 3
CACHE_BYTES_MAX: Final = 20_000_000
_use: Final = use_of(LIBRARY_INDEX)


class _IndexedFile(Struct, frozen=True, omit_defaults=True):
    """A file that was read: its entry, or a problem; neither if it is not a workflow."""

    changed: int
    size: int
    entry: WorkflowEntry | None = None
    problem: str = ""


class _CacheFile(Struct, frozen=True):
    """The content of the cache file."""

    format: int
    files: dict[str, _IndexedFile]


class EntryIndex:
    """The entries of files; a file is read again only if it has changed."""

    def __init__(self, cache_file: Path | None) -> None:
        self.cache_file = cache_file
        self.broken: dict[str, str] = {}
        self._files: dict[str, _IndexedFile] | None = None

    def entries(self, catalog: FolderCatalog) -> Iterator[tuple[WorkflowEntry, int]]:
        """Every entry of the catalog's files, with the index of its folder."""
        started_s = now()
        known = self._files if self._files is not None else self._read()
        read_s = now() - started_s
        found = 0
        seen: dict[str, _IndexedFile] = {}
        for path, changed, size, folder in catalog.files():
            one = known.get(path)
            if one is not None and (one.changed, one.size) == (changed, size):
                found += 1
            else:
                with _use.making():
                    one = _indexed(catalog.document(path, changed, size, folder), path, changed, size)
            seen[path] = one
            if one.entry is not None:
                yield one.entry, folder
        if self._files is None and self.cache_file is not None:  # what a process knows already is no use of the file
            _use.hit(times=found, since=now() - read_s)
        self.broken = {path: one.problem for path, one in seen.items() if one.problem}
        if seen != known:
            self._write(seen)
        self._files = seen

    def _read(self) -> dict[str, _IndexedFile]:
        try:
            if self.cache_file is None or self.cache_file.stat().st_size > CACHE_BYTES_MAX:
                return {}
            kept = msgspec.json.decode(self.cache_file.read_bytes(), type=_CacheFile)
        except (OSError, msgspec.DecodeError):  # it is only a cache: the files can be read again
            return {}
        return kept.files if kept.format == FORMAT else {}

    def _write(self, files: dict[str, _IndexedFile]) -> None:
        if self.cache_file is None:
            return
        # Only entries: another file may become a workflow when the importer for its format is installed.
        # A file name that is not UTF-8 can't be stored as JSON: such a file is read again by the next process.
        entries = {path: seen for path, seen in files.items() if seen.entry is not None and _is_text(path)}
        write_cache(self.cache_file, msgspec.json.encode(_CacheFile(FORMAT, entries)))


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _indexed(document: Document | Invalid, path: str, changed: int, size: int) -> _IndexedFile:
    if isinstance(document, Invalid):
        found = document.findings[0] if document.findings else None
        return _IndexedFile(changed, size, problem=str(found or document))
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("id"), str) or "steps" not in value:
        return _IndexedFile(changed, size)
    return _IndexedFile(changed, size, workflow_entry_of(value, path))
