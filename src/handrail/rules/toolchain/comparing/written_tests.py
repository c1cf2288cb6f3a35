"""What tests check, read from their source: Python by its syntax tree, JavaScript by its words. Pure.

A heuristic on purpose: it must notice tests that were emptied, and never mind an honest change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct

SOURCE_BYTES_MAX: Final = 1_000_000
ASSERTING: Final = re.compile(
    r"^(?:assert|expect|should|fail|check|verify|ensure|raises|warns|deprecated_call|match)", re.I
)
HELPING: Final = re.compile(r"test|help|util|support|check|common|conftest|assert|verify", re.I)
CATCHING: Final = frozenset({"AssertionError", "Exception", "BaseException"})
ENDS: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)

_js_test = re.compile(
    r"(?<![\w.$])(?:it|test|specify)(?:\.\w{1,20})?\s*\(\s*(['\"`])((?:\\.|(?!\1)[^\\]){1,300})\1\s*,"
)
_js_assert = re.compile(
    r"(?<![\w$])(?:expect|assert\w*|should|sinon|chai|t|strictEqual|deepEqual|throws|check\w*|verify\w*)\b"
)
_js_literal = r"(?:true|false|null|undefined|-?\d[\d.]*|'[^'\n]*'|\"[^\"\n]*\"|`[^`$]*`|\[\s*\]|\{\s*\})"
_js_constant = re.compile(
    rf"(?:expect\(\s*{_js_literal}\s*\)(?:\.\w+){{1,6}}\(\s*{_js_literal}?\s*\)"
    rf"|assert(?:\.\w+)?\(\s*{_js_literal}(?:\s*,\s*{_js_literal}){{0,3}}\s*\))\s*;?"
)
_js_called = re.compile(r"[\w$]\s*\(")
_js_printed = re.compile(r"console\.\w+\([^()\n]*\)\s*;?")
_js_caught = re.compile(r"catch\s*(?:\([^)]*\))?\s*\{\s*\}")
_js_comment = re.compile(r"/\*.{0,20000}?\*/|(?<![:'\"`\\])//[^\n]*", re.DOTALL)


class Checks(IntEnum):
    """How much a test checks."""

    NOTHING = 0
    RUNS = 1
    """It calls something, which might fail."""
    ASSERTS = 2


class WrittenTest(Struct, frozen=True):
    """A test in a file."""

    name: str
    """With the classes around it: `TestA::test_b`; in JavaScript only its own title."""
    line: int
    checks: Checks
    body: str
    """The same for two tests that do the same."""

    @property
    def bare(self) -> str:
        """Without the classes around it."""
        return self.name.rpartition("::")[2]


def read_tests(path: str, source: bytes) -> list[WrittenTest]:
    """The tests of a file; none if it can't be read."""
    if len(source) > SOURCE_BYTES_MAX:
        return []
    if not path.endswith(".py"):
        return list(_javascript(source.decode(errors="replace")))
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return list(_python(tree.body, "", _helpers(tree)))


