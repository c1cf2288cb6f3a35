"""Tests that fail whatever the code does: they refer to nothing but themselves, or end in a failure in any case. Pure.

Read from the source: Python by its syntax tree, JavaScript by its words. It must never mind an honest test, so all
counts as the project that is not plainly part of the test: every name that is imported, but for a few modules that
reach nothing; files, processes, fixtures, attributes, and whatever is not understood. A test of code that does not
exist yet refers to it. A test that calls the code, and asserts something else about it, is for `tests_prove`."""

from __future__ import annotations

import ast
import builtins
import re
import unittest
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from handrail.rules.toolchain.comparing.worded_tests import javascript_bodies
from handrail.rules.toolchain.comparing.written_tests import SOURCE_BYTES_MAX, FunctionNode

ONLY_ITSELF: Final = "refers to nothing but itself"
IN_ANY_CASE: Final = "ends in a failure that depends on nothing"
DEPTH_MAX: Final = 10
"""How far functions of the same file are followed."""
NEUTRAL: Final = frozenset(
    {
        *("abc", "base64", "bisect", "collections", "contextlib", "copy", "dataclasses", "datetime", "decimal", "enum"),
        *(
            "fractions",
            "functools",
            "hashlib",
            "heapq",
            "itertools",
            "json",
            "math",
            "operator",
            "pytest",
            "random",
            "re",
        ),
        *("statistics", "string", "textwrap", "time", "types", "typing", "unittest", "uuid", "warnings", "__future__"),
    }
)
"""Modules that reach nothing by themselves: neither the project nor a file nor another process."""
REACHING: Final = frozenset({"mock", "importorskip", "main", "defaultTestLoader", "TestLoader"})
"""What of these modules reaches more."""
OPEN: Final = frozenset(
    {"open", "__import__", "exec", "eval", "compile", "globals", "locals", "vars", "input", "super"}
)
FIXTURES: Final = frozenset({"tmp_path", "tmpdir", "capsys", "capfd", "caplog", "recwarn"})
"""Fixtures of pytest that bring nothing along."""
OF_UNITTEST: Final = frozenset(dir(unittest.TestCase))
PLAIN_NAMES: Final = frozenset(dir(builtins)) - OPEN

_js_word = re.compile(r"(?<![\w$.])[A-Za-z_$][\w$]*")
_js_text = re.compile(r"'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|`(?:\\.|[^`\\$])*`")
_js_comment = re.compile(r"/\*.{0,20000}?\*/|//[^\n]*", re.DOTALL)
_js_declared = re.compile(r"\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)")
_js_brought = re.compile(
    r"\b(?:import|const|let|var)\s+(\{[^{}]{0,2000}\}|[\w$*, {}]{1,300}?)\s*"
    r"(?:from|=\s*(?:await\s+)?(?:require|import)\s*\()\s*['\"]([^'\"\n]{1,200})['\"]"
)
_js_neutral = re.compile(r"(?:node:)?(?:assert|test)(?:/strict)?|chai|vitest|mocha|expect|@jest/globals")
_JS_PLAIN: Final = frozenset(
    {
        *("expect", "assert", "should", "fail", "done", "t", "test", "it", "strictEqual", "deepEqual", "equal", "ok"),
        *(
            "true",
            "false",
            "null",
            "undefined",
            "NaN",
            "Infinity",
            "Math",
            "JSON",
            "Number",
            "String",
            "Boolean",
            "Array",
        ),
        *("Object", "BigInt", "Symbol", "Error", "TypeError", "RangeError", "Promise", "Date", "Map", "Set", "console"),
        *(
            "async",
            "await",
            "const",
            "let",
            "var",
            "return",
            "throw",
            "new",
            "function",
            "if",
            "else",
            "for",
            "of",
            "in",
        ),
        *("while", "do", "typeof", "void", "try", "catch", "finally", "break", "continue", "switch", "case", "default"),
    }
)
"""Words of a test in JavaScript that reach nothing."""


def always_fails(path: str, source: bytes, test: str) -> str | None:
    """Why the test of that name fails whatever the code does; empty if that can't be said, None if it is not here."""
    if len(source) > SOURCE_BYTES_MAX:
        return None
    if path.endswith(".py"):
        return _in_python(source, test.partition("[")[0])
    return _in_javascript(source.decode(errors="replace"), test)


def _in_javascript(text: str, test: str) -> str | None:
    ends = ("::", " ", ".")
    bodies = [
        body
        for title, body in javascript_bodies(text)
        if test == title or test.endswith(tuple(f"{end}{title}" for end in ends))
    ]
    plain = _JS_PLAIN - set(_js_imported(text))
    if not bodies:
        return None
    return "" if any(_js_reaches(body, plain) for body in bodies) else ONLY_ITSELF


def _js_imported(text: str) -> Iterator[str]:
    """The names that are imported from more than a runner or its assertions."""
    for found in _js_brought.finditer(text):
        if not _js_neutral.fullmatch(found[2]):
            yield from _js_word.findall(found[1])


def _js_reaches(body: str, plain: frozenset[str]) -> bool:
    text = _js_text.sub("''", _js_comment.sub("", body))
    known = plain | set(_js_declared.findall(text))
    return any(word not in known for word in _js_word.findall(text)) or "${" in text


def _in_python(source: bytes, test: str) -> str | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    name = re.split(r"::|\.", test)[-1]
    # Several functions may have this name, in classes or one after the other: the runner does not say which it ran.
    named = [one for one in ast.walk(tree) if isinstance(one, FunctionNode) and one.name == name]
    reasons = [_reason(one, tree) for one in named]
    return min(reasons, default=None)  # empty if one of them is honest


