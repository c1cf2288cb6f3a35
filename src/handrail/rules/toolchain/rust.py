"""Rust: everything by cargo, offline; compiler messages in JSON, tests in the text of the test harness."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.installed.caches import cargo_cache
from handrail.rules.toolchain.program import FoundProgram, beside, find
from handrail.rules.toolchain.reading import EXCERPT_MAX, LINE_MAX, json_lines, lcov, whole
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

QUIET: Final = {"CARGO_TERM_COLOR": "never", "CARGO_NET_OFFLINE": "true", "CARGO_INCREMENTAL": "0"}
JSON: Final = "--message-format=json"
ENDS: Final = {"ok": "passed", "FAILED": "failed", "ignored": "skipped"}
NO_RUST: Final = CannotRun(message="there is no Rust here", fix="install Rust, so that `cargo` and `rustc` are on PATH")

_sum = re.compile(r"^test result: \w+\. (\d{1,7}) passed; (\d{1,7}) failed; (\d{1,7}) ignored")
_failed = re.compile(r"^test (\S[^\n]{0,300}?)(?: - should panic)? \.\.\. FAILED")
_end = re.compile(r"^test (\S[^\n]{0,300}?) \.\.\. (ok|FAILED|ignored)")
_panic = re.compile(r"^thread '([^'\n]{1,300})'(?: \(\d+\))? panicked at ([^\n:]{1,300}):(\d{1,7}):(\d{1,6}):?$")
_diff = re.compile(r"^Diff in ([^\n]{1,300}?):?(?: at line |:)(\d{1,7}):?$")


def _cargo(site: Site) -> tuple[FoundProgram, FoundProgram] | None:
    cargo = find(site, "cargo")
    rustc = (beside(cargo, "rustc") or find(site, "rustc")) if cargo else None
    return (cargo, rustc) if cargo and rustc else None


def _task_of(site: Site, words: Sequence[str], asked: TaskOptions, read: Read, fix: str) -> Sequence[Task | CannotRun]:
    programs = _cargo(site)
    if programs is None:
        return [NO_RUST]
    locked = ("--locked",) if site.has("Cargo.lock") else ()
    argv = (str(programs[0].path), *words, *locked, *asked.args)
    cache = cargo_cache()
    env = {**QUIET, **cache.env}
    return [Task(argv=argv, read=read, programs=programs, fix=fix, env=env, shows=cache.shows, writable=True)]


def _build(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    return _task_of(site, ("check", "--all-targets", JSON), asked, errors, "make it compile")


def _test(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    words = ("test", "--no-fail-fast", JSON)
    return _task_of(site, words, asked, cargo_tests, "fix the code, or the test if that is wrong")


def _lint(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    programs = _cargo(site)
    if programs is None:
        return [NO_RUST]
    tasks: list[Task | CannotRun] = []
    if beside(programs[0], "cargo-clippy") or find(site, "cargo-clippy"):
        tasks += _task_of(site, ("clippy", "--all-targets", JSON), asked, messages, "fix it")
    else:
        tasks.append(CannotRun(message="there is no clippy here", fix="rustup component add clippy", is_note=True))
    if rustfmt := beside(programs[0], "cargo-fmt") or find(site, "cargo-fmt"):
        argv = (str(programs[0].path), "fmt", "--all", "--check")
        fix = "run cargo fmt"
        tasks.append(Task(argv=argv, read=_unformatted, programs=(*programs, rustfmt), fix=fix, env=QUIET))
    return tasks


def _coverage(site: Site, asked: TaskOptions) -> Sequence[Task | CannotRun]:
    if not find(site, "cargo-llvm-cov"):
        return [
            CannotRun(message="there is no cargo-llvm-cov here", fix="cargo install cargo-llvm-cov; or name a `report`")
        ]
    return _task_of(site, ("llvm-cov", "--lcov"), asked, lcov, "make the tests pass first")


def messages(ran: Ran) -> Result:
    """The compiler's JSON messages, including warnings."""
    problems = tuple(_compiler_messages(ran, levels=("error", "warning")))[:PROBLEMS_MAX]
    return Result(counts={"problems": len(problems)}, problems=problems)


