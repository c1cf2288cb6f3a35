"""Pruning: removes the parts of a document with a wrong structure, so that the rest can be checked in the same call.

Only parts that do not affect order, names or effects are removed: no finding may be caused by the removal."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Flaw, Path
from handrail.library.documents.document import Document

LOCAL_KEYS: Final = (
    *("title", "description", "category", "tags", "license", "version", "preconditions", "clarify", "guidance"),
    *("max_parallel", "deadline", "priority", "on_failure", "role", "confirm", "model", "timeout", "retry"),
    *("idempotent", "by", "expires", "every", "skippable", "runs_on"),
)
"""Keys that change nothing for the other steps."""

MEANINGFUL_KEYS: Final = (
    *("id", "name", "extends", "inputs", "outputs", "steps", "after", "when", "insert_after", "effect", "undo"),
    *("prompt", "tool", "args", "output", "checks", "approve", "workflow", "with", "each", "as", "parallel", "max"),
    *("repeat", "until", "while", "times", "at_max", "revisit"),
)
"""If an unknown key may be a typo of one of these, the meaning of the rest is unknown."""


def pruned(document: Document, flaws: Iterable[Flaw]) -> Document | None:
    """The document without the parts with flaws; None if that would change the meaning of the rest."""
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
    """The key to remove: the unknown one, or the local one around the flaw."""
    if flaw.on_key and flaw.path:
        near = get_close_matches(str(flaw.path[-1]), (*LOCAL_KEYS, *MEANINGFUL_KEYS), 1)
        return None if near and near[0] in MEANINGFUL_KEYS else flaw.path
    for length, part in enumerate(flaw.path, 1):
        if part in LOCAL_KEYS:
            return flaw.path[:length]
    return None


def _without(value: Any, path: Path) -> Any:
    first, rest = path[0], path[1:]
    if isinstance(value, list):
        return [_without(item, rest) if index == first else item for index, item in enumerate(value)]
    if first not in value:
        return value  # already removed by a longer path
    return {key: _without(item, rest) if key == first else item for key, item in value.items() if rest or key != first}
