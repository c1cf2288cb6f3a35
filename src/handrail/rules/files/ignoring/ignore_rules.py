"""What a project is compared with: also what decided at that time which files git ignores, and which of its patterns
are still the same. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from handrail.rules.files.git_language import Hidden

OUTER: Final = ".git/info/exclude"
"""Stands for all patterns outside of the work tree, also those of `core.excludesFile`."""
BY_RULES: Final = "rules:"
"""How the mark of `OUTER` starts. In older journals it is that of the file."""
SPARSE: Final = ".git/info/sparse-checkout"
"""Stands for the files that a sparse checkout leaves out; not there if it leaves out none."""
BY_NAMES: Final = "sparse:"
"""How the mark of `SPARSE` starts."""
IN_TREE: Final = ".gitignore"

_entry = re.compile(rb"([0-9a-f]+) blob (\d+)\n")


class Rules(Struct, frozen=True):
    """What decided at some time which files are ignored."""

    commit: str
    dirty: Mapping[str, str]
    is_bare: bool = False
    """Whether there was no repository then."""

    def outer_differs(self, now: str) -> bool:
        """Whether the patterns outside of the work tree are others than then, by their mark; not if that is unknown."""
        known = self.dirty.get(OUTER, BY_RULES if self.is_bare else "")
        return known.startswith(BY_RULES) and known != now


class Since(Struct, frozen=True):
    """What a project is compared with."""

    commit: str
    """The name of a commit."""
    name: str
    """In words."""
    dirty: Mapping[str, str] = field(default_factory=dict)
    """The digests of the files that were not committed then."""
    is_bare: bool = False
    """Whether there was no repository then: `dirty` has all files, and no commit is known to be older."""

    @property
    def rules(self) -> Rules:
        """What decided then which files are ignored."""
        return Rules(self.commit, self.dirty, self.is_bare)


class _Every:
    def __contains__(self, _pattern: object) -> bool:
        return True


EVERY: Final[Container[str]] = _Every()
"""The patterns of a file that has not changed."""


def mark_of_patterns(text: bytes) -> str:
    """The mark of patterns outside of the work tree; only how it starts if there are none."""
    lines = (line for line in text.splitlines() if not line.startswith(b"#"))
    patterns = b"\n".join(line for line in lines if line.strip())
    return BY_RULES + (hashlib.sha256(patterns).hexdigest()[:32] if patterns else "")


def mark_of_apart(names: Sequence[str]) -> str:
    """The mark of the files that a sparse checkout leaves out."""
    listed = "\0".join(sorted(names)).encode(errors="surrogateescape")
    return BY_NAMES + (hashlib.sha256(listed).hexdigest()[:32] if names else "")


def is_inner(one: Hidden) -> bool:
    """Whether the pattern is in a file of the work tree: the others have a whole path."""
    return not one.source.startswith("/") and one.source.rpartition("/")[2] == IN_TREE


def sources_of(hidden: Sequence[Hidden]) -> list[str]:
    """The files of the work tree that the patterns are in, from the top."""
    return sorted({one.source for one in hidden if is_inner(one)})


def newly_hidden(hidden: Sequence[Hidden], old: Mapping[str, Container[str]], *, outer_differs: bool) -> list[str]:
    """What is ignored only by patterns that are new; `old` has those that are not, by file."""
    return [one.path for one in hidden if (one.pattern not in old[one.source] if is_inner(one) else outer_differs)]


def kept_patterns(old: bytes, now: bytes) -> Container[str]:
    """The patterns of a file that are still as they were. One with exceptions is the same only as a whole: their order
    counts."""
    lines = [line.strip() for line in old.decode(errors="surrogateescape").splitlines()]
    has_exceptions = any(line.startswith("!") for line in lines)
    return lines if now == old or not has_exceptions else ()


def contents_in_order(asked: Sequence[str], said: bytes) -> dict[str, bytes]:
    """The contents of what was asked for, from `cat-file --batch`; without what is missing."""
    found: dict[str, bytes] = {}
    at = 0
    for one in asked:
        entry = _entry.match(said, at)
        if entry is None:
            at = said.index(b"\n", at) + 1
            continue
        end = entry.end() + int(entry[2])
        found[one], at = said[entry.end() : end], end + 1
    return found
