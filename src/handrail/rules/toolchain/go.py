"""Go: everything by the `go` program, offline and with the installed tool chain."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.coverage_report import go_lines, go_profile
from handrail.rules.toolchain.in_folder import in_folder
from handrail.rules.toolchain.installed.caches import go_builds, go_cache
from handrail.rules.toolchain.program import FoundProgram, beside, find
from handrail.rules.toolchain.reading import EXCERPT_MAX, diagnosis, diagnostics, json_lines, json_of, maps
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
WARM: Final = """if [ -z "$GOCACHE" ]; then
  export GOCACHE="${TMPDIR:-/tmp}/go-build"
  cp -rs "$0" "$GOCACHE" 2> /dev/null
fi
exec "$@"
"""
"""Runs a command with links to what was built before: Go writes to its cache, and the user's can't be written."""
NO_GO: Final = CannotRun(message="there is no Go here", fix="install Go, so that `go` is on PATH")
CHANGES: Final = frozenset("+-")
OUTPUT_LINES_MAX: Final = 200
"""How many output lines of one test are kept to find the reason of a failure."""

MODULE, WORKSPACE = "go.mod", "go.work"
MODULES_MAX: Final = 20

_remark = re.compile(r"//[^\n]*")
_used = re.compile(r"^use[ \t]+(?:\(([^)]*)\)|([^\s(]+))", re.MULTILINE)
_place = re.compile(r"^\s{1,20}([\w./-]{1,300}\.go):(\d{1,7}): ?([^\n]*)")
_diffed = re.compile(r"^diff (?:-u )?(\S{1,300}?\.go)(?:\.orig)? \S")
_hunk = re.compile(r"^@@ -(\d{1,7})")
_module = re.compile(r"^module\s+\"?([^\s\"]{1,300})", re.MULTILINE)


def _tasks(site: Site, words: Sequence[str], asked: TaskOptions, fix: str) -> Sequence[Task | CannotRun]:
    """A command in each module that is not part of another, with errors of the compiler as its problems."""
    return _each(site, asked, lambda part, below: _task_of(part, words, below, diagnostics, fix))


def _each(
    site: Site, asked: TaskOptions, planned: Callable[[Site, TaskOptions], Sequence[Task | CannotRun]]
) -> Sequence[Task | CannotRun]:
    if asked.paths or any(map(site.has, (MODULE, WORKSPACE))):
        return planned(site, asked)
    return [in_folder(one, folder, site) for folder in _apart(site) for one in planned(site.below(folder), asked)]


def _apart(site: Site) -> list[str]:
    """The folders of modules below one that is none; itself if there are none."""
    modules = (one.removesuffix(f"/{MODULE}") for one in site.sources(f"/{MODULE}"))
    return [one for one in modules if "testdata" not in one.split("/")][:MODULES_MAX] or [""]


def _task_of(site: Site, words: Sequence[str], asked: TaskOptions, read: Read, fix: str) -> Sequence[Task | CannotRun]:
    go = find(site, "go")
    if go is None:
        return [NO_GO]
    argv = (str(go.path), *words, *asked.args, *(asked.paths or _everything(site)))
    cache, builds = go_cache(), go_builds()
    env, shows = {**OFFLINE, **cache.env}, cache.shows
    if builds is not None:
        argv, shows = ("/bin/sh", "-c", WARM, str(builds), *argv), (*shows, builds)
    return [Task(argv=argv, read=read, programs=(go,), fix=fix, env=env, shows=shows, writable=True)]


def _everything(site: Site) -> tuple[str, ...]:
    """All packages of a module; of a workspace those of all its modules: beside them, `./...` names none."""
    folders = _workspace(site) if not site.has(MODULE) and site.has(WORKSPACE) else []
    inside = [one for one in folders if not one.startswith(("/", "..", "-"))]
    return tuple("./..." if one in {"", "."} else f"./{one}/..." for one in inside) or ("./...",)


def _workspace(site: Site) -> list[str]:
    """The folders of its modules."""
    text = _remark.sub("", site.text(WORKSPACE))
    named = " ".join(found[1] or found[2] for found in _used.finditer(text)).split()
    return list(dict.fromkeys(one.strip('"`').removeprefix("./").rstrip("/") for one in named))


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _tasks(site, ("build", "-o", "/dev/null"), asked, "make it compile")


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _each(site, asked, _tested)


def _tested(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    module = _module.search(site.text("go.mod"))
    name = module[1] if module else ""

    def read(ran: Ran) -> Result:
        return go_tests(ran, name)

    return _task_of(site, ("test", "-json", "-count=1"), asked, read, "fix the code, or the test if that is wrong")


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    targets = asked.targets(".go")
    if not targets:
        return []
    go = find(site, "go")
    gofmt = find(site, "gofmt") or (beside(go, "gofmt") if go else None)
    folders, files = _scope(site, asked, targets)
    vet = _task_of(site, ("vet", "-json"), replace(asked, paths=folders), _vetted, "fix it")
    return [*vet, _format(gofmt, files)] if gofmt else vet


def _scope(site: Site, asked: TaskOptions, targets: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The packages to vet, and the files whose format is looked at."""
    if asked.changed is not None:
        return tuple(sorted({one.rpartition("/")[0] for one in targets})), targets
    return asked.paths, asked.paths or tuple(f"./{name}" for name in site.sources(".go"))


