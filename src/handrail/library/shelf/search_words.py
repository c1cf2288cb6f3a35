"""Search by words: whole words count most, and each field has a weight.

Pure. The words of an entry are split once, not for each search."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from handrail.library.shelf.workflow_entry import WorkflowEntry

WEIGHTS: Final = {"id": 8, "name": 6, "tags": 4, "category": 3, "description": 2, "titles": 1}
"""How much a word of the query counts in each field."""
STEM: Final = 4
"""Words with this many first letters in common are similar: `tests` and `test`, `review` and `reviewing`."""
STOP_WORDS: Final = frozenset(
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
"""Words that say nothing about a task."""

_word = re.compile(r"[^\W_]+")
_NONE: Final[Mapping[str, int]] = {}


def split(text: str) -> frozenset[str]:
    """The words of a text without stop words; all of them if there are no others."""
    words = frozenset(_word.findall(text.lower()))
    return words - STOP_WORDS or words


class WordIndex:
    """An inverted index: the entries of each word, so that a search reads only entries that have it."""

    def __init__(self, entries: Iterable[WorkflowEntry]) -> None:
        self._by_word: dict[str, Counter[str]] = {}
        self._by_stem: dict[str, Counter[str]] = {}
        for entry in entries:
            for name, weight in WEIGHTS.items():
                value = getattr(entry, name)
                words = set(_word.findall((value if isinstance(value, str) else " ".join(value)).lower()))
                _add(self._by_word, words, entry.id, weight)
                _add(self._by_stem, {word[:STEM] for word in words}, entry.id, weight)

    def scores(self, query: frozenset[str]) -> Mapping[str, int]:
        """How well entries match a query, by id; without those that do not match.

        A whole word counts twice: as itself, and by its first letters."""
        points: Counter[str] = Counter()
        for word in query:
            is_long = len(word) >= STEM
            for entry, weight in self._by_word.get(word, _NONE).items():
                points[entry] += weight if is_long else 2 * weight
            for entry, weight in self._by_stem.get(word[:STEM], _NONE).items() if is_long else ():
                points[entry] += weight
        return points


def _add(index: dict[str, Counter[str]], words: Iterable[str], entry: str, weight: int) -> None:
    for word in words:
        index.setdefault(word, Counter())[entry] += weight
