"""The house in figures, beside its yardstick: `make tidy` prints them, test_house.py holds them.

Symptoms, not targets: a figure that is off is a place to look. Only the standard library is used."""

from __future__ import annotations

import ast
import io
import itertools
import math
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from tidy.words import offences

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "handrail"
SILENCERS = ("noqa", "type: ignore", "pragma: no cover")
IMPURE_NAMES = """
asyncio concurrent fcntl getpass logging msvcrt os pathlib queue random secrets shutil signal socket sqlite3 ssl
subprocess tempfile threading time
"""
IMPURE = frozenset(IMPURE_NAMES.split())
STATUSES = frozenset({"RunStatus", "StepStatus"})
RULER = re.compile(r"#\s*(-{3,}|={3,}|$)")
MARK = re.compile(r"#!|#:?\s*(noqa|type:|pragma|ruff:|fmt:|mypy:|isort:)[^(]*$")
"""A mark for a tool that gives its reason in brackets is a comment, too."""
BRANCHES = (
    ast.If | ast.For | ast.AsyncFor | ast.While | ast.ExceptHandler | ast.IfExp | ast.comprehension | ast.match_case
)
SHOWN_MAX = 20
PUBLIC_TWICE = {"Finding"}
"""What authors of rules import from the SDK has the name of what their rules report."""
FILES_MAX = 22
"""About twenty: a folder is seen at a glance."""
METHODS_MAX = 24
"""Of a class. One with more is about several things, which have a name each."""
LARGE = {"PostgresStore", "MemoryStore", "SqliteStore", "RunReader", "Worker", "Attempt", "Dispatch", "Session"}
"""Classes that have more: a store has a method for each line of the protocols. None may join them."""
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    name: str
    code_lines: int
    complexity: int
    parameters: int
    is_hinted: bool


@dataclass(frozen=True)
class Module:
    name: str
    lines: int
    code_lines: int
    silenced: int
    broad_excepts: int
    comments: int
    classes: dict[str, int]
    """Each with the number of its methods."""
    imports: frozenset[str]
    status_sets: int = 0
    functions: list[Function] = field(default_factory=list)


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def holds(self) -> bool:
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def read_modules(folder: Path = SOURCE) -> list[Module]:
    return [read_module(file, folder) for file in sorted(folder.rglob("*.py"))]


def read_module(file: Path, folder: Path) -> Module:
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source)
    quiet = quiet_lines(source, tree)
    name = ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")
    nodes = list(ast.walk(tree))
    return Module(
        name=name,
        lines=source.count("\n"),
        code_lines=source.count("\n") - len(quiet),
        silenced=sum(source.count(mark) for mark in SILENCERS),
        broad_excepts=sum(is_broad(node) for node in nodes),
        comments=sum(map(says_why, comments_of(source))),
        classes={node.name: methods_of(node) for node in nodes if isinstance(node, ast.ClassDef)},
        imports=frozenset(target for node in nodes for target in targets(node)),
        status_sets=sum(is_status_set(node) for node in nodes),
        functions=[function_of(node, quiet, file.stem) for node in nodes if isinstance(node, FunctionNode)],
    )


