"""The bookcase: the workflows that can be chosen by id or found by words, from the folders that hold them.

Finds and lists; whether a workflow is valid is decided in loading.py. Read again whenever a file has changed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.analysis.local import Survey
from handrail.domain.errors import NotFound, Unavailable
from handrail.domain.semver import best
from handrail.domain.suggestion import did_you_mean
from handrail.library.book import Book, Broken, Source
from handrail.library.book_index import Index
from handrail.library.book_words import WordIndex, split
from handrail.library.catalog import FolderCatalog, chosen
from handrail.library.loading import Loaded, load_data, load_definition, unsurveyed

ANY_VERSION: Final = "*"
NAMED_MAX: Final = 5
"""How many unreadable files are named when a workflow is not found."""


class Bookcase:
    """The workflows of some folders; earlier folders go first, and shadow the later ones."""

    def __init__(
        self,
        folders: Sequence[str | os.PathLike[str] | Source],
        *,
        kept: Path | None = None,
        survey: Survey = unsurveyed,
    ) -> None:
        """`kept` is a file in which what was seen is kept for the next process; `survey` tells what is known of the
        tools and rules that workflows name, unless a caller knows better."""
        self.survey = survey
        sources = [one if isinstance(one, Source) else Source("", os.fspath(one)) for one in folders]
        within = {source.folder: source.within for source in sources if source.within}
        self.catalog = FolderCatalog([source.folder for source in sources], within=within)
        self.sources = tuple(
            next(source for source in sources if source.folder == folder) for folder in self.catalog.folders
        )
        self._index = Index(kept)
        self._books: tuple[Book, ...] = ()
        self._words = WordIndex(())
        self._stamp: str | None = None

    def books(self) -> Sequence[Book]:
        """Every workflow in its best version, by id."""
        stamp = self.catalog.fingerprint()
        if stamp != self._stamp:
            self._books, self._stamp = tuple(self._read()), stamp
            self._words = WordIndex(self._books)
        return self._books

    def broken(self) -> Sequence[Broken]:
        """The files that can't be read; they hide nothing."""
        self.books()
        return [Broken(path, message) for path, message in sorted(self._index.broken.items())]

    def fingerprint(self) -> str:
        """A text that changes when anything in the folders does."""
        return self.catalog.fingerprint()

    def search(self, query: str = "", *, category: str = "", tags: Iterable[str] = ()) -> list[Book]:
        """The workflows that fit, best match first; without a query by id."""
        wanted = {tag.lower() for tag in tags}
        fitting = [
            book
            for book in self.books()
            if (not category or book.category.lower() == category.lower())
            and (not wanted or wanted <= {tag.lower() for tag in book.tags})
        ]
        words = split(query)
        if not words:
            return fitting
        points = self._words.scores(words)
        found = [book for book in fitting if book.id in points]
        return sorted(found, key=lambda book: (-points[book.id], book.id))

    def load(self, name: str, *, survey: Survey | None = None) -> Loaded:
        """The workflow that `id` or `id@range` names, the best of its versions, with all findings."""
        wanted, _, versions = name.partition("@")
        found = self.catalog.find(wanted)
        if not found:
            return self._oddly_named(wanted, survey)
        best_one = chosen(found, versions or ANY_VERSION, takes_any=True)
        if best_one is None:
            known_versions = ", ".join(dict.fromkeys(one.version for one in found if one.version))
            raise NotFound(
                f"workflow {wanted!r} has no version {versions}",
                hint=f"it has {known_versions or 'no version at all: name it without one'}",
            )
        return self._loaded(best_one.document.name, survey)

    def load_plan(self, data: Any, *, survey: Survey | None = None) -> Loaded:
        """The definition in data, with what it extends or inlines looked up here."""
        return load_data(data, catalog=self.catalog, survey=survey or self.survey)

    def _oddly_named(self, wanted: str, survey: Survey | None) -> Loaded:
        """A workflow that the catalog can't find: its id is none, or its file can't be read; NotFound otherwise."""
        books = {book.id: book for book in self.books()}
        if wanted in books:
            return self._loaded(books[wanted].file, survey)
        broken = self.broken()
        for one in broken:
            if Path(one.file).stem == wanted:
                raise NotFound(f"the workflow {wanted!r} can't be read: {one.message}", hint=f"fix {one.file}")
        hint = did_you_mean(wanted, books) or "there is no workflow yet: put one into .handrail/workflows/"
        names = ", ".join(Path(one.file).name for one in broken[:NAMED_MAX])
        unread = f"; {len(broken)} file{'s' * (len(broken) != 1)} can't be read: {names}" if broken else ""
        raise NotFound(f"there is no workflow {wanted!r}", hint=hint + unread)

    def _loaded(self, file: str, survey: Survey | None) -> Loaded:
        try:
            content = Path(file).read_bytes()
        except OSError as error:  # it went away just now
            raise Unavailable(f"{file} can't be read: {error.strerror}") from error
        return load_definition(content, name=file, catalog=self.catalog, survey=survey or self.survey)

    def _read(self) -> Iterable[Book]:
        seen: dict[str, dict[int, dict[str, Book]]] = {}
        for book, folder in self._index.books(self.catalog):
            seen.setdefault(book.id, {}).setdefault(folder, {}).setdefault(book.version, book)
        for known in sorted(seen):
            nearest, *others = sorted(seen[known])
            versions = seen[known][nearest]
            names = [self.sources[folder].name or self.sources[folder].folder for folder in (nearest, *others)]
            book = versions[best(versions, ANY_VERSION) or next(iter(versions))]
            yield replace(book, source=self.sources[nearest].name, shadows=tuple(names[1:]))
