"""Versions and ranges of versions, by SemVer 2.0: `1.2.3`, `^1`, `~1.2`, `>=1.2 <2`, `1.x`, `*`.

Pure. Which document a range selects is decided in library/resolve.py. A pre-release only matches a range that
names a pre-release of the same version: an author who asks for `^1` wants neither `2.0.0-beta` nor `1.3.0-rc.1`.
Ours, because libraries cost ten times the import or accept too much (docs/decisions/0011)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from handrail.domain.errors import Invalid

Core: TypeAlias = tuple[int, int, int]

LENGTH_MAX: Final = 200

_NUMBER: Final = r"0|[1-9][0-9]{0,8}"
_WORDS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_TAIL: Final = rf"(?:-(?P<pre>{_WORDS}))?(?:\+{_WORDS})?"
_VERSION: Final = rf"({_NUMBER})\.({_NUMBER})\.({_NUMBER}){_TAIL}"
_ANY: Final = rf"{_NUMBER}|[xX*]"
_PART: Final = rf"(?P<sign>\^|~|>=|<=|>|<|=|)\s*(?P<a>{_ANY})(?:\.(?P<b>{_ANY}))?(?:\.(?P<c>{_ANY}))?{_TAIL}(?=\s|$)"
# Compiled at their first use: loading a plan that calls nothing should not pay for them.


class Word(NamedTuple):
    """A word of a pre-release; its fields stand in the order of their weight: numbers below words, by their value."""

    is_text: bool
    number: int
    text: str


class Version(NamedTuple):
    """A version, ordered by precedence; build metadata is no part of it, because it does not count there."""

    core: Core
    is_release: bool = True  # a release stands above its pre-releases
    words: tuple[Word, ...] = ()

    def __str__(self) -> str:
        numbers = ".".join(map(str, self.core))
        return numbers if self.is_release else f"{numbers}-{'.'.join(word.text for word in self.words)}"


class Range(Struct, frozen=True):
    """The versions from `low` up to, but not including, `high`, in every one of its parts."""

    text: str
    parts: tuple[tuple[Version, Version | None], ...]
    named_pre: frozenset[tuple[int, ...]]
    """The versions of which the range names a pre-release."""

    def has(self, version: Version) -> bool:
        """Whether the range includes this version."""
        if not version.is_release and version.core not in self.named_pre:
            return False
        return all(low <= version and (high is None or version < high) for low, high in self.parts)


def parse_version(text: str) -> Version:
    """The version that a string names."""
    version = _read(text)
    if version is None:
        raise Invalid(f"{text[:LENGTH_MAX]!r} is not a version", hint="write three numbers: 1.2.0 or 1.2.0-beta.1")
    return version


def parse_range(text: str) -> Range:
    """The range that a string names; an empty string, or `*`, is every release."""
    left = text.strip()
    parts: list[tuple[Version, Version | None]] = []
    named: set[tuple[int, ...]] = set()
    while left:
        found = re.match(_PART, left) if len(text) <= LENGTH_MAX else None
        if found is None:
            raise Invalid(f"{text[:LENGTH_MAX]!r} is not a range", hint="write 1.2.3, ^1, ~1.2, >=1.2 <2, 1.x or *")
        parts.append(_bounds(found))
        if found["pre"]:
            named.add(_numbers(found))
        left = left[found.end() :].lstrip()
    return Range(text, tuple(parts), frozenset(named))


def best(versions: Iterable[str], wanted: str) -> str | None:
    """The highest of the versions that the range includes; texts that are not versions are ignored."""
    wanted_range = parse_range(wanted)
    known = [(version, text) for text in versions if (version := _read(text))]
    return max((pair for pair in known if wanted_range.has(pair[0])), default=(None, None))[1]


def _read(text: str) -> Version | None:
    found = re.fullmatch(_VERSION, text) if len(text) <= LENGTH_MAX else None
    return found and _version_of((int(found[1]), int(found[2]), int(found[3])), found["pre"])


def _bounds(found: re.Match[str]) -> tuple[Version, Version | None]:
    """The least version of one part of a range, and the first above it."""
    numbers = _numbers(found)
    if not numbers:
        return _LOWEST, None
    core = (*numbers, 0, 0)[:3]
    low = _version_of((core[0], core[1], core[2]), found["pre"])
    above = _successor(low) if len(numbers) == len(core) else _raised(core, len(numbers) - 1)
    lead = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
    bounds: Mapping[str, tuple[Version, Version | None]] = {
        "^": (low, _raised(core, lead)),
        "~": (low, _raised(core, min(1, len(numbers) - 1))),
        ">=": (low, None),
        ">": (above, None),
        "<": (_LOWEST, low),
        "<=": (_LOWEST, above),
    }
    return bounds.get(found["sign"], (low, above))


def _numbers(found: re.Match[str]) -> tuple[int, ...]:
    written = [found[name] for name in "abc"]
    numbers: list[int] = []
    for text in written:
        if text is None or not text.isdigit():
            break
        numbers.append(int(text))
    if found["pre"] and len(numbers) < len(written):
        raise Invalid(f"{found[0]!r} names a pre-release of no full version", hint="write all three numbers before it")
    return tuple(numbers)


def _raised(core: tuple[int, ...], index: int) -> Version:
    """The least version with this number one higher; its pre-releases stand above it too."""
    numbers = [*core[:index], core[index] + 1, 0, 0]
    return _version_of((numbers[0], numbers[1], numbers[2]), "0")


def _successor(version: Version) -> Version:
    """What comes right after a version in precedence, as a bound: there may be no such version."""
    return version._replace(words=(*version.words, _word("0")))


def _version_of(core: Core, pre: str | None) -> Version:
    return Version(core, not pre, tuple(map(_word, pre.split("."))) if pre else ())


def _word(text: str) -> Word:
    return Word(not text.isdigit(), int(text) if text.isdigit() else 0, text)


_LOWEST: Final = _version_of((0, 0, 0), "0")
