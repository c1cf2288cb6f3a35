"""What differs between two values of JSON, place by place. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final

from handrail.interfaces.http.contract.given.runs import ValueDifference

DIFFERENCES_MAX: Final = 500
DEPTH_MAX: Final = 60
MISSING: Final = object()


def differences(a: Any, b: Any) -> tuple[tuple[ValueDifference, ...], bool]:
    """The differences in written order, and whether there are more than are listed."""
    found: list[ValueDifference] = []
    for one in _between(a, b, "", 0):
        if len(found) == DIFFERENCES_MAX:
            return tuple(found), True
        found.append(one)
    return tuple(found), False


def _between(a: Any, b: Any, where: str, depth: int) -> Iterator[ValueDifference]:
    parts = _parts(a, b, where) if depth < DEPTH_MAX else None
    if a is MISSING:
        yield ValueDifference(where=where, sign="+", b=b)
    elif b is MISSING:
        yield ValueDifference(where=where, sign="-", a=a)
    elif parts is not None:
        for place, one, other in parts:
            yield from _between(one, other, place, depth + 1)
    elif a != b or type(a) is not type(b):
        yield ValueDifference(where=where, sign="~", a=a, b=b)


def _parts(a: Any, b: Any, where: str) -> Iterator[tuple[str, Any, Any]] | None:
    """The parts of two values of one kind, side by side; None if they have none."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return (
            (f"{where}.{name}" if where else str(name), a.get(name, MISSING), b.get(name, MISSING))
            for name in dict.fromkeys((*a, *b))
        )
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        both = zip_longest(a, b, fillvalue=MISSING)
        return ((f"{where}[{index}]", one, other) for index, (one, other) in enumerate(both))
    return None
