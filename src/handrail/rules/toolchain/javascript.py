"""JavaScript and TypeScript: syntax by Node, types by tsc, tests by the runner in package.json, lint by eslint."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from handrail.engine.sandbox import Ran
from handrail.rules.files.project import is_in
from handrail.rules.toolchain.installed.caches import node_stores
from handrail.rules.toolchain.installed.installation import text_of
from handrail.rules.toolchain.installed.node_managers import by_yarn, manager
from handrail.rules.toolchain.installed.nodes import node_of
from handrail.rules.toolchain.linters.of_javascript import javascript_lint
from handrail.rules.toolchain.node.canary import canary_of
from handrail.rules.toolchain.node.scripts import RunnerCall, runner_call
from handrail.rules.toolchain.probe import assignment, flaws, probe
from handrail.rules.toolchain.program import FoundProgram, beside, find
from handrail.rules.toolchain.reading import diagnostics, generic_result, json_of, lcov, maps, numbered, tap, whole
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import (
    MESSAGE_MAX,
    PROBLEMS_MAX,
    REPORT,
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
MANAGERS: Final = ("pnpm", "yarn")
"""Programs that a test script may call besides npm."""
DECLARED: Final = (".d.ts", ".d.mts", ".d.cts")
RUNNERS: Final = {
    "vitest": ("run", "--reporter=json", f"--outputFile={REPORT}"),
    "jest": ("--json", "--ci", f"--outputFile={REPORT}"),
    "mocha": ("--reporter", "json", "--reporter-option", f"output={REPORT}"),
}
"""How each runner writes its results to a file of ours: what the project's own code prints is no result."""
OLD_MOCHA: Final = ("--reporter", "json")
NODE_TEST: Final = ("--test", "--test-reporter=tap", f"--test-reporter-destination={REPORT}")
COVERING: Final = {
    "vitest": ("run", "--coverage.enabled", "--coverage.reporter=text-lcov"),
    "jest": ("--ci", "--coverage", "--coverageReporters=text-lcov"),
}
TESTS_FIX: Final = "fix the code, or the test if that is wrong"
STATUSES: Final = {"passed": "passed", "failed": "failed"}
FILES_LOOKED_INTO_MAX: Final = 2_000
LINE_MAX: Final = 2_000
NO_NODE: Final = CannotRun(message="there is no Node here", fix="install Node, so that `node` is on PATH")
NO_RUNNER: Final = CannotRun(
    message="there is no test runner: package.json names none",
    fix="add a `test` script to package.json, for instance `node --test`; or set `command`",
)

_reads_javascript = re.compile(r'"(?:allowJs|checkJs)"\s*:\s*true')
_own_test = re.compile(r"[._-]tests?\.|(?:^|/)(?:test|tests|__tests__)/|(?:^|/)test[.-]")
_test_file = re.compile(r"[._-](?:tests?|spec)\.|(?:^|/)(?:test|tests|spec|specs|__tests__)/|(?:^|/)test[.-]")
_only = re.compile(
    r"(?<![\w.$])((?:it|test|describe|suite|context|specify|bench)(?:\.\w+)?\.only\b|f(?:it|describe)(?=\())"
)
_comment = re.compile(r"\s*(?://|\*|/\*)")
_error = re.compile(r"(?:Uncaught )?(\w{0,100}(?:Error|Exception))\b")
_stack_place = re.compile(r"(?:\(|at |file://)(?!node:)([^\s():]{1,300}):(\d{1,7}):(\d{1,6})")


def _node(site: Site) -> FoundProgram | None:
    found = node_of(site)
    return FoundProgram("node", found.path, found.why, needs=node_stores()) if found else None


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _syntax(site, asked, None)


