"""The tests of JavaScript: a task for each runner that the project's script calls, with results in a file of ours."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from posixpath import relpath
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.engine.sandbox import Ran
from handrail.rules.files.project import is_in
from handrail.rules.toolchain.in_folder import in_folder
from handrail.rules.toolchain.installed.installation import text_of
from handrail.rules.toolchain.installed.node_managers import by_yarn, manager
from handrail.rules.toolchain.node.canary import canary_of
from handrail.rules.toolchain.node.results import jest, mocha
from handrail.rules.toolchain.node.scripts import (
    NAMED_BY_TAP,
    UNKNOWN,
    Before,
    RunnerCall,
    script_calls,
    script_steps,
    workspace_calls,
)
from handrail.rules.toolchain.node.workspaces import package_at
from handrail.rules.toolchain.program import SYSTEM_PATH, FoundProgram, beside, find
from handrail.rules.toolchain.reading import generic_result, json_of, tap
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import REPORT, CannotRun, Problem, Read, Result, Task, TaskOptions

QUIET: Final = {"NO_COLOR": "1", "FORCE_COLOR": "0", "CI": "true", "NODE_DISABLE_COMPILE_CACHE": "1"}
SOURCES: Final = (".js", ".mjs", ".cjs")
TYPED: Final = (".ts", ".tsx", ".mts", ".cts")
MANAGERS: Final = ("pnpm", "yarn")
"""Programs that a script may call besides npm."""
RUNNERS: Final = {
    "vitest": ("run", "--reporter=json", f"--outputFile={REPORT}"),
    "jest": ("--json", "--ci", f"--outputFile={REPORT}"),
    "mocha": ("--reporter", "json", "--reporter-option", f"output={REPORT}"),
}
"""How each runner writes its results to a file of ours: what the project's own code prints is no result."""
OLD_MOCHA: Final = ("--reporter", "json")
TO_TAP: Final = {"ava": ("--tap",), "tap": ("--reporter=tap",), "tape": (), "qunit": ("--reporter", "tap")}
"""How the others are made to print the Test Anything Protocol."""
NODE_TEST: Final = ("--test", "--test-reporter=tap", f"--test-reporter-destination={REPORT}")
TESTS_FIX: Final = "fix the code, or the test if that is wrong"
FILES_LOOKED_INTO_MAX: Final = 2_000
BUILT_LOOKED_INTO_MAX: Final = 50
BUILDS: Final = ("build", "compile")
"""Scripts that build a package, by custom."""
LINE_MAX: Final = 2_000
NO_RUNNER: Final = CannotRun(
    message="there is no test runner: package.json names none",
    fix="add a `test` script to package.json, for instance `node --test`; or set `command`",
    fixed_by=FixedBy.AGENT,
)

_built = re.compile(r"^(?:\./)?(?:dist|build|out)/")
_imports_built = re.compile(r"['\"](?:\.\.?/)+(?:dist|build|out)/")
_imports_main = re.compile(r"(?:from|import|require\()\s*['\"]\.\.(?:/\.\.)*/?['\"]")
_own_test = re.compile(r"[._-]tests?\.|(?:^|/)(?:test|tests|__tests__)/|(?:^|/)test[.-]")
_test_file = re.compile(r"[._-](?:tests?|spec)\.|(?:^|/)(?:test|tests|spec|specs|__tests__)/|(?:^|/)test[.-]")
_only = re.compile(
    r"(?<![\w.$])((?:it|test|describe|suite|context|specify|bench)(?:\.\w+)?\.only\b|f(?:it|describe)(?=\())"
)
_comment = re.compile(r"\s*(?://|\*|/\*)")


def test_tasks(
    site: Site, asked: TaskOptions, node: FoundProgram, package: Mapping[str, Any]
) -> Sequence[Task | CannotRun]:
    """What to run; `package` is the content of package.json."""
    tasks: list[Task | CannotRun] = []
    seen: set[str] = set()
    for call in _calls(site, package):
        below = _asked_below(asked, call.folder)
        if below is not None:
            part = site.below(call.folder)
            task = _task(part, below, node, call)
            tasks.append(in_folder(task if call.folder in seen else _without_only(part, task), call.folder, site))
            seen.add(call.folder)
    if tasks:
        return tasks
    by_manager = _by_manager(site, asked, node, package)
    return [NO_RUNNER if by_manager is None else _without_only(site, by_manager)]


def _calls(site: Site, package: Mapping[str, Any]) -> Sequence[RunnerCall]:
    """How the project runs its tests: as its script says, else as its packages say, else by a runner that it depends
    on, else by Node."""
    found = script_calls(site) if script_of(package) else workspace_calls(site)
    return [_from_sources(site, one) for one in found] or list(_by_custom(site, package))


