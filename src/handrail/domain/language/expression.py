"""Expressions: the small typed language of conditions, loops and outputs, with Python's syntax and JSON values.

Pure. expression_text.py parses the text into a syntax tree; expression_compiler.py turns the tree into a function of
values, which uses expression_path.py, expression_comparison.py and expression_functions.py. What is certainly wrong by
the known shapes is an error at load; the rest is an error at evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from handrail.domain.checks.finding import Path
from handrail.domain.errors import Invalid
from handrail.domain.json import Json
from handrail.domain.language.expression_compiler import Compiler
from handrail.domain.language.expression_functions import ExpressionFunction
from handrail.domain.language.expression_path import Read
from handrail.domain.language.expression_text import parse
from handrail.domain.language.expression_value import ExpressionRefused, Frame, kind, spoken, spoken_shape
from handrail.domain.language.shape import BOOLEAN, Shape

Scope: TypeAlias = Mapping[str, Shape]
"""The names an expression can see: inputs, vars, steps, run, output, loop names."""


class ExpressionError(Invalid):
    """An expression that can't be parsed or does not match its types and values; the message is the reason."""

    def __init__(self, message: str, *, source: str, column: int) -> None:
        super().__init__(message, hint="fix the expression at the named column")
        self.source = source
        self.column = column


class Expression(Struct, frozen=True):
    """An expression that was checked against its scope."""

    source: str
    shape: Shape
    paths: tuple[Path, ...]
    """Every path it reads, once each."""
    size: int
    read: Read

    def evaluate(self, values: Mapping[str, Json]) -> Json:
        """Its value; ExpressionError if the values do not allow it."""
        try:
            return self.read(Frame(values))
        except ExpressionRefused as refused:
            raise _error(refused, self.source) from None


def compile_expression(source: str, scope: Scope) -> Expression:
    """The expression, checked against the names and shapes it can see."""
    try:
        return piped_expression(source, scope, filters={})
    except ExpressionRefused as refused:
        raise _error(refused, source) from None


def compile_condition(source: str, scope: Scope) -> Expression:
    """The expression, checked to give true or false: at load if the shape is known, else when it is evaluated."""
    try:
        return condition(source, scope)
    except ExpressionRefused as refused:
        raise _error(refused, source) from None


def piped_expression(source: str, scope: Scope, filters: Mapping[str, ExpressionFunction]) -> Expression:
    """For templates: an expression with optional filters, `path | upper`; raises ExpressionRefused."""
    parsed = parse(source)
    compiler = Compiler(source, scope, parsed.strings, filters)
    term = compiler.piped(parsed.tree)
    return Expression(source, term.shape, tuple(compiler.paths), parsed.size, term.read)


def condition(source: str, scope: Scope) -> Expression:
    """For templates: an expression that gives true or false; raises ExpressionRefused."""
    expression = piped_expression(source, scope, filters={})
    read, column = expression.read, len(source) - len(source.lstrip()) + 1
    if not expression.shape.admits("boolean"):
        raise _not_boolean(spoken_shape(expression.shape), column)

    def read_boolean(frame: Frame) -> Json:
        value = read(frame)
        if value is not True and value is not False:
            raise _not_boolean(spoken(kind(value)), column)
        return value

    return replace(expression, shape=BOOLEAN, read=read_boolean)


def _not_boolean(what: str, column: int) -> ExpressionRefused:
    advice = 'compare it, e.g. x != "", len(x) > 0, exists(x)'
    return ExpressionRefused(f"a condition must be true or false; this is {what}: {advice}", column)


def _error(refused: ExpressionRefused, source: str) -> ExpressionError:
    return ExpressionError(refused.reason, source=source, column=max(1, refused.column))
