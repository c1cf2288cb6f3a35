"""Terms: the compiled parts of an expression, and the checks that all kinds of parts share.

Pure. The kinds of parts are in expression_compiler.py."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final, NamedTuple

from handrail.domain.json import Json
from handrail.domain.language.expression_comparison import COMPARISONS, Test
from handrail.domain.language.expression_path import Read
from handrail.domain.language.expression_value import ExpressionRefused, Frame, kind, spoken, spoken_shape
from handrail.domain.language.shape import Shape

TRUTH: Final = frozenset({"boolean"})
TEXT_SHOWN_MAX: Final = 60


class Term(NamedTuple):
    """A part of an expression: the shape of its value, how to read it, and its text for messages."""

    shape: Shape
    read: Read
    text: str
    column: int


def shown(text: str) -> str:
    """A part of a source, short enough for a message."""
    return text if len(text) <= TEXT_SHOWN_MAX else f"{text[:TEXT_SHOWN_MAX]}..."


def tested(operation: ast.cmpop, left: Term, right: Term) -> Test:
    """The comparison of two terms; refused if their shapes do not allow it."""
    comparison = COMPARISONS[type(operation)]
    if reason := comparison.clash(left.shape, right.shape):
        raise _clash(reason, left, spoken_shape(left.shape), right, spoken_shape(right.shape))

    def test(frame: Frame, one: Json, other: Json) -> bool:
        try:
            return comparison.test(frame, one, other)
        except ExpressionRefused as refused:
            raise _clash(refused.reason, left, spoken(kind(one)), right, spoken(kind(other))) from None

    return test


def checked(name: str, takes: frozenset[str], term: Term) -> Term:
    """The term, if its shape allows one of these types (empty: any type); else refused."""
    if takes and not term.shape.admits(*takes):
        reason = f"{name} needs {spoken(*takes)}, but {term.text} is {spoken_shape(term.shape)}"
        raise ExpressionRefused(reason, term.column)
    return term


def check_count(node: ast.expr, name: str, arguments: Sequence[object], *, most: int, optional: int = 0) -> None:
    """Refuse a call with too few or too many arguments."""
    if not most - optional <= len(arguments) <= most:
        least = f"{most - optional} to " if optional else ""
        plural = "" if most == 1 else "s"
        raise ExpressionRefused(
            f"{name} takes {least}{most} argument{plural} in (...), not {len(arguments)}", node.col_offset
        )


def wrong_type(name: str, takes: frozenset[str], term: Term, value: Json) -> ExpressionRefused:
    """The error for a value that does not have one of these types."""
    advice = "; use default(...)" if value is None else ""
    reason = f"{name} needs {spoken(*takes)}, but {term.text} is {spoken(kind(value))}{advice}"
    return ExpressionRefused(reason, term.column)


def _clash(reason: str, left: Term, one: str, right: Term, other: str) -> ExpressionRefused:
    return ExpressionRefused(f"{reason}: {left.text} is {one}, {right.text} is {other}", left.column)