def comments_of(source: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def says_why(comment: str) -> bool:
    """Whether a comment is a sentence for a reader: not a ruler between parts of a file, not a mark for a tool."""
    return not RULER.match(comment) and not MARK.match(comment)


def quiet_lines(source: str, tree: ast.Module) -> set[int]:
    """Lines that hold no code: blanks, comments, docstrings."""
    quiet = {number for number, line in enumerate(source.splitlines(), 1) if not line.strip()}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            quiet.add(token.start[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            quiet.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return quiet


def function_of(node: FunctionNode, quiet: set[int], stem: str) -> Function:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments += [extra for extra in (node.args.vararg, node.args.kwarg) if extra]
    arguments = [argument for argument in arguments if argument.arg not in {"self", "cls"}]
    return Function(
        name=f"{stem}.{node.name}",
        code_lines=len(set(range(node.lineno, (node.end_lineno or node.lineno) + 1)) - quiet),
        complexity=1 + sum(weight(child) for child in ast.walk(node)),
        parameters=len(arguments),
        is_hinted=node.returns is not None and all(argument.annotation for argument in arguments),
    )


def methods_of(node: ast.ClassDef) -> int:
    return sum(isinstance(child, FunctionNode) for child in node.body)


def weight(node: ast.AST) -> int:
    return len(node.values) - 1 if isinstance(node, ast.BoolOp) else int(isinstance(node, BRANCHES))


def is_broad(node: ast.AST) -> bool:
    return isinstance(node, ast.ExceptHandler) and (
        node.type is None or (isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"})
    )


def is_status_set(node: ast.AST) -> bool:
    """Whether statuses are gathered here: in braces, in brackets or in a tuple, as members or as their values."""
    if not isinstance(node, ast.Set | ast.Tuple | ast.List) or not node.elts:
        return False
    return all(is_status(element) for element in node.elts)


def is_status(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "value":
        node = node.value
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in STATUSES


def status_sets_elsewhere(modules: Sequence[Module]) -> int:
    """How many sets of statuses are built outside the one module that names them."""
    return sum(module.status_sets for module in modules if not module.name.endswith(".status"))


def targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_graph(modules: Sequence[Module]) -> dict[str, set[str]]:
    names = {module.name for module in modules}
    return {module.name: (set(module.imports) & names) - {module.name} for module in modules}


def cyclic_modules(graph: dict[str, set[str]]) -> int:
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        return len(set(error.args[1]))
    return 0


def pure_share(modules: Sequence[Module], graph: dict[str, set[str]]) -> float:
    """The share of code in modules that reach no I/O, clock, chance or thread, themselves or through others."""
    impure = {module.name for module in modules if {name.split(".")[0] for name in module.imports} & IMPURE}
    while more := {name for name, imported in graph.items() if name not in impure and imported & impure}:
        impure |= more
    pure = sum(module.code_lines for module in modules if module.name not in impure)
    return 100 * pure / sum(module.code_lines for module in modules)


def p95(values: Sequence[int]) -> int:
    return sorted(values)[max(0, math.ceil(0.95 * len(values)) - 1)]


def files_a_folder() -> Counter[str]:
    """How many files each folder of sources and tests holds, of those that belong to the project."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    names = {
        name for name in listed.stdout.split("\n") if name.startswith(("src/", "tests/")) and (ROOT / name).exists()
    }
    return Counter(name.rpartition("/")[0] for name in names)


def repeated_classes(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Names of classes that stand for more than one class, each with the modules that define it."""
    homes: dict[str, list[str]] = {}
    for module in modules:
        for name in module.classes:
            homes.setdefault(name, []).append(module.name)
    return {name: modules for name, modules in homes.items() if len(modules) > 1 and name not in PUBLIC_TWICE}


def repeated_names(modules: Sequence[Module]) -> list[str]:
    return [f"{name} in {', '.join(homes)}" for name, homes in sorted(repeated_classes(modules).items())]


def large_classes(modules: Sequence[Module]) -> dict[str, int]:
    """Classes with more methods than a reader keeps in mind."""
    counted = (item for module in modules for item in module.classes.items())
    return {name: methods for name, methods in counted if methods > METHODS_MAX}


def figures(modules: Sequence[Module]) -> list[Figure]:
    functions = [function for module in modules for function in module.functions]
    thousands = sum(module.code_lines for module in modules) / 1_000
    graph = import_graph(modules)
    return [
        Figure("function code lines, p95", p95([function.code_lines for function in functions]), 30),
        Figure("function code lines, max", max(function.code_lines for function in functions), 60),
        Figure("file lines, max", max(module.lines for module in modules), 500),
        Figure("complexity, p95", p95([function.complexity for function in functions]), 7),
        Figure("parameters, p95", p95([function.parameters for function in functions]), 4),
        Figure("hinted functions, %", 100 * sum(f.is_hinted for f in functions) / len(functions), 100, at_least=True),
        Figure("modules in import cycles", cyclic_modules(graph), 0),
        Figure("silenced checks per 1,000 lines", sum(module.silenced for module in modules) / thousands, 2),
        Figure("broad excepts per 1,000 lines", sum(module.broad_excepts for module in modules) / thousands, 1),
        Figure("status sets outside status.py", status_sets_elsewhere(modules), 0),
        Figure("code that reaches no I/O, %", pure_share(modules, graph), 40, at_least=True),
        Figure(
            "comments that say why, per 100 lines",
            sum(module.comments for module in modules) / thousands / 10,
            2,
            at_least=True,
        ),
        Figure("files a folder, max", max(files_a_folder().values()), FILES_MAX),
        Figure("methods of a class, max", max(large_classes(modules).values(), default=0), 49),
        Figure(f"classes of more than {METHODS_MAX} methods", len(large_classes(modules).keys() - LARGE), 0),
        Figure("class names defined twice", len(repeated_classes(modules)), 0),
        Figure("banned words", len(offences(ROOT)), 0),
    ]


def main() -> int:
    modules = read_modules()
    lines = sum(module.code_lines for module in modules)
    sys.stdout.write(f"{len(modules)} files, {lines} lines of code\n")
    found = figures(modules)
    for figure in found:
        bound = "at least" if figure.at_least else "at most"
        verdict = "" if figure.holds else "  <- look here"
        sys.stdout.write(f"  {figure.name:34} {figure.value:6.1f}   ({bound} {figure.limit:g}){verdict}\n")
    functions = [function for module in modules for function in module.functions]
    longest = sorted(functions, key=lambda function: -function.code_lines)[:5]
    knotty = sorted(functions, key=lambda function: -function.complexity)[:5]
    sys.stdout.write("longest:  " + ", ".join(f"{f.name} {f.code_lines}" for f in longest) + "\n")
    sys.stdout.write("knottiest: " + ", ".join(f"{f.name} {f.complexity}" for f in knotty) + "\n")
    crowded = [f"{folder} {count}" for folder, count in files_a_folder().most_common() if count > FILES_MAX]
    large = [f"{name} {methods}" for name, methods in large_classes(modules).items() if name not in LARGE]
    for title, places in (
        ("large", large),
        ("crowded", crowded),
        ("twice", repeated_names(modules)),
        ("banned", map(str, offences(ROOT))),
    ):
        for place in itertools.islice(places, SHOWN_MAX):
            sys.stdout.write(f"{title}: {place}\n")
    return int(not all(figure.holds for figure in found))


if __name__ == "__main__":
    raise SystemExit(main())
