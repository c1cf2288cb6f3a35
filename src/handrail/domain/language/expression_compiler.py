"""Compiles a syntax tree into terms: the shape of each part of an expression, and a function that reads its value.

Pure. Only the nodes named in `Compiler._term` are allowed; everything else is refused, with what to write instead."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import isfinite
from typing import Final

from handrail.domain.checks.finding import Path
from handrail.domain.errors import Invalid
from handrail.domain.json import EXACT_INTEGER_MAX, Json
from handrail.domain.language.expression_comparison import COMPARISONS
from handrail.domain.language.expression_functions import FUNCTIONS, TEXT, ExpressionFunction, always
from handrail.domain.language.expression_path import (
    Read,
    WrittenPath,
    name_reason,
    path_reader,
    path_shape,
    tolerant_reader,
    written_path,
)
from handrail.domain.language.expression_term import TRUTH, Term, check_count, checked, shown, tested, wrong_type
from handrail.domain.language.expression_value import ExpressionRefused, Frame, kind
from handrail.domain.language.pattern import linear_pattern
from handrail.domain.language.shape import (
    BOOLEAN,
    NULL,
    NUMBER,
    STRING,
    Shape,
    array_shape,
    either,
    object_shape,
    without_null,
)

_CONSTANTS: Final[Mapping[str, Json]] = {"true": True, "false": False, "null": None}
_SPECIAL: Final = {"matches": 2, "contains": 2, "default": 2, "exists": 1}  # how many arguments
_NOT_ALLOWED: Final = "this is not allowed in an expression"
_REFUSED: Final[Mapping[type[ast.AST], str]] = {
    ast.Tuple: "write a list in brackets: [a, b]",
    ast.Set: "write a list in brackets: [a, b]",
    ast.UnaryOp: "only a written number can have a minus; there is no arithmetic here",
    ast.Call: "there are no methods here; write the function first: lower(x), starts_with(x, y)",
    ast.Sub: "there is no arithmetic here; let a step compute it and read its output",
    ast.BitOr: "a filter comes last in {{ }}, after the whole expression: (a == b) | json; elsewhere write lower(x)",
}


class Compiler:
    """Compiles one expression, and collects the paths it reads."""

    def __init__(
        self,
        source: str,
        scope: Mapping[str, Shape],
        strings: Mapping[int, str],
        filters: Mapping[str, ExpressionFunction],
    ) -> None:
        self.source = source
        self.scope = scope
        self.strings = strings
        self.filters = filters
        self.paths: dict[Path, None] = {}

    def piped(self, node: ast.expr) -> Term:
        """The term of a whole expression, with the filters after it."""
        if not (self.filters and isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
            return self._term(node)
        name, arguments = _filter_call(node.right)
        if name == "default":
            check_count(node.right, name, arguments, most=1)
            return self._default(node, self._tolerant(node.left, self.piped), self._term(arguments[0]))
        if name not in self.filters:
            reason = name_reason("there is no filter", name, [*self.filters, "default"])
            raise ExpressionRefused(reason, node.right.col_offset)
        used = self.filters[name]
        check_count(node.right, name, arguments, most=len(used.takes) - 1, optional=used.optional)
        terms = [self.piped(node.left), *map(self._term, arguments)]
        return self._call(node, name, used, terms, column=node.right.col_offset)

    def _term(self, node: ast.expr) -> Term:
        """The term of a part of an expression."""
        match node:
            case ast.Constant(value=value):
                return self._literal(node, value)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)) if (
                number is not True and number is not False
            ):
                return self._literal(node, -number)
            case ast.Name(id=name) if name in _CONSTANTS:
                return self._literal(node, _CONSTANTS[name])
            case ast.Name() | ast.Attribute() | ast.Subscript():
                return self._path(node)
            case ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return self._logic(node)
            case ast.Compare(ops=operations) if COMPARISONS.keys() >= set(map(type, operations)):
                return self._comparison(node)
            case ast.List():
                return self._list(node)
            case ast.Dict():
                return self._object(node)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._function(node, name, arguments)
            case _:
                raise _refused(node)

    def _literal(self, node: ast.expr, value: object) -> Term:
        match value:
            case str():
                text = self.strings[node.col_offset]
                return self._made(node, STRING, lambda _: text)
            case bool() | None:
                return self._made(node, NULL if value is None else BOOLEAN, lambda _: value)
            case int() | float():
                return self._number(node, value)
            case _:
                raise _refused(node)

    def _number(self, node: ast.expr, value: float) -> Term:
        is_exact = abs(value) <= EXACT_INTEGER_MAX if isinstance(value, int) else isfinite(value)
        if not is_exact:
            reason = f"the number is too large; whole numbers are exact up to {EXACT_INTEGER_MAX}"
            raise ExpressionRefused(reason, node.col_offset)
        return self._made(node, NUMBER, lambda _: value)

    def _list(self, node: ast.List) -> Term:
        items = [self._term(item) for item in node.elts]
        shape = array_shape(either(*(item.shape for item in items)) if items else None)
        return self._made(node, shape, lambda frame: [item.read(frame) for item in items])

    def _object(self, node: ast.Dict) -> Term:
        fields: dict[str, Term] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                raise ExpressionRefused("write the names in an object in quotes", (key or node).col_offset)
            name = self.strings[key.col_offset]
            if name in fields:
                raise ExpressionRefused("this name is already used", key.col_offset)
            fields[name] = self._term(value)
        shape = object_shape({name: field.shape for name, field in fields.items()})
        return self._made(node, shape, lambda frame: {name: field.read(frame) for name, field in fields.items()})

    def _path(self, node: ast.expr, reader: Callable[[WrittenPath], Read] = path_reader) -> Term:
        path = written_path(node, self.strings)
        self.paths[path.keys] = None
        return self._made(node, path_shape(path, self.scope), reader(path))

    def _tolerant(self, node: ast.expr, otherwise: Callable[[ast.expr], Term]) -> Term:
        """The term of a part that may be missing: a path that does not exist reads as null."""
        is_constant = isinstance(node, ast.Name) and node.id in _CONSTANTS
        is_path = isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and not is_constant
        return self._path(node, tolerant_reader) if is_path else otherwise(node)

    def _logic(self, node: ast.BoolOp | ast.UnaryOp) -> Term:
        if isinstance(node, ast.UnaryOp):
            return self._negation(node)
        word, decisive = ("and", False) if isinstance(node.op, ast.And) else ("or", True)
        terms = [checked(word, TRUTH, self._term(value)) for value in node.values]

        def read(frame: Frame) -> Json:
            for term in terms:
                value = term.read(frame)
                if value is decisive:
                    return decisive
                if value is not (not decisive):
                    raise wrong_type(word, TRUTH, term, value)
            return not decisive

        return self._made(node, BOOLEAN, read)

    def _negation(self, node: ast.UnaryOp) -> Term:
        term = checked("not", TRUTH, self._term(node.operand))

        def read(frame: Frame) -> Json:
            value = term.read(frame)
            if value is not True and value is not False:
                raise wrong_type("not", TRUTH, term, value)
            return not value

        return self._made(node, BOOLEAN, read)

    def _comparison(self, node: ast.Compare) -> Term:
        terms = [self._term(part) for part in (node.left, *node.comparators)]
        tests = [tested(operation, *pair) for operation, pair in zip(node.ops, pairwise(terms), strict=True)]
        first, rest = terms[0], list(zip(tests, terms[1:], strict=True))

        def read(frame: Frame) -> Json:
            left = first.read(frame)
            for test, term in rest:
                right = term.read(frame)
                if not test(frame, left, right):
                    return False
                left = right
            return True

        return self._made(node, BOOLEAN, read)

    def _function(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Term:
        if name in FUNCTIONS:
            used = FUNCTIONS[name]
            check_count(node, name, arguments, most=len(used.takes), optional=used.optional)
            return self._call(node, name, used, list(map(self._term, arguments)), column=node.col_offset)
        if name not in _SPECIAL:
            raise ExpressionRefused(name_reason("there is no function", name, [*FUNCTIONS, *_SPECIAL]), node.col_offset)
        check_count(node, name, arguments, most=_SPECIAL[name])
        match name:
            case "default":
                return self._default(node, self._tolerant(arguments[0], self._term), self._term(arguments[1]))
            case "exists":
                return self._exists(node, self._tolerant(arguments[0], _no_path))
            case "contains":
                return self._contains(node, self._term(arguments[0]), self._term(arguments[1]))
            case _:
                return self._matches(node, self._term(arguments[0]), arguments[1])

    def _call(self, node: ast.expr, name: str, used: ExpressionFunction, terms: Sequence[Term], *, column: int) -> Term:
        """The term of a function or filter, applied to values of the types it takes."""
        parts = [(checked(name, takes, term), takes) for term, takes in zip(terms, used.takes, strict=False)]

        def read(frame: Frame) -> Json:
            values: list[Json] = []
            for term, takes in parts:
                value = term.read(frame)
                if takes and kind(value) not in takes:
                    raise wrong_type(name, takes, term, value)
                values.append(value)
            try:
                return used.apply(frame, *values)
            except ExpressionRefused as refused:
                raise ExpressionRefused(f"{name}: {refused.reason}", column) from None

        return self._made(node, used.gives(terms[0].shape), read)

    def _default(self, node: ast.expr, term: Term, fallback: Term) -> Term:
        def read(frame: Frame) -> Json:
            value = term.read(frame)
            return fallback.read(frame) if value is None else value

        return self._made(node, either(without_null(term.shape), fallback.shape), read)

    def _exists(self, node: ast.expr, term: Term) -> Term:
        return self._made(node, BOOLEAN, lambda frame: term.read(frame) is not None)

    def _contains(self, node: ast.expr, container: Term, wanted: Term) -> Term:
        test = tested(ast.In(), wanted, container)
        return self._made(node, BOOLEAN, lambda frame: test(frame, wanted.read(frame), container.read(frame)))

    def _matches(self, node: ast.expr, term: Term, pattern: ast.expr) -> Term:
        if not (isinstance(pattern, ast.Constant) and isinstance(pattern.value, str)):
            raise ExpressionRefused("the pattern must be a literal string", pattern.col_offset)
        try:
            occurs = linear_pattern(self.strings[pattern.col_offset])
        except Invalid as error:
            raise ExpressionRefused(str(error), pattern.col_offset) from None

        def apply(frame: Frame, text: str) -> bool:
            frame.spend(len(text))
            return occurs(text)

        used = ExpressionFunction(takes=(TEXT,), gives=always(BOOLEAN), apply=apply)
        return self._call(node, "matches", used, [term], column=node.col_offset)

    def _made(self, node: ast.expr, shape: Shape, read: Read) -> Term:
        text = self.source[node.col_offset - 1 : (node.end_col_offset or 0) - 1]
        return Term(shape, read, shown(text), node.col_offset)


def _filter_call(node: ast.expr) -> tuple[str, list[ast.expr]]:
    match node:
        case ast.Name(id=name):
            return name, []
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name, arguments
        case _:
            raise ExpressionRefused("after | comes the name of a filter", node.col_offset)


def _no_path(node: ast.expr) -> Term:
    raise ExpressionRefused("exists(...) needs a path, e.g. exists(output.file)", node.col_offset)


def _refused(node: ast.expr) -> ExpressionRefused:
    what = type(node.op) if isinstance(node, ast.BinOp) else type(node)
    return ExpressionRefused(_REFUSED.get(what, _NOT_ALLOWED), node.col_offset)