def _vetted(ran: Ran) -> Result:
    """What vet found: an object for each package. If it could not look, it says why, and ends with an error."""
    said = f"{ran.stdout}\n{ran.stderr}"  # before Go 1.24 on standard error
    found = maps([json_of(text) for text in re.findall(r"^\{$.*?^\}$", said, re.MULTILINE | re.DOTALL)])
    kinds = maps([kind for one in found for kind in one.values()])
    facts = [fact for kind in kinds for listed in kind.values() for fact in maps(listed)][:PROBLEMS_MAX]
    lines = (f"{one.get('posn')}: {one.get('message')}" for one in facts)
    problems = tuple(filter(None, map(diagnosis, lines)))
    wrong = _not_vetted(ran) if ran.exit else []
    return Result(counts={"problems": len(problems) + len(wrong)}, problems=(*problems, *wrong))


def _not_vetted(ran: Ran) -> list[Problem]:
    """Why vet could not look: these count wherever they are."""
    return [replace(one, message=f"error: {one.message}") for one in diagnostics(ran).problems]


def _format(gofmt: FoundProgram, paths: tuple[str, ...]) -> Task:
    argv = (str(gofmt.path), "-d", *paths)
    return Task(argv=argv, read=_unformatted, programs=(gofmt,), fix="run gofmt -w on it")


def _unformatted(ran: Ran) -> Result:
    problems = tuple(_formats(ran.stdout))[:PROBLEMS_MAX]
    wrong = diagnostics(ran)  # files that it can't parse are reported on standard error
    return Result(counts={"unformatted": len({one.file for one in problems})}, problems=(*problems, *wrong.problems))


def _formats(text: str) -> Iterator[Problem]:
    """The first line of each place that gofmt would change, from its diff."""
    for part in re.split(r"^(?=diff )", text, flags=re.MULTILINE):
        head, *hunks = re.split(r"^(?=@@ -)", part, flags=re.MULTILINE)
        named = _diffed.match(head)
        lines = [line for hunk in hunks for line in _first_lines(hunk)] if named else []
        yield from (Problem(file=named[1], line=at, column=1, message="it is not formatted") for at in lines if named)


def _first_lines(hunk: str) -> Iterator[int]:
    start, kinds = _hunk.match(hunk), [line[:1] for line in hunk.splitlines()[1:]]
    for at, (before, kind) in enumerate(zip([" ", *kinds], kinds, strict=False)):
        if start and kind in CHANGES and before not in CHANGES:
            yield int(start[1]) + sum(one != "+" for one in kinds[:at])


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    module = _module.search(site.text("go.mod"))
    name = module[1] if module else ""

    def read(ran: Ran) -> Result:
        covered = {path.removeprefix(f"{name}/"): pair for path, pair in go_profile(ran.stdout).items()}
        lines = {path.removeprefix(f"{name}/"): found for path, found in go_lines(ran.stdout).items()}
        return Result(covered=covered, lines=lines)

    return _task_of(site, ("test", "-coverprofile=/dev/stdout"), asked, read, "make the tests pass first")


def go_tests(ran: Ran, module: str) -> Result:
    """The result of `go test -json`: each test when it ends, with its output before."""
    counts = {"tests": 0, "passed": 0, "failed": 0, "skipped": 0}
    ends = {"pass": "passed", "fail": "failed", "skip": "skipped"}
    spoken: dict[tuple[str, str], list[str]] = {}
    broken: list[str] = []
    problems: list[Problem] = []
    tests: dict[str, str] = {}
    raised: dict[str, str] = {}
    for fact in json_lines(ran.stdout):
        key = (str(fact.get("Package", "")), str(fact.get("Test", "")))
        end = ends.get(str(fact.get("Action"))) if key[1] else None
        _hear(fact, spoken, key, broken)
        if end is None or _has_inner(spoken, key):
            continue
        counts["tests"] += 1
        counts[end] += 1
        tests[test_name(key, module)] = end
        if any("panic: " in line for line in spoken.get(key, ())):
            raised[test_name(key, module)] = "a panic"
        if end == "failed" and len(problems) < PROBLEMS_MAX:
            problems.append(_failed(key, spoken.get(key, []), module))
    unbuilt = diagnostics(Ran(exit=1, stdout="".join(broken), stderr=ran.stderr, took_ms=0)).problems
    counts["errors"] = len(unbuilt)
    return Result(counts=counts, problems=(*unbuilt, *problems), tests=tests, raised=raised)


def test_name(key: tuple[str, str], module: str) -> str:
    """A test with the folder of its package; a subtest is a case of its function: `calc::TestAdd[zero]`."""
    package, (function, _, case) = key[0], key[1].partition("/")
    folder = package.removeprefix(module).strip("/") or "."
    return f"{folder}::{function}[{case}]" if case else f"{folder}::{function}"


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
