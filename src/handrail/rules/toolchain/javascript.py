"""JavaScript and TypeScript: syntax by Node, types by tsc, tests by the runner in package.json, lint by eslint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.coverage_report import lcov
from handrail.rules.toolchain.probe import assignment, flaws, probe
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.reading import diagnostics, generic_result, json_of, maps, tap, whole
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import (
    MESSAGE_MAX,
    PROBLEMS_MAX,
    CannotRun,
    Language,
    Problem,
    Read,
    Result,
    Task,
    TaskKind,
    TaskOptions,
)

QUIET: Final = {"NO_COLOR": "1", "FORCE_COLOR": "0", "CI": "true", "NODE_DISABLE_COMPILE_CACHE": "1"}
SOURCES: Final = (".js", ".mjs", ".cjs")
TYPED: Final = (".ts", ".tsx", ".mts", ".cts")
RUNNERS: Final = {
    "vitest": ("run", "--reporter=json"),
    "jest": ("--json", "--ci"),
    "mocha": ("--reporter", "json"),
}
COVERING: Final = {
    "vitest": ("run", "--coverage.enabled", "--coverage.reporter=text-lcov"),
    "jest": ("--ci", "--coverage", "--coverageReporters=text-lcov"),
}
LINTED: Final = tuple(f"eslint.config.{suffix}" for suffix in ("js", "mjs", "cjs", "ts", "mts", "cts"))
TESTS_FIX: Final = "fix the code, or the test if that is wrong"
NO_NODE: Final = CannotRun(message="there is no Node here", fix="install Node, so that `node` is on PATH")

_own_test = re.compile(r"[._-]tests?\.|(?:^|/)(?:test|tests|__tests__)/|(?:^|/)test[.-]")
_stack_place = re.compile(r"(?:\(|at |file://)(?!node:)([^\s():]{1,300}):(\d{1,7}):(\d{1,6})")


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node = find(site, "node")
    if node is None:
        return [NO_NODE]
    files = [name for name in site.sources(*SOURCES) if _is_chosen(name, asked.paths)]
    if not files:
        return [CannotRun(message="there are no JavaScript files", fix="name the folder with `path`")]
    argv = (str(node.path), "--experimental-vm-modules", "--no-warnings", "--input-type=commonjs", "-", *asked.args)
    script = "const " + assignment("FILES", files) + probe("compile.js")
    return [Task(argv=argv, read=flaws, programs=(node,), fix="fix the syntax", env=QUIET, stdin=script)]


def _is_chosen(name: str, paths: Sequence[str]) -> bool:
    bare = [path.removeprefix("./") for path in paths]
    return not bare or any(name == path or path == "." or name.startswith(f"{path}/") for path in bare)


def _build_typed(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node, tsc = find(site, "node"), find(site, "tsc")
    if node is None:
        return [NO_NODE]
    if tsc is None:
        return [
            CannotRun(message="there is no tsc here", fix="add typescript to the project: npm install -D typescript")
        ]
    config = ("-p", ".") if site.has("tsconfig.json") and not asked.paths else _typed(site, asked)
    argv = (str(tsc.path), "--noEmit", "--pretty", "false", *asked.args, *config)
    fix = "fix the types"
    return [Task(argv=argv, read=diagnostics, programs=(tsc, node), fix=fix, env=QUIET, exits=(0,))]


def _typed(site: Site, asked: TaskOptions) -> tuple[str, ...]:
    return asked.paths or tuple(f"./{name}" for name in site.sources(*TYPED))


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node = find(site, "node")
    if node is None:
        return [NO_NODE]
    package = _package(site)
    runner = next((name for name in RUNNERS if _uses(package, name)), "")
    if runner:
        return [_by_runner(site, asked, node, runner)]
    if _is_node_tested(site, package):
        argv = (str(node.path), "--test", "--test-reporter=tap", *asked.args, *_node_paths(site, asked))
        return [_tests(argv, (node,), tap)]
    npm = find(site, "npm")
    if _script(package) and npm:
        return [_tests((str(npm.path), "test", "--silent", *asked.args), (npm, node), generic_result)]
    fix = "add a `test` script to package.json, for instance `node --test`; or set `command`"
    return [CannotRun(message="there is no test runner: package.json names none", fix=fix)]


def _by_runner(site: Site, asked: TaskOptions, node: FoundProgram, runner: str) -> Task | CannotRun:
    program = find(site, runner)
    if program is None:
        return CannotRun(message=f"there is no {runner} here", fix="install the project's packages: npm ci")
    argv = (str(program.path), *RUNNERS[runner], *asked.args, *asked.paths)
    return _tests(argv, (program, node), mocha if runner == "mocha" else jest)


def _tests(argv: tuple[str, ...], programs: tuple[FoundProgram, ...], read: Read) -> Task:
    return Task(argv=argv, read=read, programs=programs, fix=TESTS_FIX, env=QUIET, writable=True)


def _covering(argv: tuple[str, ...], programs: tuple[FoundProgram, ...], read: Read) -> Task:
    return replace(_tests(argv, programs, read), fix="make the tests pass first")


def _package(site: Site) -> Mapping[str, Any]:
    found = json_of(site.text("package.json"))
    return found if isinstance(found, Mapping) else {}


def _script(package: Mapping[str, Any]) -> str:
    scripts = package.get("scripts")
    script = str(scripts.get("test", "")) if isinstance(scripts, Mapping) else ""
    return "" if "no test specified" in script else script


def _uses(package: Mapping[str, Any], name: str) -> bool:
    needs = [package.get(key) for key in ("dependencies", "devDependencies")]
    return name in _script(package).split() or any(isinstance(one, Mapping) and name in one for one in needs)


def _is_node_tested(site: Site, package: Mapping[str, Any]) -> bool:
    if "--test" in _script(package):
        return True
    tests = [name for name in site.sources(*SOURCES, *TYPED) if _own_test.search(name)]
    return not _script(package) and any("node:test" in site.text(name) for name in tests[:50])


def _node_paths(site: Site, asked: TaskOptions) -> tuple[str, ...]:
    """The test files of folders, one by one: before Node 22 a folder is not accepted."""
    folders = [path.removeprefix("./") for path in asked.paths if (site.folder / path).is_dir()]
    tests = [name for name in site.sources(*SOURCES, *TYPED) if _own_test.search(name)]
    below = [f"./{name}" for name in tests if any(name.startswith(f"{folder}/") for folder in folders)]
    return (*below, *(path for path in asked.paths if path.removeprefix("./") not in folders))


def jest(ran: Ran) -> Result:
    """The JSON output of Jest and Vitest."""
    assignment = json_of(ran.stdout)
    if not isinstance(assignment, dict) or "numTotalTests" not in assignment:
        return Result(is_whole=False)
    names = {"tests": "numTotalTests", "passed": "numPassedTests", "failed": "numFailedTests"}
    counts = {name: whole(assignment.get(key)) for name, key in names.items()}
    counts["skipped"] = whole(assignment.get("numPendingTests"))
    problems = [problem for file in maps(assignment.get("testResults")) for problem in _of_jest(file)]
    return Result(counts=counts, problems=tuple(problems[:PROBLEMS_MAX]))


def _of_jest(file: Mapping[str, Any]) -> list[Problem]:
    name = str(file.get("name", ""))
    failed = [one for one in maps(file.get("assertionResults")) if one.get("status") == "failed"]
    if not failed and file.get("status") == "failed":
        return [_failed(name, "the file", str(file.get("message", "")))]
    return [
        _failed(name, str(one.get("fullName")), "\n".join(map(str, one.get("failureMessages", [])))) for one in failed
    ]


def mocha(ran: Ran) -> Result:
    """The JSON output of Mocha."""
    assignment = json_of(ran.stdout)
    if not isinstance(assignment, dict) or not isinstance(assignment.get("stats"), dict):
        return Result(is_whole=False)
    names = {"tests": "tests", "passed": "passes", "failed": "failures", "skipped": "pending"}
    counts = {name: whole(assignment["stats"].get(key)) for name, key in names.items()}
    failed = maps(assignment.get("failures"))
    problems = [_failed(str(one.get("file", "")), str(one.get("fullTitle")), _stack(one)) for one in failed]
    return Result(counts=counts, problems=tuple(problems[:PROBLEMS_MAX]))


def _stack(one: Mapping[str, Any]) -> str:
    error = one.get("err")
    return str(error.get("stack") or error.get("message") or "") if isinstance(error, Mapping) else ""


def _failed(file: str, name: str, words: str) -> Problem:
    """A failed test; its place is the first of the stack that is in its own file."""
    places = [place for place in _stack_place.finditer(words[:10_000]) if file.endswith(place[1])]
    line, column = (int(places[0][2]), int(places[0][3])) if places else (0, 0)
    why = next((one.strip() for one in words.splitlines() if one.strip()), "it does not say why")
    message = f"{name} fails: {why}"[:MESSAGE_MAX]
    return Problem(file=file, line=line, column=column, message=message, excerpt=words[:600])


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node, eslint = find(site, "node"), find(site, "eslint")
    if node is None:
        return [NO_NODE]
    if eslint is None:
        return [CannotRun(message="there is no eslint here", fix="add eslint to the project: npm install -D eslint")]
    argv = (str(eslint.path), "--format", "json", *asked.args, *(asked.paths or ["."]))
    return [Task(argv=argv, read=_eslint, programs=(eslint, node), fix="fix it; `eslint --fix` fixes much", env=QUIET)]


def _lint_typed(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    types = _build_typed(site, asked)
    is_linted = find(site, "eslint") is not None and any(map(site.has, LINTED))
    return [*types, *_lint(site, asked)] if is_linted else types


def _eslint(ran: Ran) -> Result:
    assignment = json_of(ran.stdout)
    if not isinstance(assignment, list):
        return Result(is_whole=False)
    files = maps(assignment)
    pairs = [(str(file.get("filePath", "")), one) for file in files for one in maps(file.get("messages"))]
    problems = tuple(_of_eslint(name, one) for name, one in pairs[:PROBLEMS_MAX])
    return Result(counts={"files": len(files), "problems": len(pairs)}, problems=problems)


def _of_eslint(file: str, one: Mapping[str, Any]) -> Problem:
    message = f"{one.get('ruleId') or 'syntax'}: {one.get('message', '')}"[:MESSAGE_MAX]
    return Problem(file=file, line=whole(one.get("line")), column=whole(one.get("column")), message=message)


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node = find(site, "node")
    if node is None:
        return [NO_NODE]
    package = _package(site)
    runner = next((name for name in COVERING if _uses(package, name)), "")
    program = find(site, runner) if runner else None
    if program:
        argv = (str(program.path), *COVERING[runner], *asked.args, *asked.paths)
        return [_covering(argv, (program, node), lcov)]
    if _is_node_tested(site, package):
        options = ("--test", "--experimental-test-coverage", "--test-reporter=lcov")
        argv = (str(node.path), *options, *asked.args, *_node_paths(site, asked))
        return [_covering(argv, (node,), lcov)]
    around = find(site, "c8", "nyc")
    npm = find(site, "npm")
    if around and npm:
        argv = (str(around.path), "--reporter=text-lcov", str(npm.path), "test", "--silent")
        return [_covering(argv, (around, npm, node), lcov)]
    return [CannotRun(message="no tool to measure coverage is installed", fix="add c8, or test with `node --test`")]


JAVASCRIPT: Final = Language(
    name="javascript",
    markers=("package.json",),
    suffixes=SOURCES,
    plans={TaskKind.BUILD: _build, TaskKind.TEST: _test, TaskKind.LINT: _lint, TaskKind.COVERAGE: _coverage},
)
TYPESCRIPT: Final = Language(
    name="typescript",
    markers=("tsconfig.json",),
    suffixes=TYPED,
    plans={
        TaskKind.BUILD: _build_typed,
        TaskKind.TEST: _test,
        TaskKind.LINT: _lint_typed,
        TaskKind.COVERAGE: _coverage,
    },
)
