"""What tests check, read from their source: Python by its syntax tree, other languages by their words
(worded_tests.py). Pure.

A heuristic on purpose: it must notice tests that were emptied, and never mind an honest change."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from handrail.rules.toolchain.comparing.worded_tests import Checks, WrittenTest, worded_tests

SOURCE_BYTES_MAX: Final = 1_000_000
ASSERTING: Final = re.compile(
    r"^(?:assert|expect|should|fail|check|verify|ensure|raises|warns|deprecated_call|match)", re.I
)
HELPING: Final = re.compile(r"test|help|util|support|check|common|conftest|assert|verify", re.I)
CATCHING: Final = frozenset({"AssertionError", "Exception", "BaseException"})
FunctionNode: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
ENDING_FAILURES: Final = frozenset({"suppress", "raises", "assertRaises"})
PRINTING: Final = re.compile(r"^(?:print|log|debug|info|warning|warn|error|exception|critical|write)$")
FAILING: Final = re.compile(r"^(?:fail|assert_(?:(?:not_)?(?:called|awaited)|any_|has_))", re.I)
"""What may fail whatever it is given."""
ENDS: Final = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def read_tests(path: str, source: bytes) -> list[WrittenTest]:
    """The tests of a file, and the functions that help them; none if it can't be read."""
    if len(source) > SOURCE_BYTES_MAX:
        return []
    if not path.endswith(".py"):
        return list(worded_tests(path, source.decode(errors="replace")))
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
        elif isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [*one.decorator_list, one.args, *one.body]
            body_text = "\n".join(ast.dump(part) for part in parts)
            is_test = one.name.startswith("test")
            checks = _sure(one.body, helpers) if is_test else _block(one.body, helpers)
            yield WrittenTest(f"{prefix}{one.name}", one.lineno, checks, body_text, is_test=is_test)


def _sure(body: Sequence[ast.stmt], helpers: frozenset[str]) -> Checks:
    """What a test checks in any case: what comes after a condition on which it ends is checked sometimes."""
    leaving = next((at for at, one in enumerate(body) if isinstance(one, ast.If) and _leaves(one)), len(body))
    before, every = _block(body[:leaving], helpers), _block(body, helpers)
    return every if leaving == len(body) else max(before, min(every, Checks.SOMETIMES))


def _leaves(one: ast.If) -> bool:
    """Whether a condition ends the test: by a return without a value."""
    last = one.body[-1]
    return isinstance(last, ast.Return) and (last.value is None or isinstance(last.value, ast.Constant))


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
            return Checks.NOTHING if _is_constant(one.test) and not _is_false(one.test) else Checks.ASSERTS
        case ast.If() | ast.While():
            return _branches(one, helpers)
        case ast.Try():
            return _tried(one, helpers)
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return Checks.RUNS if _block(one.body, helpers) else Checks.NOTHING
        case ast.With() | ast.AsyncWith() if any(map(_expects_failure, one.items)):
            return min(_plain(one, helpers), Checks.RUNS) if _asserts(one.body) else _plain(one, helpers)
        case ast.Match():
            found = max([_expression(one.subject, helpers), *(_block(case.body, helpers) for case in one.cases)])
            return min(found, Checks.SOMETIMES) if _is_literal(one.subject) else found
        case ast.For() if _has_no_items(one.iter):
            return Checks.NOTHING
        case _:
            return _plain(one, helpers)


def _branches(one: ast.If | ast.While, helpers: frozenset[str]) -> Checks:
    if isinstance(one.test, ast.Constant):
        return _block(one.body if one.test.value else one.orelse, helpers)
    body, other = (_block(branch, helpers) for branch in (one.body, one.orelse))
    found = max(_expression(one.test, helpers), body, other)
    is_sure = min(body, other) is Checks.ASSERTS or isinstance(one, ast.While)
    return found if is_sure else min(found, Checks.SOMETIMES)


def _expects_failure(item: ast.withitem) -> bool:
    """Whether a failed assertion ends in this block: it is suppressed, or must be raised."""
    call = item.context_expr
    if not isinstance(call, ast.Call) or _name(call.func) not in ENDING_FAILURES:
        return False
    return bool({_name(one) for one in ast.walk(call) if isinstance(one, ast.Name | ast.Attribute)} & CATCHING)


def _asserts(body: Sequence[ast.stmt]) -> bool:
    """Whether there are assertions in a block, and not only calls that may raise."""
    calls = (_name(one.func) for part in body for one in ast.walk(part) if isinstance(one, ast.Call))
    plain = any(isinstance(one, ast.Assert) for part in body for one in ast.walk(part))
    return plain or any(ASSERTING.match(name) for name in calls)


def _name(one: ast.expr) -> str:
    return one.id if isinstance(one, ast.Name) else getattr(one, "attr", "")


def _tried(one: ast.Try, helpers: frozenset[str]) -> Checks:
    tried = _block(one.body, helpers)
    if any(map(_swallows, one.handlers)) or any(isinstance(part, ast.Return) for part in one.finalbody):
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
    return not any(_goes_on(part) for one in handler.body for part in ast.walk(one))


def _goes_on(part: ast.AST) -> bool:
    """Whether something in a handler may still let the test fail; printing does not."""
    if isinstance(part, ast.Call):
        return not PRINTING.match(_name(part.func))
    return isinstance(part, ast.Raise | ast.Assert)


def _expression(part: ast.AST, helpers: frozenset[str]) -> Checks:
    most = Checks.NOTHING
    for node in ast.walk(part):
        if isinstance(node, ast.Call):
            most = max(most, _called(node, helpers))
    return most


def _called(node: ast.Call, helpers: frozenset[str]) -> Checks:
    name = _name(node.func)
    if name == "print":
        return Checks.NOTHING
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    if FAILING.match(name):
        return Checks.ASSERTS
    if ASSERTING.match(name):
        return Checks.NOTHING if arguments and all(map(_is_literal, arguments)) else Checks.ASSERTS
    return Checks.ASSERTS if name in helpers else Checks.RUNS


def _is_literal(one: ast.expr) -> bool:
    used = (node for node in ast.walk(one) if not isinstance(getattr(node, "ctx", None), ast.Store))
    return not any(isinstance(node, ast.Name | ast.Call | ast.Attribute | ast.Await) for node in used)


def _is_constant(one: ast.expr) -> bool:
    """Whether a condition says nothing: literals only, something that is never empty, or compared with itself."""
    if _is_literal(one) or _is_never_empty(one):
        return True
    if isinstance(one, ast.BoolOp) and isinstance(one.op, ast.Or):
        return any(isinstance(part, ast.Constant) and bool(part.value) for part in one.values)
    if isinstance(one, ast.Compare) and len(one.comparators) == 1:
        return ast.dump(one.left) == ast.dump(one.comparators[0])
    return False


def _is_never_empty(one: ast.expr) -> bool:
    if isinstance(one, ast.Tuple | ast.List | ast.Set):
        return bool(one.elts)
    if isinstance(one, ast.Dict | ast.JoinedStr):
        return bool(one.values)
    return isinstance(one, ast.Lambda | ast.GeneratorExp)


def _has_no_items(one: ast.expr) -> bool:
    if isinstance(one, ast.Call) and _name(one.func) == "range":
        return len(one.args) == 1 and _is_false(one.args[0])
    return isinstance(one, ast.List | ast.Tuple) and not one.elts


def _is_false(one: ast.expr) -> bool:
    return isinstance(one, ast.Constant) and not one.value