def _by_custom(site: Site, package: Mapping[str, Any]) -> Iterator[RunnerCall]:
    runner = next((name for name in RUNNERS if needs(package, name)), "")
    if runner or is_node_tested(site, package):
        yield RunnerCall(runner=runner or "node")


def _from_sources(site: Site, call: RunnerCall) -> RunnerCall:
    return call if call.before else replace(call, before=_built_first(site.below(call.folder), call))


def _built_first(site: Site, call: RunnerCall) -> tuple[Before, ...]:
    """What builds the code that the tests of a package import, if they import what was built and not the sources."""
    package = package_at(site, "")
    scripts = package.get("scripts")
    name = next((one for one in BUILDS if isinstance(scripts, Mapping) and isinstance(scripts.get(one), str)), "")
    if not name or not (any(map(_built.match, call.paths)) or _tests_what_is_built(site, package)):
        return ()
    return tuple(replace(one, folder=call.folder) for one in script_steps(site, name))


def _tests_what_is_built(site: Site, package: Mapping[str, Any]) -> bool:
    main = any(_built.match(str(package.get(key, ""))) for key in ("main", "module"))
    texts = (site.text(name) for name in _test_files(site)[:BUILT_LOOKED_INTO_MAX])
    return any(_imports_built.search(text) or (main and _imports_main.search(text)) for text in texts)


def _test_files(site: Site) -> list[str]:
    return [name for name in site.sources(*SOURCES, *TYPED, ".jsx") if _test_file.search(name)]


def _asked_below(asked: TaskOptions, folder: str) -> TaskOptions | None:
    """What an author asks of a package; None if that is about others."""
    if not folder or not asked.paths:
        return asked
    start = f"./{folder}/"
    if any(start.startswith(f"{path.rstrip('/.')}/") for path in asked.paths):
        return replace(asked, paths=())
    below = tuple(f"./{path.removeprefix(start)}" for path in asked.paths if path.startswith(start))
    return replace(asked, paths=below) if below else None


def _task(site: Site, asked: TaskOptions, node: FoundProgram, call: RunnerCall) -> Task | CannotRun:
    if call.runner == UNKNOWN:
        return _by_npm(site, asked, node, call)
    if call.runner == "node":
        return _by_node(site, asked, node, call)
    name = call.program[0] if call.program else call.runner
    program = find(site, name) or by_yarn(site, node, name)
    if program is None:
        return CannotRun(message=f"there is no {name} here", fix="install the project's packages: npm ci")
    words = (*program.call, *call.program[1:], *_reporting(program, call.runner), *call.options, *asked.args)
    task = _tests(words, (program, node), _reader(site, call.runner), call)
    return _framed(task, site, node, call, asked.paths or call.paths)


def _by_node(site: Site, asked: TaskOptions, node: FoundProgram, call: RunnerCall) -> Task:
    task = _tests((str(node.path), *call.options, *NODE_TEST, *asked.args), (node,), tap, call)
    return _framed(task, site, node, call, node_paths(site, asked) if asked.paths else _expanded(site, call.paths))


def _framed(task: Task, site: Site, node: FoundProgram, call: RunnerCall, paths: Sequence[str]) -> Task:
    """The task for these paths, behind what the script runs before it; with a test that must fail."""
    # Node itself does not read patterns of what is not built yet; the shell does.
    globs = [path for path in paths if call.runner == "node" and "*" in path and "**" not in path]
    whole = _prepared(
        replace(task, argv=(*task.argv, *(one for one in paths if one not in globs))), site, node, call, globs
    )
    canary = canary_of(site, call.runner)
    if canary is None:
        return whole
    alone = _prepared(replace(task, argv=(*task.argv, f"./{canary.path}")), site, node, call)
    return replace(whole, canary=replace(canary, argv=whole.argv if call.before else alone.argv))


def _reporting(program: FoundProgram, runner: str) -> tuple[str, ...]:
    if runner in TO_TAP:
        return TO_TAP[runner]
    return OLD_MOCHA if runner == "mocha" and _is_old(program) else RUNNERS[runner]


def _reader(site: Site, runner: str) -> Read:
    if runner in NAMED_BY_TAP:
        return tap
    return partial(mocha if runner == "mocha" else jest, root=str(site.folder))


def _prepared(task: Task, site: Site, node: FoundProgram, call: RunnerCall, globs: Sequence[str] = ()) -> Task:
    """The task, behind what the script runs before it and around what it needs."""
    if not call.before and not call.around and not globs:
        return task
    helpers = _helpers(site, node, call)
    functions = [f'{one.name}() {{ {shlex.join(one.call)} "$@"; }}\n' for one in helpers if one.words]
    lines = [f"{_line(one, call.folder)} " for one in call.before]
    text = "".join([*functions, *lines, '"$@"', *(f" {_unquoted(one)}" for one in globs)])
    argv = ("/bin/sh", "-c", text, "sh", *call.around, *task.argv)
    programs = (*task.programs, *helpers)
    return replace(task, argv=argv, programs=programs, env={**task.env, "PATH": _search_path(site, programs)})