def _helpers(tree: ast.Module) -> frozenset[str]:
    """Functions of the tests themselves, which may assert."""
    own = [one.name for one in ast.walk(tree) if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    taken = [
        alias.asname or alias.name
        for one in tree.body
        if isinstance(one, ast.ImportFrom) and (one.level or HELPING.search(one.module or ""))
        for alias in one.names
    ]
    return frozenset([*own, *taken])


def _python(body: Sequence[ast.stmt], prefix: str, helpers: frozenset[str]) -> Iterator[WrittenTest]:
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _python(one.body, f"{prefix}{one.name}::", helpers)
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name.startswith("test"):
            parts = [*one.decorator_list, one.args, *one.body]
            body_text = "\n".join(ast.dump(part) for part in parts)
            yield WrittenTest(f"{prefix}{one.name}", one.lineno, _block(one.body, helpers), body_text)


def _block(body: Sequence[ast.stmt], helpers: frozenset[str]) -> Checks:
    """What statements check, as far as they are reached."""
    most = Checks.NOTHING
    for one in body:
        most = max(most, _statement(one, helpers))
        if isinstance(one, ENDS):
            break
    return most


def _statement(one: ast.stmt, helpers: frozenset[str]) -> Checks:
    match one:
        case ast.Assert():
            return Checks.NOTHING if _is_constant(one.test) else Checks.ASSERTS
        case ast.If() | ast.While():
            return _branches(one, helpers)
        case ast.Try():
            return _tried(one, helpers)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return Checks.RUNS if _block(one.body, helpers) else Checks.NOTHING
        case _:
            return _plain(one, helpers)


def _branches(one: ast.If | ast.While, helpers: frozenset[str]) -> Checks:
    branches = [one.orelse] if _is_false(one.test) else [one.body, one.orelse]
    return max(_expression(one.test, helpers), *(_block(branch, helpers) for branch in branches))


def _tried(one: ast.Try, helpers: frozenset[str]) -> Checks:
    tried = _block(one.body, helpers)
    if any(map(_swallows, one.handlers)):
        tried = min(tried, Checks.RUNS)
    others = [one.orelse, one.finalbody, *(handler.body for handler in one.handlers)]
    return max(tried, *(_block(other, helpers) for other in others))


def _plain(one: ast.stmt, helpers: frozenset[str]) -> Checks:
    """What any other statement checks: by its expressions, and by the statements in it."""
    inner = [_expression(part, helpers) for part in ast.iter_child_nodes(one) if not isinstance(part, ast.stmt)]
    blocks = [_block(getattr(one, name, []), helpers) for name in ("body", "orelse")]
    return max([*inner, *blocks])


def _swallows(handler: ast.ExceptHandler) -> bool:
    """Whether a failed assertion ends here."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    named = {getattr(kind, "id", getattr(kind, "attr", "")) for kind in kinds if kind is not None}
    if handler.type is not None and not named & CATCHING:
        return False
    return not any(
        isinstance(part, ast.Raise | ast.Assert | ast.Call) for one in handler.body for part in ast.walk(one)
    )


def _expression(part: ast.AST, helpers: frozenset[str]) -> Checks:
    most = Checks.NOTHING
    for node in ast.walk(part):
        if isinstance(node, ast.Call):
            most = max(most, _called(node, helpers))
    return most


def _called(node: ast.Call, helpers: frozenset[str]) -> Checks:
    name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
    if name == "print":
        return Checks.NOTHING
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if ASSERTING.match(name):
        return Checks.NOTHING if arguments and all(map(_is_literal, arguments)) else Checks.ASSERTS
    return Checks.ASSERTS if name in helpers else Checks.RUNS


def _is_literal(one: ast.expr) -> bool:
    return not any(isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Await) for node in ast.walk(one))


def _is_constant(one: ast.expr) -> bool:
    """Whether a condition says nothing: literals only, or something compared with itself."""
    if _is_literal(one):
        return True
    if isinstance(one, ast.Compare) and len(one.comparators) == 1:
        return ast.dump(one.left) == ast.dump(one.comparators[0])
    return False


def _is_false(one: ast.expr) -> bool:
    return isinstance(one, ast.Constant) and not one.value


def _javascript(text: str) -> Iterator[WrittenTest]:
    for found in _js_test.finditer(text):
        body = _argument(text, found.end())
        line = text.count("\n", 0, found.start()) + 1
        yield WrittenTest(found[2], line, _js_checks(body), " ".join(body.split()))


def _argument(text: str, start: int) -> str:
    """From here to the bracket that closes the call; quotes are passed over."""
    depth, at, quote = 1, start, ""
    while at < len(text) and depth:
        one = text[at]
        if quote:
            at += one == "\\"
            quote = "" if one == quote else quote
        elif one in "'\"`":
            quote = one
        else:
            depth += (one in "([{") - (one in ")]}")
        at += 1
    return text[start : at - 1]


def _js_checks(body: str) -> Checks:
    inner = _js_comment.sub("", body.partition("{")[2] if "{" in body else body)
    if re.match(r"\s*return\s*;", inner):
        return Checks.NOTHING
    left = _js_printed.sub("", _js_constant.sub("", inner))
    if _js_assert.search(left) and not _js_caught.search(left):
        return Checks.ASSERTS
    return Checks.RUNS if _js_called.search(left) else Checks.NOTHING
