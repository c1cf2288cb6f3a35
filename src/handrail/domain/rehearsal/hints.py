"""Hints: the values that the conditions of a workflow compare with, so that both outcomes can be tried.

Pure. Reads the syntax trees of conditions only as far as needed; what it does not understand gives no hint, and then
the path explorer reports that it has not tried everything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from typing import Any, Final, TypeAlias

from msgspec import Struct

from handrail.domain.checks.finding import Path
from handrail.domain.language.expression_path import written_path
from handrail.domain.language.expression_text import Parsed, parse
from handrail.domain.language.expression_value import ExpressionRefused

OTHER: Final = "something else"
TEXT: Final = "a text that is long enough for what people ask of one"
"""The text to use where nothing more is known."""
FAR: Final = 1_000_000


class Size(Struct, frozen=True):
    """A list, text or object of this length."""

    length: int


class With(Struct, frozen=True):
    """A list or text that contains this."""

    part: Any


class Absent(Struct, frozen=True):
    """No value: the key is missing."""


Try: TypeAlias = Size | With | Absent | bool | int | float | str | None
"""A value to try at a path, or a description of one."""
Hint: TypeAlias = tuple[Path, tuple[Any, ...]]
"""A path that a condition reads, and what to try there."""

_TRUTH: Final = (True, False)
_CONSTANTS: Final = {"true": True, "True": True, "false": False, "False": False, "null": None, "None": None}
_TEXT_FUNCTIONS: Final = frozenset({"lower", "upper", "word"})
_PART_FUNCTIONS: Final = frozenset({"contains", "starts_with", "ends_with"})


def condition_hints(source: str) -> list[Hint]:
    """What to try for each value that a condition reads."""
    try:
        parsed = parse(source)
        return list(_HintReader(parsed).of(parsed.tree))
    except ExpressionRefused:
        return []


def list_hints(source: str) -> list[Hint]:
    """What to try for the list that a loop iterates over."""
    path = path_in(source)
    return [(path, (Size(0), Size(1), Size(2)))] if path is not None else []


def path_in(source: str) -> Path | None:
    """The path if an expression is nothing but a path, with or without a default; else None."""
    try:
        parsed = parse(source)
        tree = parsed.tree
        if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) and tree.func.id == "default" and tree.args:
            tree = tree.args[0]
        return written_path(tree, parsed.strings).keys
    except ExpressionRefused:
        return None


class _HintReader:
    def __init__(self, parsed: Parsed) -> None:
        self.strings = parsed.strings

    def of(self, node: ast.expr) -> Iterator[Hint]:
        """The hints in a Boolean expression."""
        match node:
            case ast.BoolOp(values=values):
                for value in values:
                    yield from self.of(value)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield from self.of(operand)
            case ast.Compare(left=left, ops=ops, comparators=rest):
                for one, sign, other in zip([left, *rest[:-1]], ops, rest, strict=True):
                    yield from self.compared(one, sign, other)
            case _:
                yield from self.asked(node)

    def asked(self, node: ast.expr) -> Iterator[Hint]:
        """The hints in a Boolean function or value."""
        match node:
            case ast.Call(func=ast.Name(id="exists"), args=[inner]):
                yield from self.at(inner, (Absent(),))
            case ast.Call(func=ast.Name(id=name), args=[inner, part]) if name in _PART_FUNCTIONS:
                yield from self.at(inner, tuple(map(With, self.literals(part))))
            case ast.Call(func=ast.Name(id="is_number"), args=[inner]):
                yield from self.at(inner, (OTHER,))
            case ast.Call(func=ast.Name(id="matches"), args=[inner, _]):
                yield from self.at(inner, (OTHER,))
            case _:
                yield from self.at(node, _TRUTH)

    def compared(self, one: ast.expr, sign: ast.cmpop, other: ast.expr) -> Iterator[Hint]:
        mine, theirs = self.literals(one), self.literals(other)
        if isinstance(sign, ast.In | ast.NotIn):
            yield from self.at(one, _members(theirs))
            yield from self.at(other, (*map(With, mine or [TEXT]), Size(0)))
        elif mine or theirs:
            yield from self.at(one, tuple(chain.from_iterable(map(_around, theirs))))
            yield from self.at(other, tuple(chain.from_iterable(map(_around, mine))))
        else:  # two values from elsewhere: try them equal, and far apart
            apart = (TEXT, OTHER) if isinstance(sign, ast.Eq | ast.NotEq) else (0, FAR)
            yield from self.at(one, apart)
            yield from self.at(other, apart)

    def at(self, node: ast.expr, tries: tuple[Any, ...]) -> Iterator[Hint]:
        """A hint for the path that a node is, or that a function reads."""
        match node:
            case ast.Call(func=ast.Name(id="len"), args=[inner]):
                yield from self.at(inner, _sizes(tries))
            case ast.Call(func=ast.Name(id="default"), args=[inner, _]):
                yield from self.at(inner, (*tries, Absent()))
            case ast.Call(func=ast.Name(id=name), args=[inner]) if name in _TEXT_FUNCTIONS:
                yield from self.at(inner, tries)
            case ast.Name() | ast.Attribute() | ast.Subscript() if tries:
                yield written_path(node, self.strings).keys, tries
            case _:
                return

    def literals(self, node: ast.expr) -> list[Any]:
        """The constant value of a node, in a list; empty if it is not constant."""
        match node:
            case ast.Constant(value=str()):
                return [self.strings[node.col_offset]]
            case ast.Constant(value=value):
                return [value]
            case ast.Name(id=name) if name in _CONSTANTS:
                return [_CONSTANTS[name]]
            case ast.List(elts=elements):
                return [[*chain.from_iterable(map(self.literals, elements))]]
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return [-value]
            case _:
                return []


def _members(lists: list[Any]) -> tuple[Any, ...]:
    """The members of a literal list and one value that is not in it; any text if the list comes from elsewhere."""
    inside = [value for listed in lists if isinstance(listed, list) for value in listed]
    return (*inside, *map(_unlike, inside[:1])) if lists else (TEXT,)


def _sizes(numbers: tuple[Any, ...]) -> tuple[Size, ...]:
    return tuple(Size(int(number)) for number in numbers if isinstance(number, int | float) and number >= 0)


def _around(value: Any) -> tuple[Any, ...]:
    match value:
        case bool():
            return (value, not value)
        case int() | float():
            return (value, value - 1, value + 1)
        case list():
            return (Size(0), Size(len(value) or 1))
        case None:
            return (Absent(),)
        case _:
            return (value, _unlike(value))


def _unlike(value: Any) -> Any:
    return OTHER if isinstance(value, str) else value + 1 if isinstance(value, int) else None
