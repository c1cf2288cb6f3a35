"""Search by words: in every form of a word, by words of the same meaning, and each field has a weight.

Pure. The words of an entry are split once, not for each search. The meanings are in word_meanings.py."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, TypeVar

from handrail.library.shelf.word_meanings import MEANINGS, STOP_WORDS
from handrail.library.shelf.workflow_entry import WorkflowEntry

WEIGHTS: Final = {"id": 8.0, "name": 6.0, "tags": 4.0, "category": 3.0, "description": 2.0, "titles": 1.0}
"""How much a word of the query counts in each field."""
SIMILAR: Final = 0.5
"""How much a word of the same meaning counts, compared with the word itself."""
STEMS_KEPT: Final = 20_000
SHORT: Final = 3
"""Words up to this length have no endings."""
ENDINGS: Final = (
    ("ingly", "", 4),
    ("ing", "", 3),
    ("edly", "", 4),
    ("ed", "", 3),
    ("ization", "iz", 3),
    ("isation", "is", 3),
    ("entation", "ent", 3),
    ("iness", "i", 3),
    ("ness", "", 4),
    ("ment", "", 5),
    ("ion", "", 4),
    ("ily", "i", 3),
    ("ly", "", 4),
    ("er", "", 4),
    ("e", "", 3),
    ("y", "i", 3),
)
"""Endings, what each becomes, and how many letters must be left before it; every one that fits is taken, in order."""

T = TypeVar("T")

_word = re.compile(r"[^\W_]+")
_doubled = re.compile(r"([bdfgmnprt])\1$")
_NONE: Final[Mapping[str, float]] = {}


def split(text: str) -> frozenset[str]:
    """The stems of a string's words without stop words; of all of them if there are no others."""
    words = frozenset(_word.findall(text.lower()))
    return frozenset(map(stem_of, words - STOP_WORDS or words))


@lru_cache(STEMS_KEPT)
def stem_of(word: str) -> str:
    """What the forms of a word have in common: `tests` and `testing`, `deploy` and `deployment`."""
    if len(word) <= SHORT or not word.isascii():
        return word
    word = _singular(word)
    for ending, becomes, least in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= least:
            word = word.removesuffix(ending) + becomes
            if ending in {"ing", "ed", "er"}:
                word = _doubled.sub(r"\1", word)
    return word


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def matching(query: str, items: Sequence[T], *, heading: Callable[[T], str], text: Callable[[T], str]) -> list[T]:
    """The items with words of a query, best match first; all of them without a query. For short lists without an index:
    a word in the heading counts more than one in the text."""
    words = split(query)
    if not words:
        return list(items)
    scored = [(3 * len(words & split(heading(one))) + len(words & split(text(one))), one) for one in items]
    return [one for points, one in sorted(scored, key=lambda pair: -pair[0]) if points]


class WordIndex:
    """An inverted index: the entries of each stem and meaning, so that a search reads only entries that have it."""

    def __init__(self, entries: Iterable[WorkflowEntry]) -> None:
        self._by_stem: dict[str, dict[str, float]] = {}
        self._by_meaning: dict[int, dict[str, float]] = {}
        self._size = 0
        for entry in entries:
            self._size += 1
            for name, weight in WEIGHTS.items():
                value = getattr(entry, name)
                text = value if isinstance(value, str) else " ".join(value)
                stems = set(map(stem_of, _word.findall(text.lower())))
                _add(self._by_stem, stems, entry.id, weight)
                _add(self._by_meaning, _meanings(stems), entry.id, weight * SIMILAR)

    def scores(self, query: frozenset[str]) -> Mapping[str, float]:
        """How well entries match a query of stems, by id; without those that do not match.

        What only a few entries have counts more than what most have."""
        points: dict[str, float] = {}
        of_stems = (self._by_stem.get(stem, _NONE) for stem in query)
        of_meanings = (self._by_meaning.get(meaning, _NONE) for meaning in _meanings(query))
        for found in (*of_stems, *of_meanings):
            rarity = math.log1p(self._size / len(found)) if found else 0.0
            for entry, weight in found.items():
                points[entry] = points.get(entry, 0.0) + weight * rarity
        return points


def _meant() -> dict[str, tuple[int, ...]]:
    meant: dict[str, tuple[int, ...]] = {}
    for number, words in enumerate(MEANINGS):
        for stem in {stem_of(word) for word in words}:
            meant[stem] = (*meant.get(stem, ()), number)
    return meant


_MEANT: Final[Mapping[str, tuple[int, ...]]] = _meant()
"""By stem: the numbers of its meanings."""


def _meanings(stems: Iterable[str]) -> set[int]:
    return {meaning for stem in stems for meaning in _MEANT.get(stem, ())}


def _add(index: dict[T, dict[str, float]], keys: Iterable[T], entry: str, weight: float) -> None:
    for key in keys:
        found = index.setdefault(key, {})
        found[entry] = found.get(entry, 0.0) + weight
