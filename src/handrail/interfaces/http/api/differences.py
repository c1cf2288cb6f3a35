"""What differs between two values of JSON, place by place. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from handrail.interfaces.http.contract.given import ValueDifference

DIFFERENCES_MAX: Final = 500
DEPTH_MAX: Final = 60
MISSING: Final = object()


def differences(a: Any, b: Any) -> tuple[tuple[ValueDifference, ...], bool]:
    """The differences in written order, and whether there are more than are listed."""
    found = []
    for one in _between(a, b, "", 0):
        if len(found) == DIFFERENCES_MAX:
            return tuple(found), True
        found.append(one)
    return tuple(found), False


def _between(a: Any, b: Any, where: str, depth: int) -> Iterator[ValueDifference]:
    if a is MISSING:
        yield ValueDifference(where=where, sign="+", b=b)
    elif b is MISSING:
        yield ValueDifference(where=where, sign="-", a=a)
    elif depth < DEPTH_MAX and isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in dict.fromkeys((*a, *b)):
            place = f"{where}.{name}" if where else str(name)
            yield from _between(a.get(name, MISSING), b.get(name, MISSING), place, depth + 1)
    elif depth < DEPTH_MAX and isinstance(a, list | tuple) and isinstance(b, list | tuple):
        for index in range(max(len(a), len(b))):
            one = a[index] if index < len(a) else MISSING
            other = b[index] if index < len(b) else MISSING
            yield from _between(one, other, f"{where}[{index}]", depth + 1)
    elif a != b or type(a) is not type(b):
        yield ValueDifference(where=where, sign="~", a=a, b=b)