def _reason(function: ast.FunctionDef | ast.AsyncFunctionDef, tree: ast.Module) -> str:
    if _fails_at_last(function.body):
        return IN_ANY_CASE
    return "" if _Reach(_module_of(tree)).reaches_function(function) else ONLY_ITSELF


# --- a failure in any case --------------------------------------------------------------------------


def _fails_at_last(body: Sequence[ast.stmt]) -> bool:
    """Whether a statement of the test itself always fails: not below a condition, nor after one that may leave."""
    for one in body:
        if _is_failure(one):
            return True
        # What stands behind may never be reached, so it does not fail in any case.
        if any(isinstance(node, ast.Return | ast.Yield) or _is_skip(node) for node in ast.walk(one)):
            return False
    return False


def _is_failure(one: ast.stmt) -> bool:
    match one:
        case ast.Assert(test=test):
            return _is_false(test)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="pytest" | "self"), attr="fail"))):
            return True
        case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError")) | ast.Name(id="AssertionError")):
            return True
        case _:
            return False


def _is_false(test: ast.expr) -> bool:
    match test:
        case ast.Constant(value=value):
            return not value
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case ast.Compare(left=ast.Constant(value=left), ops=[ast.Eq()], comparators=[ast.Constant(value=right)]):
            return bool(left != right)
        case _:
            return False


def _is_skip(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in {"skip", "skipTest", "xfail"}


# --- a test that refers to nothing ------------------------------------------------------------------


class _ModuleNames(Struct, frozen=True):
    """What the names of a module stand for."""

    imported: Mapping[str, bool]
    """Whether it reaches more than itself."""
    functions: Mapping[str, ast.FunctionDef | ast.AsyncFunctionDef]
    values: Mapping[str, Sequence[ast.expr]]


def _module_of(tree: ast.Module) -> _ModuleNames:
    functions = {one.name: one for one in tree.body if isinstance(one, FunctionNode)}
    shared = [node.names for node in ast.walk(tree) if isinstance(node, ast.Global)]
    values: dict[str, list[ast.expr]] = {}
    for name, value in _assigned(tree.body):
        values.setdefault(name, []).append(value)
    for name in (name for names in shared for name in names):
        values.pop(name, None)  # a fixture may have set it
    return _ModuleNames(dict(_imported(tree)), functions, values)


def _assigned(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for one in body:
        match one:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value


def _imported(tree: ast.AST) -> Iterator[tuple[str, bool]]:
    for one in ast.walk(tree):
        if isinstance(one, ast.Import):
            yield from ((alias.asname or alias.name.partition(".")[0], _is_other(alias.name)) for alias in one.names)
        elif isinstance(one, ast.ImportFrom):
            is_other = bool(one.level) or _is_other(one.module or "")
            yield from ((alias.asname or alias.name, is_other or alias.name in REACHING) for alias in one.names)


def _is_other(module: str) -> bool:
    """Whether a module may reach more than itself."""
    return not set(module.split(".")) <= NEUTRAL


class _Reach:
    """Looks for a way from a test to anything else."""

    def __init__(self, names: _ModuleNames) -> None:
        self._names = names
        self._seen: set[str] = set()

    def reaches_function(self, function: ast.FunctionDef | ast.AsyncFunctionDef, depth: int = 0) -> bool:
        """Whether a function refers to more than itself; what it calls in the same file is looked at, too."""
        if depth > DEPTH_MAX or isinstance(function, ast.AsyncFunctionDef):
            return True  # what drives it may come from anywhere
        if not depth and _is_given_more(function):
            return True
        own = set(filter(None, map(_bound, ast.walk(function))))
        nodes = [node for part in (*function.decorator_list, *function.body) for node in ast.walk(part)]
        return any(self._reaches(node, own, depth) for node in nodes)

    def _reaches(self, node: ast.AST, own: set[str], depth: int) -> bool:
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr):
                return attr not in OF_UNITTEST
            case ast.Attribute(attr=attr):
                return attr in REACHING
            case ast.Name(id=name, ctx=ast.Load()):
                return self._reaches_by(name, own, depth)
            case _:
                return isinstance(node, ast.Await | ast.Yield | ast.YieldFrom | ast.Global | ast.Nonlocal)

    def _reaches_by(self, name: str, own: set[str], depth: int) -> bool:
        names = self._names
        if name in names.imported:
            return names.imported[name]
        if name in own or name in self._seen:
            return False
        if name not in names.functions and name not in names.values:
            return name not in PLAIN_NAMES
        self._seen.add(name)
        if name in names.functions:
            return self.reaches_function(names.functions[name], depth + 1)
        parts = (node for value in names.values[name] for node in ast.walk(value))
        return any(self._reaches(node, set(), depth + 1) for node in parts)


def _bound(node: ast.AST) -> str:
    """The name that a part of a function gives something itself; empty if it gives none."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case _:
            return ""


def _is_given_more(function: ast.FunctionDef) -> bool:
    """Whether a test is given something that may come from the project: by a fixture, or as a case."""
    words = function.args
    given = {one.arg for one in (*words.posonlyargs, *words.args, *words.kwonlyargs)}
    return bool(words.vararg or words.kwarg or given - {*_literal_cases(function), *FIXTURES, "self", "cls"})


def _literal_cases(function: ast.FunctionDef) -> Iterator[str]:
    """The arguments that `parametrize` gives written values."""
    for one in function.decorator_list:
        match one:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value=str(names)), cases, *_]):
                yield from _names_of(names) if _is_written(cases) else ()


def _names_of(names: str) -> Iterable[str]:
    return filter(None, (name.strip() for name in names.split(",")))


def _is_written(value: ast.expr) -> bool:
    forbidden: tuple[Any, ...] = (ast.Name, ast.Call, ast.Attribute, ast.Starred)
    return not any(isinstance(node, forbidden) for node in ast.walk(value))
