"""Go: everything by the `go` program, offline and with the installed tool chain."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.coverage_report import go_profile
from handrail.rules.toolchain.installed.caches import go_cache
from handrail.rules.toolchain.program import FoundProgram, beside, find
from handrail.rules.toolchain.reading import EXCERPT_MAX, diagnostics, json_lines
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

OFFLINE: Final = {"GOTOOLCHAIN": "local", "GOPROXY": "off", "GOTELEMETRY": "off", "GOFLAGS": "-buildvcs=false"}
NO_GO: Final = CannotRun(message="there is no Go here", fix="install Go, so that `go` is on PATH")
OUTPUT_LINES_MAX: Final = 200
"""How many output lines of one test are kept to find the reason of a failure."""

_place = re.compile(r"^\s{1,20}([\w./-]{1,300}\.go):(\d{1,7}): ?([^\n]*)")
_module = re.compile(r"^module\s+\"?([^\s\"]{1,300})", re.MULTILINE)


def _task_of(site: Site, words: Sequence[str], asked: TaskOptions, read: Read, fix: str) -> Sequence[Task | CannotRun]:
    go = find(site, "go")
    if go is None:
        return [NO_GO]
    argv = (str(go.path), *words, *asked.args, *(asked.paths or ("./...",)))
    cache = go_cache()
    env = {**OFFLINE, **cache.env}
    return [Task(argv=argv, read=read, programs=(go,), fix=fix, env=env, shows=cache.shows, writable=True)]


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _task_of(site, ("build", "-o", "/dev/null"), asked, diagnostics, "make it compile")


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    module = _module.search(site.text("go.mod"))
    name = module[1] if module else ""

    def read(ran: Ran) -> Result:
        return go_tests(ran, name)

    return _task_of(site, ("test", "-json"), asked, read, "fix the code, or the test if that is wrong")


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    vet = _task_of(site, ("vet",), asked, diagnostics, "fix it")
    go = find(site, "go")
    gofmt = find(site, "gofmt") or (beside(go, "gofmt") if go else None)
    if gofmt is None:
        return vet
    files = tuple(f"./{name}" for name in site.sources(".go"))
    return [*vet, _format(gofmt, asked.paths or files)]


def _format(gofmt: FoundProgram, paths: tuple[str, ...]) -> Task:
    argv = (str(gofmt.path), "-l", *paths)
    return Task(argv=argv, read=_unformatted, programs=(gofmt,), fix="run gofmt -w on it")


def _unformatted(ran: Ran) -> Result:
    names = [line for line in ran.stdout.splitlines() if line.endswith(".go")]
    problems = [Problem(file=name, line=1, column=1, message="it is not formatted") for name in names[:PROBLEMS_MAX]]
    wrong = diagnostics(ran)  # files that it can't parse are reported on standard error
    return Result(counts={"unformatted": len(names)}, problems=(*problems, *wrong.problems))


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    module = _module.search(site.text("go.mod"))
    name = module[1] if module else ""

    def read(ran: Ran) -> Result:
        return Result(covered={path.removeprefix(f"{name}/"): pair for path, pair in go_profile(ran.stdout).items()})

    return _task_of(site, ("test", "-coverprofile=/dev/stdout"), asked, read, "make the tests pass first")


def go_tests(ran: Ran, module: str) -> Result:
    """The result of `go test -json`: each test when it ends, with its output before."""
    counts = {"tests": 0, "passed": 0, "failed": 0, "skipped": 0}
    ends = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    spoken: dict[tuple[str, str], list[str]] = {}
    broken: list[str] = []
    problems: list[Problem] = []
    tests: dict[str, str] = {}
    for fact in json_lines(ran.stdout):
        key = (str(fact.get("Package", "")), str(fact.get("Test", "")))
        end = ends.get(str(fact.get("Action"))) if key[1] else None
        _hear(fact, spoken, key, broken)
        if end is None or _has_inner(spoken, key):
            continue
        counts["tests"] += 1
        counts[end] += 1
        tests["::".join(key)] = end
        if end == "failed" and len(problems) < PROBLEMS_MAX:
            problems.append(_failed(key, spoken.get(key, []), module))
    unbuilt = diagnostics(Ran(exit=1, stdout="".join(broken), stderr=ran.stderr, took_ms=0)).problems
    counts["errors"] = len(unbuilt)
    return Result(counts=counts, problems=(*unbuilt, *problems), tests=tests)


def _hear(
    fact: Mapping[str, Any], spoken: dict[tuple[str, str], list[str]], key: tuple[str, str], broken: list[str]
) -> None:
    words = str(fact.get("Output", ""))
    if fact.get("Action") == "build-output":
        broken.append(words)
        return
    lines = spoken.setdefault(key, [])
    if words and len(lines) < OUTPUT_LINES_MAX:
        lines.append(words)


def _has_inner(spoken: Mapping[tuple[str, str], object], key: tuple[str, str]) -> bool:
    """Whether a test has subtests, which are counted instead."""
    return any(package == key[0] and test.startswith(f"{key[1]}/") for package, test in spoken)


def _failed(key: tuple[str, str], lines: Sequence[str], module: str) -> Problem:
    package, test = key
    folder = package.removeprefix(module).strip("/")
    place = next(filter(None, map(_place.match, lines)), None)
    file = "/".join(filter(None, [folder, place[1]])) if place else ""
    why = place[3] if place else next((line.strip() for line in lines if "panic" in line), "it does not say why")
    own = [line for line in lines if not line.startswith(("===", "---"))]
    return Problem(
        file=file,
        line=int(place[2]) if place else 0,
        message=f"{test} fails: {why}"[:MESSAGE_MAX],
        excerpt="".join(own)[:EXCERPT_MAX],
    )


GO: Final = Language(
    name="go",
    markers=("go.mod", "go.work"),
    suffixes=(".go",),
    plans={TaskKind.BUILD: _build, TaskKind.TEST: _test, TaskKind.LINT: _lint, TaskKind.COVERAGE: _coverage},
)