def _helpers(site: Site, node: FoundProgram, call: RunnerCall) -> tuple[FoundProgram, ...]:
    """The package managers that a script calls before its tests."""
    named = [manager(site, node, one) for one in MANAGERS if _mentions(call.before, one)]
    return tuple(filter(None, (*named, beside(node, "npm") if _mentions(call.before, "npm") else None)))


def _search_path(site: Site, programs: Sequence[FoundProgram]) -> str:
    """Where a script of package.json looks for programs."""
    bins = [folder / "node_modules" / ".bin" for folder in site.above()]
    own = [*(place for place in bins if place.is_dir()), *(one.path.parent for one in programs)]
    return ":".join([*dict.fromkeys(map(str, own)), SYSTEM_PATH])


def _unquoted(pattern: str) -> str:
    """A pattern that the shell replaces by files; nothing else in it means anything to the shell."""
    return "*".join(shlex.quote(part) if part else "" for part in pattern.split("*"))


def _mentions(before: Sequence[Before], name: str) -> bool:
    return any(name in one.text.split() for one in before)


def _line(one: Before, folder: str) -> str:
    """A command that comes before, in its own folder."""
    there = relpath(one.folder or ".", folder or ".")
    return f"({one.text}) {one.after}" if there == "." else f"(cd {shlex.quote(there)} && {one.text}) {one.after}"


def _by_npm(site: Site, asked: TaskOptions, node: FoundProgram, call: RunnerCall) -> Task | CannotRun:
    npm = beside(node, "npm") or find(site, "npm")
    if npm is None:
        return CannotRun(message="there is no npm here", fix="install npm, which comes with Node")
    task = _tests((str(npm.path), "run", "--silent", call.script, *asked.args), (npm, node), generic_result, call)
    return _prepared(task, site, node, call)


def _by_manager(site: Site, asked: TaskOptions, node: FoundProgram, package: Mapping[str, Any]) -> Task | None:
    """The tests by the package manager, if the script is not understood."""
    npm = beside(node, "npm") or find(site, "npm")
    if not script_of(package) or npm is None:
        return None
    helpers = tuple(filter(None, (manager(site, node, one) for one in MANAGERS if one in script_of(package).split())))
    return _tests((str(npm.path), "test", "--silent", *asked.args), (npm, node, *helpers), generic_result)


def _expanded(site: Site, paths: Sequence[str]) -> tuple[str, ...]:
    """Files of a script; a shell would have replaced patterns, and Node reads them only since version 21."""
    found: list[str] = []
    for path in paths:
        matching = [name for name in site.files if "*" in path and is_in(name, [path.removeprefix("./")])]
        found += [f"./{name}" for name in matching] or [path]
    return tuple(found)


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
    for name in _test_files(site)[:FILES_LOOKED_INTO_MAX]:
        for number, line in enumerate(site.text(name).splitlines(), 1):
            text = line[:LINE_MAX]
            if not _comment.match(text) and (found := _only.search(text)):
                message = f"`{found[1]}` leaves out the other tests"
                yield Problem(file=name, line=number, column=found.start(1) + 1, message=message, excerpt=text.strip())


def script_of(package: Mapping[str, Any]) -> str:
    """The script that tests a package; empty if it is none."""
    scripts = package.get("scripts")
    script = str(scripts.get("test", "")) if isinstance(scripts, Mapping) else ""
    return "" if "no test specified" in script else script


def needs(package: Mapping[str, Any], name: str) -> bool:
    """Whether a package depends on another."""
    tables = [package.get(key) for key in ("dependencies", "devDependencies")]
    return any(isinstance(one, Mapping) and name in one for one in tables)


def is_node_tested(site: Site, package: Mapping[str, Any]) -> bool:
    """Whether the tests are written for Node's own runner."""
    if "--test" in script_of(package):
        return True
    tests = [name for name in site.sources(*SOURCES, *TYPED) if _own_test.search(name)]
    return not script_of(package) and any("node:test" in site.text(name) for name in tests[:50])


def node_paths(site: Site, asked: TaskOptions) -> tuple[str, ...]:
    """The test files of folders, one by one: before Node 22 a folder is not accepted."""
    folders = [path.removeprefix("./") for path in asked.paths if (site.folder / path).is_dir()]
    tests = [name for name in site.sources(*SOURCES, *TYPED) if _own_test.search(name)]
    below = [f"./{name}" for name in tests if any(name.startswith(f"{folder}/") for folder in folders)]
    return (*below, *(path for path in asked.paths if path.removeprefix("./") not in folders))