def errors(ran: Ran) -> Result:
    """Only the errors among them."""
    problems = tuple(_compiler_messages(ran, levels=("error",)))[:PROBLEMS_MAX]
    warnings = len(tuple(_compiler_messages(ran, levels=("warning",))))
    return Result(counts={"errors": len(problems), "warnings": warnings}, problems=problems)


def _compiler_messages(ran: Ran, *, levels: Sequence[str]) -> Iterator[Problem]:
    seen: set[Problem] = set()
    for fact in json_lines(ran.stdout):
        message = fact.get("message")
        if fact.get("reason") != "compiler-message" or not isinstance(message, Mapping):
            continue
        problem = _problem(message)
        if (
            message.get("level") in levels and problem.file and problem not in seen
        ):  # messages without a file only sum up the others
            seen.add(problem)
            yield problem


def _problem(message: Mapping[str, Any]) -> Problem:
    spans = [span for span in message.get("spans") or [] if isinstance(span, Mapping)]
    span = next((one for one in spans if one.get("is_primary")), {})
    code = message.get("code")
    name = f"{code.get('code')}: " if isinstance(code, Mapping) else ""
    return Problem(
        file=str(span.get("file_name", "")),
        line=whole(span.get("line_start")),
        column=whole(span.get("column_start")),
        message=f"{name}{message.get('message', '')}"[:MESSAGE_MAX],
        excerpt=str(message.get("rendered") or "")[:EXCERPT_MAX],
    )


def cargo_tests(ran: Ran) -> Result:
    """The results of the test harness, or the errors if it was not built."""
    if (unbuilt := errors(ran)).problems:
        return unbuilt
    lines = [line[:LINE_MAX] for line in ran.stdout.splitlines()]
    panics = {found[1]: (found, number) for number, line in enumerate(lines) if (found := _panic.match(line))}
    names = [failure[1] for failure in filter(None, map(_failed.match, lines))]
    problems = tuple(_of_panic(name, panics.get(name), lines) for name in names[:PROBLEMS_MAX])
    ends = list(filter(None, map(_end.match, lines)))[:PROBLEMS_MAX]
    tests = {found[1]: ENDS[found[2]] for found in ends}
    return Result(counts=_counted(lines), problems=problems, tests=tests, raised=dict(_raised(panics, lines)))


def _raised(panics: Mapping[str, tuple[re.Match[str], int]], lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The tests that did not fail at an assertion."""
    for name, (_, number) in panics.items():
        if not any(word in "".join(lines[number : number + 2]) for word in ("assertion", "should")):
            yield name, "a panic"


def _counted(lines: Sequence[str]) -> dict[str, int]:
    """The totals of all test programs together."""
    sums = [tuple(map(int, found.groups())) for found in map(_sum.match, lines) if found]
    passed, failed, skipped = (sum(one[at] for one in sums) for at in range(3))
    return {"tests": passed + failed + skipped, "passed": passed, "failed": failed, "skipped": skipped}


def _of_panic(name: str, panic: tuple[re.Match[str], int] | None, lines: Sequence[str]) -> Problem:
    if panic is None:
        return Problem(message=f"{name} fails")
    found, number = panic
    words = lines[number + 1 : number + 5]
    why = words[0].strip() if words else "it does not say why"
    message = f"{name} fails: {why}"[:MESSAGE_MAX]
    excerpt = "\n".join(words)[:EXCERPT_MAX]
    return Problem(file=found[2], line=int(found[3]), column=int(found[4]), message=message, excerpt=excerpt)


def _unformatted(ran: Ran) -> Result:
    places = [found for found in (_diff.match(line[:LINE_MAX]) for line in ran.stdout.splitlines()) if found]
    problems = [Problem(file=at[1], line=int(at[2]), column=1, message="it is not formatted") for at in places]
    return Result(counts={"unformatted": len(problems)}, problems=tuple(problems[:PROBLEMS_MAX]))


RUST: Final = Language(
    name="rust",
    markers=("Cargo.toml",),
    suffixes=(".rs",),
    plans={TaskKind.BUILD: _build, TaskKind.TEST: _test, TaskKind.LINT: _lint, TaskKind.COVERAGE: _coverage},
)
