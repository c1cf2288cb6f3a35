"""The words of a book, and how well they answer a query: whole words count most, where they stand says how much.

Pure. The words are split once for each book, not for each search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from handrail.library.book import Book

WEIGHTS: Final = {"id": 8, "name": 6, "tags": 4, "category": 3, "description": 2, "titles": 1}
"""How much it says that a word of the query stands there."""
STEM: Final = 4
"""How many letters two words share at their beginning to be near: `tests` and `test`, `review` and `reviewing`."""
IDLE: Final = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "by",
        "for",
        "from",
        "how",
        "i",
        "in",
        "is",
        "it",
        "my",
        "of",
        "on",
        "or",
        "the",
        "this",
        "to",
        "want",
        "we",
        "with",
    }
)
"""Words of a query that say nothing about a task."""

_word = re.compile(r"[^\W_]+")
_NONE: Final[Mapping[str, int]] = {}


def split(text: str) -> frozenset[str]:
    """The words of a text that say something; all of them if none does."""
    words = frozenset(_word.findall(text.lower()))
    return words - IDLE or words


class WordIndex:
    """The words that books can be found by: where each stands, so that only books that have it are looked at."""

    def __init__(self, books: Iterable[Book]) -> None:
        self._known: dict[str, Counter[str]] = {}
        self._begun: dict[str, Counter[str]] = {}
        for book in books:
            for name, weight in WEIGHTS.items():
                value = getattr(book, name)
                words = set(_word.findall((value if isinstance(value, str) else " ".join(value)).lower()))
                _add(self._known, words, book.id, weight)
                _add(self._begun, {word[:STEM] for word in words}, book.id, weight)

    def scores(self, query: frozenset[str]) -> Mapping[str, int]:
        """How well books answer a query, by their ids; those that do not are not there.

        A whole word counts twice: as it is, and as one that starts like itself."""
        points: Counter[str] = Counter()
        for word in query:
            is_long = len(word) >= STEM
            for book, weight in self._known.get(word, _NONE).items():
                points[book] += weight if is_long else 2 * weight
            for book, weight in self._begun.get(word[:STEM], _NONE).items() if is_long else ():
                points[book] += weight
        return points


def _add(index: dict[str, Counter[str]], words: Iterable[str], book: str, weight: int) -> None:
    for word in words:
        index.setdefault(word, Counter())[book] += weight
