"""Comparison of two values: the rules for shapes, at load, and the same rules for values.

Pure. Booleans are never numbers. A comparison whose result follows from the types alone is refused, since it is most
likely a mistake. Nothing recurses, so deep values are safe."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeAlias, cast

from handrail.domain.json import Json
from handrail.domain.language.expression_value import ExpressionRefused, Frame, kind
from handrail.domain.language.shape import ANY, Shape

Test: TypeAlias = Callable[[Frame, Json, Json], bool]

NEVER_EQUAL: Final = "values of different types are never equal"
NO_ORDER: Final = "only two numbers or two strings have an order"
NOT_A_NAME: Final = "only a string can be in a string or be a name in an object"
HOLDS_NOTHING: Final = "only a list, an object or a string can contain something"
NOT_AMONG: Final = "no item has the type that is searched for"


class Comparison(NamedTuple):
    """An operator: why two shapes can't be compared (or nothing), and the test of two values."""

    clash: Callable[[Shape, Shape], str]
    test: Test


def equality_clash(left: Shape, right: Shape) -> str:
    """Why two shapes can't be tested for equality; empty if they can."""
    return NEVER_EQUAL if _can_never_be_equal(left, right) else ""


def order_clash(left: Shape, right: Shape) -> str:
    """Why two shapes have no order; empty if they have."""
    return "" if any(left.admits(what) and right.admits(what) for what in ("number", "string")) else NO_ORDER


def membership_clash(wanted: Shape, container: Shape) -> str:
    """Why one shape can't be in the other; empty if it can."""
    if not container.admits("array", "object", "string"):
        return HOLDS_NOTHING
    if not container.admits("array"):
        return "" if wanted.admits("string") else NOT_A_NAME
    is_list = container.types == {"array"}
    return NOT_AMONG if is_list and _can_never_be_equal(wanted, container.items or ANY) else ""


def _can_never_be_equal(left: Shape, right: Shape) -> bool:
    known = left.types and right.types
    return bool(known) and left.types.isdisjoint(right.types) and "null" not in left.types | right.types


def equal(frame: Frame, left: Json, right: Json) -> bool:
    """Whether two values are equal; values of different types are refused, except null."""
    if isinstance(left, str) and isinstance(right, str):  # by far the most common case
        frame.spend(len(left))
        return left == right
    kinds = {kind(left), kind(right)}
    if len(kinds) > 1 and "null" not in kinds:
        raise ExpressionRefused(NEVER_EQUAL)
    return same(frame, left, right)


def same(frame: Frame, left: Json, right: Json) -> bool:
    """Whether two values have the same type and are equal, at every level."""
    pairs: list[tuple[Any, Any]] = [(left, right)]
    while pairs:
        inner = _inner_pairs(frame, *pairs.pop())
        if inner is None:
            return False
        pairs.extend(inner)
    return True


def _inner_pairs(frame: Frame, left: Any, right: Any) -> Iterable[tuple[Any, Any]] | None:
    """The pairs inside that must also be equal; None if these already differ."""
    what = kind(left)
    if what != kind(right):
        return None
    if what not in ("string", "array", "object"):
        return () if left == right else None
    if len(left) != len(right):
        return None
    frame.spend(len(left))
    if what == "string":
        return () if left == right else None
    if what == "array":
        return zip(left, right, strict=True)
    return zip(left.values(), map(right.get, left), strict=True) if left.keys() == right.keys() else None


def ordered(compare: Callable[[Any, Any], bool], frame: Frame, left: Json, right: Json) -> bool:
    """The order of two numbers or two strings; nothing else has one."""
    what = kind(left)
    if what not in ("number", "string") or what != kind(right):
        raise ExpressionRefused(NO_ORDER)
    if isinstance(left, str):
        frame.spend(len(left))
    return compare(left, right)


def member(frame: Frame, wanted: Json, container: Json) -> bool:
    """Whether a list has an item, an object a field, or a string a part."""
    if isinstance(container, str | Mapping):
        if not isinstance(wanted, str):
            raise ExpressionRefused(NOT_A_NAME)
        frame.spend(len(container))
        return wanted in container
    if kind(container) != "array":
        raise ExpressionRefused(HOLDS_NOTHING)
    return _among(frame, wanted, cast("Sequence[Json]", container))


def _among(frame: Frame, wanted: Json, items: Sequence[Json]) -> bool:
    what = kind(wanted)
    if isinstance(wanted, str):
        frame.spend(len(items) * (1 + len(wanted) // 16))
        is_there = wanted in items  # only a string equals a string, so Python's own fast search is correct
    else:
        frame.spend(len(items) * 8)
        is_there = any(same(frame, item, wanted) for item in items)
    if items and not is_there and what != "null" and {what, "null"}.isdisjoint(map(kind, items)):
        raise ExpressionRefused(NOT_AMONG)
    return is_there


def _not(test: Test) -> Test:
    return lambda frame, left, right: not test(frame, left, right)


COMPARISONS: Final[Mapping[type[ast.cmpop], Comparison]] = {
    ast.Eq: Comparison(equality_clash, equal),
    ast.NotEq: Comparison(equality_clash, _not(equal)),
    ast.Lt: Comparison(order_clash, partial(ordered, operator.lt)),
    ast.LtE: Comparison(order_clash, partial(ordered, operator.le)),
    ast.Gt: Comparison(order_clash, partial(ordered, operator.gt)),
    ast.GtE: Comparison(order_clash, partial(ordered, operator.ge)),
    ast.In: Comparison(membership_clash, member),
    ast.NotIn: Comparison(membership_clash, _not(member)),
}