def _syntax(site: Site, asked: TaskOptions, tsc: FoundProgram | None) -> Sequence[Task | CannotRun]:
    """The syntax of JavaScript by Node, without the files that this tsc reads."""
    node = _node(site)
    if node is None:
        return [NO_NODE]
    files = [name for name in site.sources(*SOURCES) if _is_chosen(name, asked.paths)]
    if not files:
        return [CannotRun(message="there are no JavaScript files", fix="name the folder with `path`")]
    argv = (str(node.path), "--experimental-vm-modules", "--no-warnings", "--input-type=commonjs", "-", *asked.args)
    named = [f"const {assignment('FILES', files)}", f"const {assignment('TSC', str(tsc.path) if tsc else '')}"]
    script = "".join([*named, probe("compile.js")])
    programs = (node, *([tsc] if tsc else []))
    return [Task(argv=argv, read=flaws, programs=programs, fix="fix the syntax", env=QUIET, stdin=script)]


def _is_chosen(name: str, paths: Sequence[str]) -> bool:
    bare = [path.removeprefix("./") for path in paths]
    return not bare or any(name == path or path == "." or name.startswith(f"{path}/") for path in bare)


def _build_typed(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    """The types by tsc, and the syntax of JavaScript that tsc does not read: many projects have both."""
    plain = _scripts(site, asked)
    typed = [name for name in site.sources(*TYPED) if _is_chosen(name, asked.paths)]
    needs_types = any(not name.endswith(DECLARED) for name in typed) or (typed and find(site, "tsc"))
    return [*_types(site, asked), *plain] if needs_types or not plain else plain


def _scripts(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    """The syntax of the JavaScript files, if there are any."""
    if not any(_is_chosen(name, asked.paths) for name in site.sources(*SOURCES)):
        return []
    return _syntax(site, asked, find(site, "tsc") if _reads_javascript.search(site.text("tsconfig.json")) else None)


def _types(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node, tsc = _node(site), find(site, "tsc")
    if node is None:
        return [NO_NODE]
    if tsc is None:
        return [
            CannotRun(message="there is no tsc here", fix="add typescript to the project: npm install -D typescript")
        ]
    config = ("-p", ".") if site.has("tsconfig.json") and not asked.paths else _typed(site, asked)
    argv = (str(tsc.path), "--noEmit", "--pretty", "false", *asked.args, *config)
    fix = "fix the types"
    return [Task(argv=argv, read=diagnostics, programs=(tsc, node), fix=fix, env=QUIET, finds=(1, 2))]


def _typed(site: Site, asked: TaskOptions) -> tuple[str, ...]:
    return asked.paths or tuple(f"./{name}" for name in site.sources(*TYPED))


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node = _node(site)
    if node is None:
        return [NO_NODE]
    package = _package(site)
    call = _runner_call(site, package)
    if call is not None and call.runner in RUNNERS:
        return [_without_only(site, _by_runner(site, asked, node, call))]
    if call is not None:
        paths = _node_paths(site, asked) if asked.paths else _expanded(site, call.paths)
        argv = (str(node.path), *call.options, *NODE_TEST, *asked.args, *paths)
        return [_without_only(site, replace(_tests(argv, (node,), tap, call), canary=canary_of(site, "node")))]
    by_manager = _by_manager(site, asked, node, package)
    return [NO_RUNNER if by_manager is None else _without_only(site, by_manager)]


def _by_manager(site: Site, asked: TaskOptions, node: FoundProgram, package: Mapping[str, Any]) -> Task | None:
    """The tests by the package manager: the project's own script, or those of its workspaces."""
    npm, pnpm = beside(node, "npm") or find(site, "npm"), manager(site, node, "pnpm")
    if _script(package) and npm:
        helpers = tuple(filter(None, (manager(site, node, one) for one in MANAGERS if one in _script(package).split())))
        return _tests((str(npm.path), "test", "--silent", *asked.args), (npm, node, *helpers), generic_result)
    if site.has("pnpm-workspace.yaml") and pnpm:
        return _tests((*pnpm.call, "--recursive", "test", *asked.args), (pnpm, node), generic_result)
    if package.get("workspaces") and npm:
        argv = (str(npm.path), "test", "--workspaces", "--if-present", "--silent", *asked.args)
        return _tests(argv, (npm, node), generic_result)
    return None


def _runner_call(site: Site, package: Mapping[str, Any]) -> RunnerCall | None:
    """How the project runs its tests: as its script says, else by a runner that it depends on, else by Node."""
    scripts = package.get("scripts")
    if _script(package) and isinstance(scripts, Mapping) and (found := runner_call(scripts)):
        return found
    if runner := next((name for name in RUNNERS if _needs(package, name)), ""):
        return RunnerCall(runner=runner)
    return RunnerCall(runner="node") if _is_node_tested(site, package) else None


def _expanded(site: Site, paths: Sequence[str]) -> tuple[str, ...]:
    """Files of a script; a shell would have replaced patterns, and Node reads them only since version 21."""
    found: list[str] = []
    for path in paths:
        matching = [name for name in site.files if "*" in path and is_in(name, [path.removeprefix("./")])]
        found += [f"./{name}" for name in matching] or [path]
    return tuple(found)


def _by_runner(site: Site, asked: TaskOptions, node: FoundProgram, call: RunnerCall) -> Task | CannotRun:
    runner = call.runner
    program = find(site, runner) or by_yarn(site, node, runner)
    if program is None:
        return CannotRun(message=f"there is no {runner} here", fix="install the project's packages: npm ci")
    reporting = OLD_MOCHA if runner == "mocha" and _is_old(program) else RUNNERS[runner]
    argv = (*program.call, *reporting, *call.options, *asked.args, *(asked.paths or call.paths))
    read = partial(mocha if runner == "mocha" else jest, root=str(site.folder))
    return replace(_tests(argv, (program, node), read, call), canary=canary_of(site, runner))


def _is_old(mocha_program: FoundProgram) -> bool:
    """Whether this Mocha can't write its results to a file."""
    package = json_of(text_of(mocha_program.path.resolve().parent.parent / "package.json"))
    version = str(package.get("version", "")) if isinstance(package, Mapping) else ""
    return bool(re.match(r"[0-8]\.|9\.[01]\.", version))


def _tests(
    argv: tuple[str, ...], programs: tuple[FoundProgram, ...], read: Read, call: RunnerCall | None = None
) -> Task:
    env = {**QUIET, **(call.env if call else {})}
    if call and call.node:
        env["NODE_OPTIONS"] = " ".join([env.get("NODE_OPTIONS", ""), *call.node]).strip()
    return Task(argv=argv, read=read, programs=programs, fix=TESTS_FIX, env=env, writable=True)


def _without_only(site: Site, task: Task | CannotRun) -> Task | CannotRun:
    """The task; a test file that lets only some of its tests run is a problem, whatever the runner says of it."""
    if isinstance(task, CannotRun):
        return task
    found = tuple(_only_in(site))

    def read(ran: Ran) -> Result:
        result = task.read(ran)
        return replace(result, problems=(*found, *result.problems)) if found else result

    return replace(task, read=read)


def _only_in(site: Site) -> Iterator[Problem]:
    tests = [name for name in site.sources(*SOURCES, *TYPED, ".jsx") if _test_file.search(name)]
    for name in tests[:FILES_LOOKED_INTO_MAX]:
        for number, line in enumerate(site.text(name).splitlines(), 1):
            text = line[:LINE_MAX]
            if not _comment.match(text) and (found := _only.search(text)):
                message = f"`{found[1]}` leaves out the other tests"
                yield Problem(file=name, line=number, column=found.start(1) + 1, message=message, excerpt=text.strip())


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
    return name in _script(package).split() or _needs(package, name)


def _needs(package: Mapping[str, Any], name: str) -> bool:
    needs = [package.get(key) for key in ("dependencies", "devDependencies")]
    return any(isinstance(one, Mapping) and name in one for one in needs)


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


def jest(ran: Ran, root: str = "") -> Result:
    """The JSON output of Jest and Vitest."""
    assignment = json_of(ran.stdout)
    if not isinstance(assignment, dict) or "numTotalTests" not in assignment:
        return Result(is_whole=False)
    names = {"tests": "numTotalTests", "passed": "numPassedTests", "failed": "numFailedTests"}
    counts = {name: whole(assignment.get(key)) for name, key in names.items()}
    counts["skipped"] = whole(assignment.get("numPendingTests"))
    files = maps(assignment.get("testResults"))
    problems = [problem for file in files for problem in _of_jest(file)]
    return Result(counts=counts, problems=tuple(problems[:PROBLEMS_MAX]), tests=_named_by_jest(files, root))


def _named_by_jest(files: Sequence[Mapping[str, Any]], root: str) -> dict[str, str]:
    every = [(file, one) for file in files for one in maps(file.get("assertionResults"))][:PROBLEMS_MAX]
    named = [
        (_in_file(file.get("name"), one.get("fullName"), root), STATUSES.get(str(one.get("status")), "skipped"))
        for file, one in every
    ]
    return numbered(named)


def _in_file(file: object, name: object, root: str) -> str:
    """The name of a test with its file, if that is known."""
    path = str(file or "").removeprefix(f"{root}/")
    return f"{path}::{name}" if path else str(name)


def _of_jest(file: Mapping[str, Any]) -> list[Problem]:
    name = str(file.get("name", ""))
    failed = [one for one in maps(file.get("assertionResults")) if one.get("status") == "failed"]
    if not failed and file.get("status") == "failed":
        return [_failed(name, "the file", str(file.get("message", "")))]
    return [
        _failed(name, str(one.get("fullName")), "\n".join(map(str, one.get("failureMessages", [])))) for one in failed
    ]


def mocha(ran: Ran, root: str = "") -> Result:
    """The JSON output of Mocha."""
    assignment = json_of(ran.stdout)
    if not isinstance(assignment, dict) or not isinstance(assignment.get("stats"), dict):
        return Result(is_whole=False)
    names = {"tests": "tests", "passed": "passes", "failed": "failures", "skipped": "pending"}
    counts = {name: whole(assignment["stats"].get(key)) for name, key in names.items()}
    failed = maps(assignment.get("failures"))
    problems = [_failed(str(one.get("file", "")), str(one.get("fullTitle")), _stack(one)) for one in failed]
    lists = (("passes", "passed"), ("pending", "skipped"), ("failures", "failed"))
    every = [(one, word) for key, word in lists for one in maps(assignment.get(key))]
    tests = numbered([(_in_file(one.get("file"), one.get("fullTitle"), root), word) for one, word in every])
    return Result(counts=counts, problems=tuple(problems[:PROBLEMS_MAX]), tests=tests)


def _stack(one: Mapping[str, Any]) -> str:
    error = one.get("err")
    return str(error.get("stack") or error.get("message") or "") if isinstance(error, Mapping) else ""


def _failed(file: str, name: str, words: str) -> Problem:
    """A failed test; its place is the first of the stack that is in its own file."""
    places = [place for place in _stack_place.finditer(words[:10_000]) if file.endswith(place[1])]
    line, column = (int(places[0][2]), int(places[0][3])) if places else (0, 0)
    why = next((one.strip() for one in words.splitlines() if one.strip()), "it does not say why")
    message = f"{name} fails: {why}"[:MESSAGE_MAX]
    return Problem(file=file, line=line, column=column, message=message, excerpt=words[:600], raised=_raised(why))


def _raised(why: str) -> str:
    """The kind of error that a test failed with; Jest's own assertions are plain errors."""
    found = _error.match(why)
    is_assertion = why.startswith("Error: expect(")
    return "AssertionError" if is_assertion else found[1] if found else ""


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node = _node(site)
    return [NO_NODE] if node is None else javascript_lint(site, asked, node, _package(site))


def _lint_typed(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    """The linter, and the types if there is a tsc: `compiles` is the check that needs one."""
    types = _types(site, asked) if _has_types(site) and asked.targets(*TYPED) else []
    return [*types, *(one for one in _lint(site, asked) if not types or not getattr(one, "is_note", False))]


def _has_types(site: Site) -> bool:
    return any(not name.endswith(DECLARED) for name in site.sources(*TYPED)) and find(site, "tsc") is not None


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node = _node(site)
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
    npm = beside(node, "npm") or find(site, "npm")
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
