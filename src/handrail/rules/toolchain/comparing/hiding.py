"""What in tests and their settings could hide a failure of the product: something is replaced, steered or left early.

Pure. Only what this change added counts, and it is no fault by itself: ordinary tests replace things, too. It becomes
one if tests of the start fail once it is taken out (hidden_failures.py). Python is read by its syntax tree, settings by
their sections, JavaScript by its words."""

from __future__ import annotations

import ast
import configparser
import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct

from handrail.rules.toolchain.comparing.written_tests import SOURCE_BYTES_MAX, FunctionNode

MACHINERY: Final = frozenset(
    {"pytest", "_pytest", "unittest", "builtins", "sys", "inspect", "__main__", "gc", "importlib", "os", "types", "ast"}
)
"""Modules that tests are run by: what is replaced in them changes what a test says."""
REPLACING: Final = re.compile(r"^(?:setattr|delattr|setitem|delitem|object|dict|multiple|patch.*)$")
LEAVING: Final = frozenset(
    {
        *("exec", "eval", "_exit", "_getframe", "settrace", "setprofile", "get_objects", "get_referrers", "reload"),
        *("register", "currentframe", "stack", "addmodulecleanup", "syspath_prepend"),
    }
)
REBOUND: Final = re.compile(
    r"^(?:test|__test__$|collect_ignore|pytest_plugins|pytestmark$|load_tests$|failureException$)"
)
OF_CASES: Final = re.compile(
    r"^(?:run|debug|subTest|fail|__call__|assert(?:True|False|Raises(?:Regex)?|Warns(?:Regex)?|(?:No)?Logs"
    r"|(?:Not)?(?:Equal|In|IsInstance|AlmostEqual|Regex)|Is(?:Not)?(?:None)?|(?:Greater|Less)(?:Equal)?"
    r"|(?:Count|MultiLine|Sequence|List|Tuple|Set|Dict)Equal))$"
)
"""What a class of unittest runs and asserts by; another meaning of it decides what a test says."""
UNREADABLE: Final = "it can't be read"
HARMLESS_HOOKS: Final = frozenset({"pytest_addoption"})
CODE: Final = (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx")
REQUESTS: Final = frozenset({"request", "item", "pyfuncitem", "node"})
"""What hooks and fixtures call the test that is run."""
TEST_SECTIONS: Final = ("pytest", "tool:pytest")
OF_RUNNERS: Final = ("jest", "vitest", "mocha", "ava", "tap", "imports", "nyc", "c8")

_settings = re.compile(r"(?:^|/)(?:pyproject\.toml|\.?pytest\.toml|\.?pytest\.ini|tox\.ini|setup\.cfg|package\.json)$")
_scripts = re.compile(r"(?:^|/)(?:\.mocharc[^/]*|\.taprc|(?:jest|vitest|vite|ava)\.(?:config|setup)\.[^/]*|\.npmrc)$")
_js_words = re.compile(
    r"\b(?:jest|vi|mock|td|sinon|proxyquire|rewire)\.(?:mock|doMock|module|replace|stub|spyOn|setMock)\w*\s*\("
    r"|\brequire\.(?:cache|extensions|resolve\.paths)\b|\bModule\._|\bprocess\.(?:exit|reallyExit|on|once|exitCode)\b"
    r"|\b(?:global|globalThis|window)\s*[.\[][^=\n]{0,80}=[^=]|\.prototype\b[^=\n]{0,80}=[^=]"
    r"|\bexpect\.extend\b|\b(?:assert|expect|chai|test|it|describe)\.\w{1,40}\s*=[^=]|\bObject\.definePropert"
    r"|\b(?:it|test|describe)\s*=[^=>]|\bproxyquire\s*\(|\bregisterHooks?\b|\bmodule\.register\b"
)


class Suspect(Struct, frozen=True):
    """Something that this change added, and that could hide a failure."""

    path: str
    line: int
    words: str
    inside: str = ""
    """The test that it is written in, and then it concerns no other; empty if it is outside of tests."""

    @property
    def where(self) -> str:
        """Its place as people write it."""
        return f"{self.path}:{self.line}" if self.line else self.path


def is_setting(path: str) -> bool:
    """Whether a file may say how tests are run, and has other things in it as well."""
    return bool(_settings.search(path))


def is_test_script(path: str) -> bool:
    """Whether a file is there for nothing but how tests are run."""
    return bool(_scripts.search(path))


def suspects(path: str, before: bytes | None, now: bytes, own: frozenset[str]) -> Iterator[Suspect]:
    """What one file added; `own` are the modules of the product by their top names."""
    if len(now) > SOURCE_BYTES_MAX:
        return
    old, new = (before or b"").decode(errors="replace"), now.decode(errors="replace")
    if is_setting(path) or is_test_script(path):
        yield from _of_settings(path, old, new)
    elif path.endswith(".py"):
        yield from _shadowing(path, before, own)
        yield from _of_python(path, old, new, own)
    elif path.endswith(CODE):
        yield from _of_javascript(path, old, new)


# --- settings ---------------------------------------------------------------------------------------


def _of_settings(path: str, before: str, now: str) -> Iterator[Suspect]:
    if runs_otherwise(path, before, now) if is_setting(path) else before.split() != now.split():
        yield Suspect(path, 0, "the settings of the runner were changed")


def runs_otherwise(path: str, before: str, now: str) -> bool:
    """Whether the part of a settings file that is about running tests has changed."""
    return bool(_about_tests(path, before) != _about_tests(path, now))


def _about_tests(path: str, text: str) -> Any:
    try:
        if path.endswith(".json"):
            return _of_package(json.loads(text or "{}"))
        if path.endswith("pytest.toml"):
            return tomllib.loads(text)
        if path.endswith(".toml"):
            return tomllib.loads(text).get("tool", {}).get("pytest", {})
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
        return {name: dict(parser[name]) for name in TEST_SECTIONS if parser.has_section(name)}
    except (ValueError, AttributeError, configparser.Error, RecursionError):
        return text


def _of_package(package: Any) -> Any:
    if not isinstance(package, Mapping):
        return package
    scripts = package.get("scripts")
    tests = {name: words for name, words in scripts.items() if "test" in name} if isinstance(scripts, Mapping) else {}
    return {**{name: package[name] for name in OF_RUNNERS if name in package}, "scripts": tests}


# --- Python -----------------------------------------------------------------------------------------


def _shadowing(path: str, before: bytes | None, own: frozenset[str]) -> Iterator[Suspect]:
    """A new file of the tests that has the name of a module of the product."""
    *folders, file = path.split("/")
    name = folders[-1] if file == "__init__.py" and folders else file.removesuffix(".py")
    if before is None and name in own:
        yield Suspect(path, 0, f"it may be found before the product's own {name}")


def _of_python(path: str, before: str, now: str, own: frozenset[str]) -> Iterator[Suspect]:
    old = Counter(key for _, _, key in _constructs(before, own))
    spans = list(_spans(now))
    for line, words, key in _constructs(now, own):
        old[key] -= 1
        if old[key] < 0:
            inside = next((name for first, last, name in spans if first <= line <= last), "")
            yield Suspect(path, line, words, inside)


def _spans(source: str) -> Iterator[tuple[int, int, str]]:
    """The first and last line of each test, and its name."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, FunctionNode) and node.name.startswith("test"):
                first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
                yield first, node.end_lineno or node.lineno, node.name


def _constructs(source: str, own: frozenset[str]) -> list[tuple[int, str, str]]:
    """The line of each construct, words for it, and what is the same for two of them."""
    try:
        tree = ast.parse(source)
        roots = _roots(tree, own)
        found = [(getattr(node, "lineno", 0), *one) for node in ast.walk(tree) for one in _words(node, roots, own)]
        return [*found, *_rebound(tree.body)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [(0, UNREADABLE, source)] if source.strip() else []


def _roots(tree: ast.Module, own: frozenset[str]) -> Mapping[str, bool]:
    """By name: whether what it stands for belongs to the product, or to what runs tests."""
    return {name: is_close for node in ast.walk(tree) for name, is_close in _brought(node, own | MACHINERY)}


def _brought(node: ast.AST, close: frozenset[str]) -> Iterator[tuple[str, bool]]:
    match node:
        case ast.Import(names=names):
            tops = [(alias.asname, alias.name.partition(".")[0]) for alias in names]
            yield from ((own or top, top in close) for own, top in tops)
        case ast.ImportFrom(names=names):
            module = "." * node.level + (node.module or "")
            is_close = module.partition(".")[0] in {"", *close}
            yield from ((alias.asname or alias.name, is_close) for alias in names)
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if _reaches_modules(value):
            yield name, True


def _reaches_modules(value: ast.expr) -> bool:
    names = {_last(node) for node in ast.walk(value) if isinstance(node, ast.Name | ast.Attribute)}
    return bool(names & {"import_module", "modules", "__import__", "_importtestmodule"})


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else str(getattr(node, "attr", ""))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _words(node: ast.AST, roots: Mapping[str, bool], own: frozenset[str]) -> Iterator[tuple[str, str]]:
    """What a node replaces, steers or leaves: words for it, and what is the same wherever it stands."""
    match node:
        case ast.FunctionDef(name="__eq__"):
            yield "it has its own meaning of equal", ast.dump(node)
        case ast.ClassDef(body=body):
            names = [one for one in body if isinstance(one, FunctionNode) and OF_CASES.match(one.name)]
            yield from ((f"{node.name} has its own {one.name}", ast.dump(one)) for one in names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if name.startswith("pytest_") and name not in HARMLESS_HOOKS:
                yield f"the hook {name}", ast.dump(node)
        case ast.Assign() | ast.Delete() | ast.AugAssign() | ast.AnnAssign():
            yield from (_replaced(one, node) for one in _targets(node) if _is_close(one, roots))
        case ast.Call() if _is_replacing(node, roots, own):
            yield ast.unparse(node)[:200], ast.dump(node)
        case ast.Import(names=names) if any(alias.name == "__main__" for alias in names):
            yield "it reaches into what runs the tests", "__main__"


def _targets(node: ast.Assign | ast.Delete | ast.AugAssign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]


def _replaced(target: ast.expr, node: ast.AST) -> tuple[str, str]:
    return f"{ast.unparse(target)[:200]} is replaced", ast.dump(node)


def _is_close(target: ast.expr, roots: Mapping[str, bool]) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_is_close(one, roots) for one in target.elts)
    return isinstance(target, ast.Attribute | ast.Subscript) and roots.get(_root(target), False)


def _is_replacing(node: ast.Call, roots: Mapping[str, bool], own: frozenset[str]) -> bool:
    name = _last(node.func)
    if name in LEAVING or (_root(node.func) == "sys" and "'path'" in ast.dump(node.func)):
        return True
    first = node.args[0] if node.args else None
    return first is not None and bool(REPLACING.match(name)) and _is_near(first, roots, own)


def _is_near(target: ast.expr, roots: Mapping[str, bool], own: frozenset[str]) -> bool:
    """Whether what is replaced belongs to the product or to what runs tests; so does what is not known."""
    if isinstance(target, ast.Constant):
        return str(target.value).partition(".")[0] in own | MACHINERY
    is_of_test = _root(target) in REQUESTS and _last(target) in {"module", "obj", "cls", "function", "instance"}
    return is_of_test or roots.get(_root(target), isinstance(target, ast.Call | ast.Name))


def _rebound(body: list[ast.stmt]) -> Iterator[tuple[int, str, str]]:
    """Names of tests that get another value."""
    for one in body:
        if isinstance(one, ast.ClassDef):
            yield from _rebound(one.body)
        elif isinstance(one, ast.Assign):
            names = filter(REBOUND.match, map(_last, one.targets))
            yield from ((one.lineno, f"{name} is set", ast.dump(one)) for name in names)
        elif isinstance(one, FunctionNode) and one.name == "load_tests":
            yield one.lineno, "load_tests chooses the tests", ast.dump(one)


# --- JavaScript -------------------------------------------------------------------------------------


def _of_javascript(path: str, before: str, now: str) -> Iterator[Suspect]:
    if "__mocks__/" in path and before.split() != now.split():
        yield Suspect(path, 0, "it stands in for a module")
    old = Counter(line.strip() for line in before.splitlines())
    for number, line in enumerate(now.splitlines(), 1):
        old[line.strip()] -= 1
        if old[line.strip()] < 0 and _js_words.search(line[:2_000]):
            yield Suspect(path, number, line.strip()[:200])
