"""Names of the product that mean something else in a test than at the start: another function of that name, another
module, a patch. Pure.

That is no fault by itself. It becomes one if a test fails at its assertion as it was and passes now: then it asserts
something about what stands in for the product."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import RuleCard
from handrail.rules.function_rule import found_at
from handrail.rules.toolchain.comparing.written_tests import SOURCE_BYTES_MAX

PATCHING: Final = frozenset({"patch", "object", "setattr", "setitem", "multiple"})
OTHERS: Final = frozenset({*sys.stdlib_module_names, "pytest", "hypothesis", "mock"})
INSIDE: Final = (".", "#", "@/", "~/", "src/")
SHOWN_MAX: Final = 3
Bound: TypeAlias = tuple[str, str, int]
"""A name, how it is bound, and where."""

USE_IT: Final = "let the test use the product itself"

_js_named = re.compile(
    r"(?:import|const|let|var)\s*\{([^{}]{1,2000})\}\s*(?:from|=\s*require\()\s*['\"]([^'\"]{1,300})['\"]"
)
_js_whole = re.compile(
    r"(?:import|const|let|var)\s+(?:\*\s*as\s+)?([\w$]{1,100})\s*(?:from|=\s*require\()\s*['\"]([^'\"]{1,300})['\"]"
)
_js_word = re.compile(r"[\w$]+")


class StandIn(Struct, frozen=True):
    """A name with another meaning than at the start."""

    path: str
    line: int
    name: str
    words: str


def stand_ins(path: str, before: bytes | None, now: bytes) -> Iterator[StandIn]:
    """The names of a test file that it had from elsewhere at the start."""
    if before is None or max(len(before), len(now)) > SOURCE_BYTES_MAX:
        return
    read = _in_python if path.endswith(".py") else _in_javascript
    try:
        found = list(read(before.decode(errors="replace"), now.decode(errors="replace")))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from (StandIn(path, line, name, words) for line, name, words in found)


def standing_in(
    card: RuleCard, every: Sequence[StandIn], failing: Sequence[tuple[str, str, bool]]
) -> Iterator[Finding]:
    """The tests that fail at an assertion as they were, in files where a name means something else now."""
    for one in every:
        said = [(test, words) for test, words, is_assertion in failing if is_assertion and _is_in(test, one.path)]
        for test, words in said[:SHOWN_MAX]:
            message = (
                f"{test} passes only because of another `{one.name}` ({one.words}); with that of the start, {words}"
            )
            yield found_at(card.name, f"{one.path}:{one.line}", message, USE_IT)


def _is_in(test: str, path: str) -> bool:
    """Whether a test may be of this file: some runners do not say."""
    is_named = "::" in test and "/" in test.partition("::")[0]
    dotted = path.rpartition(".")[0].replace("/", ".")
    return test.startswith(f"{path}::") if is_named else " " in test or test.startswith(dotted) or "." not in test


# --- Python -------------------------------------------------------------------------------------------


def _in_python(before: str, now: str) -> Iterator[tuple[int, str, str]]:
    old, new = ast.parse(before), ast.parse(now)
    known = {name: module for name, module, _ in _imports(old) if module.partition(".")[0] not in OTHERS}
    used = known.keys() & {node.id for node in ast.walk(old) if isinstance(node, ast.Name)}
    yield from _elsewhere(new, {name: known[name] for name in used})
    yield from _added(_bindings(old), _bindings(new), used)
    yield from _added(_patches(old), _patches(new), used & {name for name, _, _ in _imports(new)})


def _elsewhere(tree: ast.AST, known: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """The names that are imported from another module."""
    named = ((line, name, module) for name, module, line in _imports(tree))
    yield from ((line, name, f"from {module}") for line, name, module in named if known.get(name, module) != module)


def _added(old: Iterator[Bound], new: Iterator[Bound], names: Container[str]) -> Iterator[tuple[int, str, str]]:
    had = {name for name, _, _ in old}
    yield from ((line, name, words) for name, words, line in new if name in names and name not in had)


def _imports(tree: ast.AST) -> Iterator[Bound]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((one.asname or one.name, f"{module}:{one.name}", node.lineno) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.asname or one.name.partition(".")[0], one.name, node.lineno) for one in node.names)


def _bindings(tree: ast.Module) -> Iterator[Bound]:
    """The names that are bound by anything else than an import; not those of methods."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    methods = {id(one) for node in classes for one in node.body}
    for node in ast.walk(tree):
        if id(node) not in methods:
            yield from _bound(node)
        if isinstance(node, ast.arg):
            yield node.arg, "it is an argument", node.lineno


def _bound(node: ast.AST) -> Iterator[Bound]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name, "it is defined here", node.lineno
        case ast.Name(id=name, ctx=ast.Store()):
            yield name, "it is set here", node.lineno


def _patches(tree: ast.AST) -> Iterator[Bound]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node.func) in PATCHING]
    for node in calls:
        texts = (getattr(one, "value", None) for arg in node.args[:2] for one in ast.walk(arg))
        yield from ((text.rpartition(".")[2], "it is patched", node.lineno) for text in texts if isinstance(text, str))


def _called(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else str(getattr(function, "attr", ""))


# --- JavaScript ---------------------------------------------------------------------------------------


def _in_javascript(before: str, now: str) -> Iterator[tuple[int, str, str]]:
    new, lines = _js_imports(now), now.splitlines()
    own = {name: module for name, module in _js_imports(before).items() if module.startswith(INSIDE)}
    for name, module in own.items():
        if words := _js_words(name, module, new, now):
            yield next((at for at, text in enumerate(lines, 1) if name in _js_word.findall(text)), 1), name, words


def _js_words(name: str, module: str, new: Mapping[str, str], now: str) -> str:
    """What a name is instead, in words; empty if it is what it was."""
    if name in new:
        return f"from {new[name]}" if new[name] != module else ""
    is_here = re.search(rf"(?:function|const|let|var|class)\s+{re.escape(name)}\b", now)
    return "it is defined here" if is_here else ""


def _js_imports(text: str) -> Mapping[str, str]:
    found = {one[1]: one[2] for one in _js_whole.finditer(text)}
    for one in _js_named.finditer(text):
        parts = (re.split(r"\s+as\s+|:", part) for part in one[1].split(","))
        found.update({words[-1].strip(): one[2] for words in parts if words[-1].strip()})
    return found
