"""Pruning: a document without the parts whose structure is wrong, so that the rest can be judged in the same go.

Only what says nothing about order, names or effects is cut off: a finding must never be the fault of the cut."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.check import Flaw, Path
from handrail.library.document import Document

QUIET: Final = (
    *("title", "description", "category", "tags", "license", "version", "preconditions", "clarify", "guidance"),
    *("max_parallel", "deadline", "priority", "on_failure", "role", "confirm", "model", "timeout", "retry"),
    *("idempotent", "by", "expires", "every"),
)
"""Keys that change nothing for the other steps."""

LOUD: Final = (
    *("id", "name", "extends", "inputs", "outputs", "steps", "after", "when", "insert_after", "effect", "undo"),
    *("prompt", "tool", "args", "output", "checks", "approve", "workflow", "with", "each", "as", "parallel", "max"),
    *("repeat", "until", "while", "times"),
)
"""Keys that an unknown one may have been meant to be: then the meaning of the rest is unknown."""


def pruned(document: Document, flaws: Iterable[Flaw]) -> Document | None:
    """The document without what the flaws are about; None if that would change what the rest means."""
    cuts: set[Path] = set()
    for flaw in flaws:
        cut = _cut(flaw)
        if cut is None:
            return None
        cuts.add(cut)
    value = document.value
    for path in sorted(cuts, key=len, reverse=True):
        value = _without(value, path)
    return replace(document, value=value)


def _cut(flaw: Flaw) -> Path | None:
    """The key to cut off: the unknown one, or the quiet one that holds what is wrong."""
    if flaw.on_key and flaw.path:
        near = get_close_matches(str(flaw.path[-1]), (*QUIET, *LOUD), 1)
        return None if near and near[0] in LOUD else flaw.path
    for length, part in enumerate(flaw.path, 1):
        if part in QUIET:
            return flaw.path[:length]
    return None


def _without(value: Any, path: Path) -> Any:
    first, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_without(item, rest) if index == first else item for index, item in enumerate(value)]
    if first not in value:
        return value  # a longer path has taken it along
    return {key: _without(item, rest) if key == first else item for key, item in value.items() if rest or key != first}
