"""Names of the product that mean something else in a test than at the start: another function of that name, another
module, a patch. Pure.

That is no fault by itself. It becomes one if a test fails at its assertion as it was and passes now: then it asserts
something about what stands in for the product."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import RuleCard
from handrail.rules.function_rule import found_at
from handrail.rules.toolchain.comparing.written_tests import SOURCE_BYTES_MAX, FunctionNode

PATCHING: Final = frozenset({"patch", "object", "setattr", "setitem", "multiple"})
OTHERS: Final = frozenset({*sys.stdlib_module_names, "pytest", "hypothesis", "mock"})
SHOWN_MAX: Final = 3
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
    used = {node.id for node in ast.walk(old) if isinstance(node, ast.Name)}
    kept = {name: {module for one, module, _ in _imports(new) if one == name} for name in known}
    for name, module, line in _imports(new):
        if name in known and name in used and module != known[name]:
            yield line, name, f"from {module}"
    had = {name for name, _, _ in _bindings(old)}
    for name, words, line in _bindings(new):
        if name in known and name in used and name not in had:
            yield line, name, words
    patched = {name for name, _ in _patches(old)}
    for name, line in _patches(new):
        if name in known and name in used and name not in patched and kept[name]:
            yield line, name, "it is patched"


def _imports(tree: ast.AST) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((one.asname or one.name, f"{module}:{one.name}", node.lineno) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.asname or one.name.partition(".")[0], one.name, node.lineno) for one in node.names)


def _bindings(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """The names that are bound by anything else than an import; not those of methods."""
    methods = {id(one) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for one in node.body}
    for node in ast.walk(tree):
        if isinstance(node, FunctionNode):
            if id(node) not in methods:
                yield node.name, "it is defined here", node.lineno
            yield from ((one.arg, "it is an argument", node.lineno) for one in [*node.args.args, *node.args.kwonlyargs])
        elif isinstance(node, ast.ClassDef):
            yield node.name, "it is defined here", node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, "it is set here", node.lineno


def _patches(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node.func) in PATCHING:
            for text in (one.value for arg in node.args[:2] for one in ast.walk(arg) if isinstance(one, ast.Constant)):
                if isinstance(text, str):
                    yield text.rpartition(".")[2], node.lineno


def _called(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else str(getattr(function, "attr", ""))


# --- JavaScript ---------------------------------------------------------------------------------------


def _in_javascript(before: str, now: str) -> Iterator[tuple[int, str, str]]:
    old, new = _js_imports(before), _js_imports(now)
    for name, module in old.items():
        if not module.startswith((".", "#", "@/", "~/", "src/")):
            continue
        line = next((at for at, text in enumerate(now.splitlines(), 1) if name in _js_word.findall(text)), 1)
        if name in new and new[name] != module:
            yield line, name, f"from {new[name]}"
        elif name not in new and re.search(rf"(?:function|const|let|var|class)\s+{re.escape(name)}\b", now):
            yield line, name, "it is defined here"


def _js_imports(text: str) -> Mapping[str, str]:
    found = {one[1]: one[2] for one in _js_whole.finditer(text)}
    for one in _js_named.finditer(text):
        parts = (re.split(r"\s+as\s+|:", part) for part in one[1].split(","))
        found.update({words[-1].strip(): one[2] for words in parts if words[-1].strip()})
    return found
