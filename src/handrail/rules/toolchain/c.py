"""C and C++: by CMake or make if the project uses them, else the compiler on each file; tests by ctest or make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from handrail.domain.checks.finding import FixedBy
from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.probe import probe
from handrail.rules.toolchain.program import FoundProgram, find
from handrail.rules.toolchain.reading import LINE_MAX, diagnostics, errors_only, generic_result
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

PLAIN: Final = (".c",)
PLUS: Final = (".cc", ".cpp", ".cxx", ".C")
COMPILERS: Final = {PLAIN: ("cc", "gcc", "clang"), PLUS: ("c++", "g++", "clang++")}
MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
QUIET: Final = {"LC_ALL": "C", "GCC_COLORS": ""}
TESTS_FIX: Final = "fix the code, or the test if that is wrong"
NO_COMPILER: Final = CannotRun(
    message="there is no C compiler here", fix="install gcc or clang, so that `cc` is on PATH"
)

TARGETS: Final = ("test", "check", "tests", "unittest", "unit-test", "unittests", "run-tests", "runtests")
INCLUDED_MAX: Final = 20

_targets = re.compile(r"^([\w./-]+(?:[ \t]+[\w./-]+)*)[ \t]*::?(?!=)", re.MULTILINE)
_included = re.compile(r"^-?s?include[ \t]+([^\n#]{1,1000})", re.MULTILINE)
_ctest = re.compile(
    r"^\s*\d+/\d+ Test\s+#\d+: (\S{1,300}) [. ]{0,300}(?:[A-Za-z ]{1,40}\*\*\*|\*{0,3})"
    r"(Passed|Failed|Not Run|Timeout|Skipped|Exception)"
)
_assertion = re.compile(r"(?:^|\s)([^\s:]{1,300}):(\d{1,7}): ([^\n]{0,500}\bAssertion[^\n]*)")


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    if site.has("CMakeLists.txt"):
        return _cmake(site, asked, errors_only, tests=False)
    if _makefile(site) and not asked.paths:
        return _make(site, asked, (), errors_only, "make it compile")
    return _each(site, asked, ("-fsyntax-only",), errors_only, "make it compile")


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    targets = asked.targets(*PLAIN, *PLUS)
    if not targets:
        return []
    if cppcheck := find(site, "cppcheck"):
        options = ("--quiet", "--enable=warning,style,performance", "--error-exitcode=1", "--inline-suppr")
        template = "--template={file}:{line}:{column}: {severity}: {message} [{id}]"
        argv = (str(cppcheck.path), *options, template, *asked.args, *targets)
        return [Task(argv=argv, read=diagnostics, programs=(cppcheck,), fix="fix it", env=QUIET)]
    narrowed = asked if asked.changed is None else replace(asked, paths=targets)
    return _each(site, narrowed, ("-Wall", "-Wextra", "-fsyntax-only"), diagnostics, "fix it")


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    if site.has("CMakeLists.txt"):
        return _cmake(site, asked, _tests, tests=True)
    target = _test_target(site) if _makefile(site) else ""
    if target:
        return _make(site, asked, (target,), generic_result, TESTS_FIX)
    fix = "add a target `test` to the Makefile, or tests to CMakeLists.txt; or set `command`"
    return [
        CannotRun(
            message="there is no test runner: neither CMake nor a Makefile with `test` or `check`",
            fix=fix,
            fixed_by=FixedBy.AGENT,
        )
    ]


def _test_target(site: Site) -> str:
    """What the Makefile, or a file that it includes, calls its tests; empty if it has none."""
    text = site.text(_makefile(site))
    included = " ".join(found[1] for found in _included.finditer(text)).split()
    every = [text, *map(site.text, filter(site.has, included[:INCLUDED_MAX]))]
    known = " ".join(found[1] for found in _targets.finditer("\n".join(every))).split()
    return next((name for name in TARGETS if name in known), "")


def _makefile(site: Site) -> str:
    return next(filter(site.has, MAKEFILES), "")


def _compilers(site: Site) -> tuple[FoundProgram, ...]:
    return tuple(filter(None, (find(site, *names) for names in COMPILERS.values())))


def _make(site: Site, asked: TaskOptions, targets: Sequence[str], read: Read, fix: str) -> Sequence[Task | CannotRun]:
    make = find(site, "make", "gmake")
    if make is None:
        return [CannotRun(message="there is no make here", fix="install make, so that it is on PATH")]
    argv = (str(make.path), "--keep-going", *targets, *asked.args)
    return [Task(argv=argv, read=read, programs=(make, *_compilers(site)), fix=fix, env=QUIET, writable=True)]


def _cmake(site: Site, asked: TaskOptions, read: Read, *, tests: bool) -> Sequence[Task | CannotRun]:
    cmake, ctest = find(site, "cmake"), find(site, "ctest")
    if cmake is None or ctest is None:
        return [
            CannotRun(message="there is no CMake here", fix="install CMake, so that `cmake` and `ctest` are on PATH")
        ]
    if not (compilers := _compilers(site)):
        return [NO_COMPILER]
    fix = TESTS_FIX if tests else "make it compile"
    argv = ("/bin/sh", "-s", "--", str(cmake.path), str(ctest.path) if tests else "", *asked.args)
    return [Task(argv=argv, read=read, programs=(cmake, *compilers), fix=fix, env=QUIET, stdin=probe("cmake.sh"))]


def _each(site: Site, asked: TaskOptions, options: Sequence[str], read: Read, fix: str) -> Sequence[Task | CannotRun]:
    tasks: list[Task | CannotRun] = []
    for suffixes, names in COMPILERS.items():
        files = [_plain(name) for name in asked.paths or site.files if name.endswith(suffixes)]
        compiler = find(site, *names)
        if compiler is not None and files:
            argv = (str(compiler.path), *options, *_includes(site), *asked.args, *files)
            tasks.append(Task(argv=argv, read=read, programs=(compiler,), fix=fix, env=QUIET))
        elif files:
            tasks.append(NO_COMPILER)
    return tasks or [
        CannotRun(message="there are no C or C++ files", fix="name the folder with `path`", fixed_by=FixedBy.AGENT)
    ]


def _plain(name: str) -> str:
    """A name that can't be read as an option."""
    return name if name.startswith("./") else f"./{name}"


