"""The bookcase: the workflows that can be chosen by id or found by words, from the folders that hold them.

Finds and lists; whether a workflow is sound is loading.py's word. Read again whenever a file has changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from handrail.domain.definition import Effect
from handrail.domain.errors import NotFound, Unavailable
from handrail.domain.semver import best
from handrail.domain.suggestion import did_you_mean
from handrail.library.catalog import Candidate, FolderCatalog
from handrail.library.loading import Loaded, load_data, load_definition

ANY_VERSION: Final = "*"
WEIGHTS: Final = {"id": 8, "name": 6, "tags": 4, "category": 3, "description": 2, "titles": 1}
"""How much it says that a word of the query stands there."""

_word = re.compile(r"[^\W_]+")


class Book(Struct, frozen=True, kw_only=True):
    """A workflow at a glance, as its author wrote it."""

    id: str
    name: str
    version: str = ""
    description: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    steps: int = 0
    titles: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = {}


class Bookcase:
    """The workflows of some folders; earlier folders go first."""

    def __init__(self, folders: Sequence[str | os.PathLike[str]]) -> None:
        self.catalog = FolderCatalog(folders)
        self._books: tuple[Book, ...] = ()
        self._stamp: str | None = None

    def books(self) -> Sequence[Book]:
        """Every workflow in its best version, by id."""
        stamp = self.catalog.fingerprint()
        if stamp != self._stamp:
            self._books, self._stamp = tuple(self._read()), stamp
        return self._books

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
            and wanted <= {tag.lower() for tag in book.tags}
        ]
        words = _words(query)
        if not words:
            return fitting
        scored = [(_score(book, words), book) for book in fitting]
        return [book for score, book in sorted(scored, key=lambda one: (-one[0], one[1].id)) if score]

    def load(self, name: str, *, tools: Mapping[str, Effect] | None = None) -> Loaded:
        """The workflow that `id` or `id@range` names, the best of its versions, with all findings."""
        wanted, _, versions = name.partition("@")
        found: dict[str, Candidate] = {}
        for one in self.catalog.find(wanted):
            found.setdefault(one.version, one)
        if not found:
            known = [book.id for book in self.books()]
            hint = did_you_mean(wanted, known) or "there is no workflow yet: put one into .handrail/workflows/"
            raise NotFound(f"there is no workflow {wanted!r}", hint=hint)
        chosen = best(found, versions) if versions else _newest(found)
        if chosen is None:
            known_versions = ", ".join(filter(None, found)) or "no version at all: name it without one"
            raise NotFound(f"workflow {wanted!r} has no version {versions}", hint=f"it has {known_versions}")
        return self._loaded(found[chosen], tools)

    def load_plan(self, data: Any, *, tools: Mapping[str, Effect] | None = None) -> Loaded:
        """The definition in data, with what it extends or inlines looked up here."""
        return load_data(data, catalog=self.catalog, tools=tools)

    def _loaded(self, candidate: Candidate, tools: Mapping[str, Effect] | None) -> Loaded:
        name = candidate.document.name
        try:
            content = Path(name).read_bytes()
        except OSError as error:  # it went away just now
            raise Unavailable(f"{name} can't be read: {error.strerror}") from error
        return load_definition(content, name=name, catalog=self.catalog, tools=tools)

    def _read(self) -> Iterable[Book]:
        versions: dict[str, dict[str, Book]] = {}
        for document in self.catalog.documents():
            book = _book(document.value)
            versions.setdefault(book.id, {}).setdefault(book.version, book)
        for known in sorted(versions):
            yield versions[known][_newest(versions[known])]


def _newest(versions: Iterable[str]) -> str:
    """The best of the versions; the first if none of them is a release."""
    known = list(versions)
    return best(known, ANY_VERSION) or known[0]


def _book(value: Any) -> Book:
    steps = value["steps"] if isinstance(value["steps"], list) else []
    titles = [str(step.get("title") or step.get("id", "")) for step in steps if isinstance(step, dict)]
    inputs = value.get("inputs")
    return Book(
        id=value["id"],
        name=str(value.get("name") or value["id"]),
        version=str(value.get("version") or ""),
        description=str(value.get("description") or ""),
        category=str(value.get("category") or ""),
        tags=tuple(str(tag) for tag in value.get("tags") or ()) if isinstance(value.get("tags"), list) else (),
        steps=len(steps),
        titles=tuple(titles),
        inputs=inputs if isinstance(inputs, dict) else {},
    )


def _score(book: Book, words: frozenset[str]) -> int:
    texts = {**{name: getattr(book, name) for name in WEIGHTS}, "id": book.id.replace("/", " ")}
    score = 0
    for name, weight in WEIGHTS.items():
        known = _words(texts[name] if isinstance(texts[name], str) else " ".join(texts[name]))
        score += weight * sum(2 if word in known else _begins(word, known) for word in words)
    return score


def _begins(word: str, known: frozenset[str]) -> int:
    """Whether some known word begins like this one: `tests` is near to `test`, `review` to `reviewing`."""
    enough = 4
    return int(len(word) >= enough and any(one[:enough] == word[:enough] for one in known))


def _words(text: str) -> frozenset[str]:
    return frozenset(_word.findall(text.lower()))
