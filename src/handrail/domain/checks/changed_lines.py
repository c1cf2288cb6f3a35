"""Which lines of a project have changed, read from a patch. Pure; git is asked in rules/files/changed_lines.py."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

SPANS_SHOWN: Final = 6

_hunk = re.compile(rb"@@ -\d{1,10}(?:,\d{1,10})? \+(\d{1,10})(?:,(\d{1,10}))? @@")


class ChangedLines(Struct, frozen=True, kw_only=True):
    """The changed lines of each changed file; None if all of its lines are new."""

    files: Mapping[str, frozenset[int] | None]
    since: str
    """What it was compared with, in words."""

    def has(self, path: str, line: int) -> bool:
        """Whether a line has changed; line 0 stands for the file as a whole."""
        if path not in self.files:
            return False
        lines = self.files[path]
        return lines is None or not line or line in lines

    @property
    def count(self) -> int:
        """How many lines are known to have changed."""
        return sum(len(lines) for lines in self.files.values() if lines is not None)


def added_lines(patch: bytes) -> list[frozenset[int]]:
    """By file, in the order of a patch without context: the numbers of its added lines."""
    files: list[set[int]] = []
    for line in patch.split(b"\n"):  # each line of content starts with a sign: none is taken for a header
        if line.startswith(b"diff --git "):
            files.append(set())
        elif files and (found := _hunk.match(line)):
            files[-1].update(range(int(found[1]), int(found[1]) + int(found[2] or 1)))
    return list(map(frozenset, files))


def spans_of(lines: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted numbers as pairs of first and last."""
    starts = [at for at, line in enumerate(lines) if not at or lines[at - 1] != line - 1]
    ends = [*(at - 1 for at in starts[1:]), len(lines) - 1]
    return [(lines[first], lines[last]) for first, last in zip(starts, ends, strict=True) if lines]


def spans_in_words(lines: Sequence[int]) -> str:
    """Sorted numbers for a sentence: `3-5, 9`."""
    spans = spans_of(lines)
    shown = [f"{first}-{last}" if last > first else f"{first}" for first, last in spans[:SPANS_SHOWN]]
    return ", ".join(shown) + (" and more" if len(spans) > SPANS_SHOWN else "")
