"""JavaScript and TypeScript: syntax by Node, types by tsc, tests by the runner in package.json, lint by eslint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.finding import FixedBy
from handrail.rules.toolchain.installed.caches import linked_packages, node_stores
from handrail.rules.toolchain.installed.nodes import node_of
from handrail.rules.toolchain.linters.of_javascript import javascript_lint
from handrail.rules.toolchain.node.testing import (
    QUIET,
    SOURCES,
    TYPED,
    is_node_tested,
    needs,
    node_paths,
    script_of,
    test_tasks,
)
from handrail.rules.toolchain.node.workspaces import package_at
from handrail.rules.toolchain.probe import assignment, flaws, probe
from handrail.rules.toolchain.program import FoundProgram, beside, find
from handrail.rules.toolchain.reading import diagnostics, lcov
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Language, Read, Task, TaskKind, TaskOptions

DECLARED: Final = (".d.ts", ".d.mts", ".d.cts")
COVERING: Final = {
    "vitest": ("run", "--coverage.enabled", "--coverage.reporter=text-lcov"),
    "jest": ("--ci", "--coverage", "--coverageReporters=text-lcov"),
}
NO_NODE: Final = CannotRun(message="there is no Node here", fix="install Node, so that `node` is on PATH")

_reads_javascript = re.compile(r'"(?:allowJs|checkJs)"\s*:\s*true')


def _node(site: Site) -> FoundProgram | None:
    found = node_of(site)
    return (
        FoundProgram("node", found.path, found.why, needs=(*node_stores(), *linked_packages(site))) if found else None
    )


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _syntax(site, asked, None)


def _syntax(site: Site, asked: TaskOptions, tsc: FoundProgram | None) -> Sequence[Task | CannotRun]:
    """The syntax of JavaScript by Node, without the files that this tsc reads."""
    node = _node(site)
    if node is None:
        return [NO_NODE]
    files = site.chosen(site.sources(*SOURCES), asked.paths)
    if not files:
        return [
            CannotRun(
                message="there are no JavaScript files", fix="name the folder with `path`", fixed_by=FixedBy.AGENT
            )
        ]
    # Modules are compiled in a vm and never run: a syntax check must not execute the project.
    argv = (str(node.path), "--experimental-vm-modules", "--no-warnings", "--input-type=commonjs", "-", *asked.args)
    named = [f"const {assignment('FILES', files)}", f"const {assignment('TSC', str(tsc.path) if tsc else '')}"]
    script = "".join([*named, probe("compile.js")])
    programs = (node, *([tsc] if tsc else []))
    return [Task(argv=argv, read=flaws, programs=programs, fix="fix the syntax", env=QUIET, stdin=script)]


def _build_typed(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    """The types by tsc, and the syntax of JavaScript that tsc does not read: many projects have both."""
    plain = _scripts(site, asked)
    typed = site.chosen(site.sources(*TYPED), asked.paths)
    needs_types = any(not name.endswith(DECLARED) for name in typed) or (typed and find(site, "tsc"))
    return [*_types(site, asked), *plain] if needs_types or not plain else plain


def _scripts(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    """The syntax of the JavaScript files, if there are any."""
    if not site.chosen(site.sources(*SOURCES), asked.paths):
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
    # With names of files tsc ignores tsconfig.json: so only if the author asked for these files.
    config = ("-p", ".") if site.has("tsconfig.json") and not asked.paths else _typed(site, asked)
    argv = (str(tsc.path), "--noEmit", "--pretty", "false", *asked.args, *config)
    fix = "fix the types"
    return [Task(argv=argv, read=diagnostics, programs=(tsc, node), fix=fix, env=QUIET, finds=(1, 2))]


def _typed(site: Site, asked: TaskOptions) -> tuple[str, ...]:
    return asked.paths or tuple(f"./{name}" for name in site.sources(*TYPED))


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node = _node(site)
    return [NO_NODE] if node is None else test_tasks(site, asked, node, package_at(site, ""))


def _covering(argv: tuple[str, ...], programs: tuple[FoundProgram, ...], read: Read) -> Task:
    return Task(argv=argv, read=read, programs=programs, fix="make the tests pass first", env=QUIET, writable=True)


def _uses(package: Mapping[str, Any], name: str) -> bool:
    return name in script_of(package).split() or needs(package, name)


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    node = _node(site)
    return [NO_NODE] if node is None else javascript_lint(site, asked, node, package_at(site, ""))


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
    package = package_at(site, "")
    runner = next((name for name in COVERING if _uses(package, name)), "")
    program = find(site, runner) if runner else None
    if program:
        argv = (str(program.path), *COVERING[runner], *asked.args, *asked.paths)
        return [_covering(argv, (program, node), lcov)]
    if is_node_tested(site, package):
        options = ("--test", "--experimental-test-coverage", "--test-reporter=lcov")
        argv = (str(node.path), *options, *asked.args, *node_paths(site, asked))
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
