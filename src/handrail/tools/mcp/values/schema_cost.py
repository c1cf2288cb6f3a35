"""Whether a server's schema can be applied in reasonable time: some would take practically forever.

Pure. References that double a schema at each step, or lead back into it, make validation exponential in a few hundred
bytes, and a validator can't be interrupted. So the size is counted as if all references were expanded."""

from __future__ import annotations

from typing import Any, Final

EXPANDED_MAX: Final = 20_000
WORK_MAX: Final = 200_000_000
"""Parts of the schema times bytes of the value: about a second at most."""


def is_affordable(schema: Any, value_bytes: int) -> bool:
    """Whether a value of that size can be validated in a short time."""
    try:
        size = _size(schema, schema, {})
    except RecursionError:
        return False
    return size <= EXPANDED_MAX and size * value_bytes <= WORK_MAX


def _size(part: Any, root: Any, known: dict[str, int]) -> int:
    """The number of parts with references expanded; more than is affordable if that can't be counted."""
    if isinstance(part, list):
        return min(1 + sum(_size(item, root, known) for item in part), EXPANDED_MAX + 1)
    if not isinstance(part, dict):
        return 1
    total = 1
    for key, value in part.items():
        if key in {"$ref", "$dynamicRef", "$recursiveRef"}:
            total += _referred(value, root, known)
        elif key not in {"$defs", "definitions"}:
            total += _size(value, root, known)
    return min(total, EXPANDED_MAX + 1)


def _referred(reference: Any, root: Any, known: dict[str, int]) -> int:
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return EXPANDED_MAX + 1  # the whole schema again, or a location that only a validator can resolve
    if reference not in known:
        known[reference] = EXPANDED_MAX + 1  # while it is being counted: a reference found inside of it is recursive
        known[reference] = _size(_at(root, reference), root, known)
    return known[reference]


def _at(root: Any, reference: str) -> Any:
    part = root
    for step in reference[2:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        part = part.get(name) if isinstance(part, dict) else None
    return part
