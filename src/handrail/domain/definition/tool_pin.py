"""Pins: how a tool server described a tool when a plan was saved or a run started, and how that differs from now.

Pure. A server that changes a tool's description, arguments or annotations after that is not trusted: the step stops and
a person is asked, with the difference in words. engine/running/calls/attempt.py asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import ndiff
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

from handrail.domain.json import canonical_bytes, digest

LINES_MAX: Final = 30
LINE_LENGTH_MAX: Final = 300
DEPTH_MAX: Final = 6

Card = Mapping[str, Any]
"""What is pinned of a tool: name, description, args, and annotations (if it only reads, destroys, may be repeated)."""
ANNOTATIONS: Final = "annotations"
NO_CARDS: Final[Mapping[str, Card]] = MappingProxyType({})


def pins_of(cards: Mapping[str, Card]) -> Mapping[str, str]:
    """The content hash of each tool's description."""
    return {name: digest(card) for name, card in sorted(cards.items())}


def digests_of(card: Card) -> tuple[str, ...]:
    """The content hashes under which a card counts as known: its own, and that of a pin from before annotations."""
    without = {name: value for name, value in card.items() if name != ANNOTATIONS}
    return (digest(card), digest(without)) if len(without) < len(card) else (digest(card),)


def texts_of(cards: Mapping[str, Card]) -> tuple[tuple[str, bytes], ...]:
    """Each tool's description as it is stored, by its content hash."""
    return tuple((digest(card), canonical_bytes(card)) for card in cards.values())


def difference(before: Card | None, after: Card) -> str:
    """What changed in a server's description of a tool, as lines of text; without the old card, only the new one."""
    if before is None:
        return f"its earlier description is unknown; now it is: {_short(str(after.get('description', '')))}"
    lines = list(islice(_changes(before, after), LINES_MAX + 1))
    if len(lines) > LINES_MAX:
        lines[LINES_MAX:] = ["and more"]
    return "\n".join(lines)


def _changes(before: Card, after: Card) -> Iterator[str]:
    if before.get("description") != after.get("description"):
        yield "description:"
        old, new = (str(card.get("description", "")).splitlines() for card in (before, after))
        yield from (f"  {_short(line)}" for line in ndiff(old[:200], new[:200]) if line[:1] in "+-")
    yield from _altered(before.get("args"), after.get("args"), "args")
    if ANNOTATIONS in before:
        yield from _altered(before[ANNOTATIONS], after.get(ANNOTATIONS), ANNOTATIONS)


def _altered(before: Any, after: Any, place: str, depth: int = 0) -> Iterator[str]:
    """The places in a schema that have changed, each with its old and new value."""
    if before == after:
        return
    if not isinstance(before, Mapping) or not isinstance(after, Mapping) or depth >= DEPTH_MAX:
        yield f"{place}: {_shown(before)} -> {_shown(after)}"
        return
    for name in sorted({*before, *after}):
        inner = f"{place}.{name}"
        if name not in after:
            yield f"{inner}: removed (was {_shown(before[name])})"
        elif name not in before:
            yield f"{inner}: added: {_shown(after[name])}"
        else:
            yield from _altered(before[name], after[name], inner, depth + 1)


def _shown(value: Any) -> str:
    return _short(canonical_bytes(value).decode())


def _short(text: str) -> str:
    return text if len(text) <= LINE_LENGTH_MAX else f"{text[:LINE_LENGTH_MAX]}..."