def _includes(site: Site) -> list[str]:
    return [f"-I./{name}" for name in ("include", "src", "") if (site.folder / name).is_dir()]


def _tests(ran: Ran) -> Result:
    """The result of ctest for each test, or the errors if it did not compile."""
    ends = list(filter(None, (_ctest.match(line[:LINE_MAX]) for line in ran.stdout.splitlines())))
    outcomes = [_outcome(end[2]) for end in ends]
    counts = {"tests": len(ends), **{name: outcomes.count(name) for name in ("passed", "failed", "skipped")}}
    tests = {end[1]: outcome for end, outcome in zip(ends, outcomes, strict=True)}
    if ends and not counts["failed"]:
        return Result(counts=counts, tests=tests)
    failed = [end for end, outcome in zip(ends, outcomes, strict=True) if outcome == "failed"]
    problems = [Problem(message=f"the test {end[1]} fails: {end[2].lower()}") for end in failed[:PROBLEMS_MAX]]
    return Result(counts=counts, problems=(*diagnostics(ran).problems, *_assertions(ran), *problems), tests=tests)


def _assertions(ran: Ran) -> list[Problem]:
    """Failed calls of `assert`: their output has the program first, then the place."""
    found = filter(None, (_assertion.search(line[:LINE_MAX]) for line in ran.stdout.splitlines()))
    return [Problem(file=one[1], line=int(one[2]), message=one[3][:MESSAGE_MAX]) for one in found][:PROBLEMS_MAX]


def _outcome(word: str) -> str:
    return {"Passed": "passed", "Skipped": "skipped"}.get(word, "failed")


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    fix = "let the build write it (gcovr --cobertura, lcov), and name it with `report`"
    return [CannotRun(message="coverage of C and C++ is read from a report", fix=fix, fixed_by=FixedBy.AUTHOR)]


C: Final = Language(
    name="c",
    markers=("CMakeLists.txt",),
    suffixes=(*PLAIN, *PLUS),
    plans={TaskKind.BUILD: _build, TaskKind.TEST: _test, TaskKind.LINT: _lint, TaskKind.COVERAGE: _coverage},
)
