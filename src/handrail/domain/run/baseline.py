"""The baseline: the state of a project when a run started, or when a step of it was given out.

Values only. Rules compare the project with it: what was committed in the meantime has changed, too, and what was not
committed before has not. rules/files/baseline.py looks at the project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field


class Baseline(Struct, frozen=True, kw_only=True):
    """A project as it was then, as far as git knows it."""

    commit: str = ""
    branch: str = ""
    """Empty if no branch was checked out."""
    tree: str = ""
    """The digest of all files; empty if that would have taken too long."""
    dirty: Mapping[str, Any] = field(default_factory=dict)
    """By path: a digest of each file that was not as in the commit; empty if it was deleted."""
    more: int = 0
    """How many such files there were besides those in `dirty`."""
    missing: str = ""
    """Why there is no commit to compare with, in words: there was no repository, or it could not be read."""

    def is_as(self, other: Baseline | None) -> bool:
        """Whether nothing has changed between the two, as far as is known."""
        if other is None or self.more or other.more:
            return False
        return _compared(self) == _compared(other)


def _compared(one: Baseline) -> tuple[Any, ...]:
    return one.commit, one.branch, one.dirty, one.missing
