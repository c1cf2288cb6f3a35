"""The words of a book, and how well they answer a query: whole words count most, where they stand says how much.

Pure. The words are split once for each book, not for each search."""

from __future__ import annotations

import re
from typing import Final, TypeAlias

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

Words: TypeAlias = tuple[tuple[int, frozenset[str], frozenset[str]], ...]
"""By weight: the words, and their beginnings."""

_word = re.compile(r"[^\W_]+")


def split(text: str) -> frozenset[str]:
    """The words of a text that say something; all of them if none does."""
    words = frozenset(_word.findall(text.lower()))
    return words - IDLE or words


def words_of(book: Book) -> Words:
    """Everything that a book can be found by."""
    found = []
    for name, weight in WEIGHTS.items():
        value = getattr(book, name)
        words = frozenset(_word.findall((value if isinstance(value, str) else " ".join(value)).lower()))
        found.append((weight, words, frozenset(word[:STEM] for word in words)))
    return tuple(found)


def score(words: Words, query: frozenset[str]) -> int:
    """How well a book answers a query; 0 if not at all."""
    points = 0
    for weight, known, stems in words:
        for word in query:
            if word in known:
                points += 2 * weight
            elif len(word) >= STEM and word[:STEM] in stems:
                points += weight
    return points
