"""The index of books: what stood in each file when it was last read, so that only changed files are read again.

Kept in a file for the next process, if there is a place for it; what can't be kept there is simply read again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from handrail.domain.errors import Invalid
from handrail.foundation.atomic_file import write_cache
from handrail.library.book import Book, book_of
from handrail.library.catalog import FolderCatalog
from handrail.library.document import Document

FORMAT: Final = 1
KEPT_BYTES_MAX: Final = 20_000_000


class _Seen(Struct, frozen=True, omit_defaults=True):
    """A file as it was read: its book, or why there is none; neither if it holds something else."""

    changed: int
    size: int
    book: Book | None = None
    problem: str = ""


class _Kept(Struct, frozen=True):
    """What is kept for the next process."""

    format: int
    files: dict[str, _Seen]


class Index:
    """Knows what stands in files, as long as they do not change."""

    def __init__(self, kept: Path | None) -> None:
        self.kept = kept
        self.broken: dict[str, str] = {}
        self._files: dict[str, _Seen] | None = None

    def books(self, catalog: FolderCatalog) -> Iterator[tuple[Book, int]]:
        """Every book of the catalog's files, with the place of its folder."""
        known = self._files if self._files is not None else self._read()
        seen: dict[str, _Seen] = {}
        for path, changed, size, folder in catalog.files():
            one = known.get(path)
            if one is None or (one.changed, one.size) != (changed, size):
                one = _seen(catalog.document(path, changed, size, folder), path, changed, size)
            seen[path] = one
            if one.book is not None:
                yield one.book, folder
        self.broken = {path: one.problem for path, one in seen.items() if one.problem}
        if seen != known:
            self._write(seen)
        self._files = seen

    def _read(self) -> dict[str, _Seen]:
        try:
            if self.kept is None or self.kept.stat().st_size > KEPT_BYTES_MAX:
                return {}
            kept = msgspec.json.decode(self.kept.read_bytes(), type=_Kept)
        except (OSError, msgspec.DecodeError):  # it is only a cache: all of it can be read again
            return {}
        return kept.files if kept.format == FORMAT else {}

    def _write(self, files: dict[str, _Seen]) -> None:
        if self.kept is None:
            return
        # Only books: what is no workflow today is one when the importer of its format has been installed.
        books = {path: seen for path, seen in files.items() if seen.book is not None}
        write_cache(self.kept, msgspec.json.encode(_Kept(FORMAT, books)))


def _seen(document: Document | Invalid, path: str, changed: int, size: int) -> _Seen:
    if isinstance(document, Invalid):
        found = document.findings[0] if document.findings else None
        return _Seen(changed, size, problem=str(found or document))
    value = document.value
    if not isinstance(value, dict) or not isinstance(value.get("id"), str) or "steps" not in value:
        return _Seen(changed, size)
    return _Seen(changed, size, book_of(value, path))
