"""Parsers for output formats that several commands share: compiler lines, JSON lines, TAP, totals of tests. Pure.

The output is not trusted: every pattern takes linear time on a line, and lines are cut."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import msgspec

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.coverage_report import lcov_files, lcov_lines
from handrail.rules.toolchain.task import MESSAGE_MAX, PROBLEMS_MAX, Problem, Result

LINE_MAX: Final = 2_000
JSON_LINE_MAX: Final = 200_000
EXCERPT_LINES: Final = 6
NOTES_MAX: Final = 40
"""How many lines of notes are read for one test."""
EXCERPT_MAX: Final = 600
COUNT_MAX: Final = 10**9

_at = re.compile(r"^(?:\[?(?:ERROR|WARNING)\]? )?([^\s:()][^:()\n]{0,300}):(\d{1,7}):(?:(\d{1,6}):)?\s*(\S[^\n]*)")
_at_in_brackets = re.compile(r"^([^\s:()][^:()\n]{0,300})\((\d{1,7}),(\d{1,6})\):\s*(\S[^\n]*)")
_at_in_square = re.compile(r"^\[ERROR\] ([^\s:\[][^:\[\n]{0,300}):\[(\d{1,7}),(\d{1,6})\]\s*(\S[^\n]*)")
"""Maven's way."""
_note = re.compile(r"^(?:note|remark|info|help)\b")
_warning = re.compile(r"^(?:fatal )?warning\b|^\[", re.IGNORECASE)
_tap = re.compile(r"^(\s{0,40})(not )?ok\b(?: (\d{1,9}))?(?: -)?[ ]?([^\n]*)")
_tap_note = re.compile(r"\s*# (?:SKIP|TODO|time=|duration_ms)[^\n]*$", re.IGNORECASE)
_tap_plan = re.compile(r"^1\.\.(\d{1,9})")
_tap_place = re.compile(r"^\s+location: '?([^'\n]+):(\d{1,7}):(\d{1,6})'?$")
_tap_stack = re.compile(r"\(?(?:file://)?(/[^\s():]{1,300}):(\d{1,7}):(\d{1,6})\)?$")
_tap_error = re.compile(r"^(\s+)(?:error|message): (?:'([^'\n]*)'|\"([^\"\n]*)\"|(\S[^\n]*))$")
_tap_raised = re.compile(r"^\s+name: '(\w{1,100})'$")
_sums = (
    (
        re.compile(
            r"\b(?P<number>\d{1,9}) (?:(?:tests?|specs?|checks?|cases?|features?|scenarios?|steps?) )?"
            r"(?P<name>passed|failed|skipped|errors?|ignored|xfailed|xpassed|deselected)\b"
        ),
        "number",
        "name",
    ),
    (re.compile(r"\b(?P<name>Tests run|Failures|Errors|Skipped): (?P<number>\d{1,9})"), "number", "name"),
)
_names = {"failures": "failed", "error": "errors", "xpassed": "passed", "tests run": "tests", "ignored": "skipped"}

Mark: TypeAlias = tuple[int, re.Match[str]]
"""A line number, and the match of a line about a test."""


def diagnostics(ran: Ran, *, warnings: bool = True) -> Result:
    """The output of compilers and linters, one line for each problem: `file:line:column: message`."""
    lines = (ran.stdout + "\n" + ran.stderr).splitlines()
    problems = tuple(_of_lines(lines, warnings=warnings))
    counts = {"problems": len(problems)}
    return Result(counts=counts, problems=problems)


def errors_only(ran: Ran) -> Result:
    """The same, without warnings."""
    return diagnostics(ran, warnings=False)


def _of_lines(lines: list[str], *, warnings: bool) -> Iterator[Problem]:
    report: dict[tuple[Any, ...], Problem] = {}
    for number, line in enumerate(lines):
        problem = _problem(line[:LINE_MAX], lines[number + 1 : number + EXCERPT_LINES])
        if problem is not None and _counts(problem.message, warnings=warnings) and len(report) < PROBLEMS_MAX:
            report.setdefault((problem.file, problem.line, problem.column, problem.message), problem)
    yield from report.values()


def _counts(message: str, *, warnings: bool) -> bool:
    return not _note.match(message) and (warnings or not _warning.match(message))


def _problem(line: str, after: list[str]) -> Problem | None:
    found = _at.match(line) or _at_in_brackets.match(line) or _at_in_square.match(line)
    if found is None:
        return None
    file, row, column, message = found.groups()
    shown = [one[:LINE_MAX] for one in after if one[:1].isspace()]
    caret = next((one.index("^") + 1 for one in shown if one.strip() == "^"), 0)  # javac has no other column
    excerpt = "\n".join(shown)[:EXCERPT_MAX]
    at = int(column) if column else caret
    return Problem(file=file, line=int(row), column=at, message=message[:MESSAGE_MAX], excerpt=excerpt)


def diagnosis(line: str) -> Problem | None:
    """The problem that one line reports; None if it reports none."""
    return _problem(line[:LINE_MAX], [])


def json_lines(text: str) -> Iterator[Mapping[str, Any]]:
    """The lines that are JSON objects; other lines are ignored."""
    for line in text.splitlines():
        if line.startswith("{") and len(line) <= JSON_LINE_MAX:
            found = json_of(line)
            if isinstance(found, Mapping):
                yield found


def json_of(text: str) -> Any:
    """The first JSON value that starts at the start of a line; None if there is none."""
    for start in _json_starts(text):
        try:
            return msgspec.json.decode(text[start:])
        except (msgspec.DecodeError, RecursionError):
            continue
    return None


def _json_starts(text: str) -> Iterator[int]:
    """Where lines start with a bracket; only the first few, because each is tried."""
    found = (match.start() for match in re.finditer(r"^[\[{]", text, re.MULTILINE))
    yield from (start for _, start in zip(range(5), found, strict=False))


def maps(value: Any) -> list[Mapping[str, Any]]:
    """The objects in an untrusted list; empty if it is not a list."""
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def whole(value: Any) -> int:
    """An untrusted number as a count; 0 if it is not a number."""
    return min(max(int(value), 0), COUNT_MAX) if isinstance(value, int | float) and math.isfinite(value) else 0


def tap(ran: Ran) -> Result:
    """The results in the Test Anything Protocol; a test with subtests is not counted itself.

    They are complete if there are as many tests as announced, before or after them."""
    lines = [line[:LINE_MAX] for line in ran.stdout.splitlines()]
    marks = [(number, found) for number, line in enumerate(lines) if (found := _tap.match(line))]
    tests = _innermost(marks)
    outcomes = [_tap_outcome(found) for _, found in tests]
    failed = [one for one, outcome in zip(tests, outcomes, strict=True) if outcome == "failed"][:PROBLEMS_MAX]
    counts = {"tests": len(tests), **{name: outcomes.count(name) for name in ("passed", "failed", "skipped")}}
    problems = tuple(_tap_problem(found[4], lines[number + 1 : number + NOTES_MAX]) for number, found in failed)
    names = _tap_names(marks)
    pairs = [(names[number], how) for (number, _), how in zip(tests, outcomes, strict=True)]
    named = numbered([(name, how) for name, how in pairs[:PROBLEMS_MAX] if name])
    return Result(counts=counts, problems=problems, is_whole=_announced(lines) == _outermost(marks), tests=named)


def _tap_names(marks: list[Mark]) -> dict[int, str]:
    """By line, the name of each test with those of the groups around it: a group is printed after all its tests."""
    names: dict[int, str] = {}
    waiting: list[tuple[int, list[int]]] = []
    for number, found in marks:
        depth, own = len(found[1]), _tap_note.sub("", found[4]).strip()
        inner: list[int] = []
        while waiting and waiting[-1][0] > depth:
            inner += waiting.pop()[1]
        for line in inner:
            names[line] = f"{own} {names[line]}"
        names[number] = own
        waiting.append((depth, [number, *inner]))
    return names


def numbered(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """By name; tests of the same name count like the cases of one function."""
    found: dict[str, str] = {}
    seen: dict[str, int] = {}
    for name, how in pairs:
        seen[name] = seen.get(name, 0) + 1
        found[name if seen[name] == 1 else f"{name}[{seen[name]}]"] = how
    return found


def _innermost(marks: list[Mark]) -> list[Mark]:
    """The tests without subtests: a test is printed after all its subtests, which are indented deeper."""
    before = [0, *(len(found[1]) for _, found in marks)]
    return [mark for deep, mark in zip(before, marks, strict=False) if deep <= len(mark[1][1])]


def _outermost(marks: list[Mark]) -> int:
    return sum(not found[1] for _, found in marks)


def _announced(lines: list[str]) -> int:
    """How many tests the plan announces; -1 if there is no plan."""
    plan = next(filter(None, map(_tap_plan.match, lines)), None)
    return int(plan[1]) if plan else -1


def _tap_outcome(found: re.Match[str]) -> str:
    if re.search(r"# (?:SKIP|TODO)\b", found[4], re.IGNORECASE):
        return "skipped"
    return "failed" if found[2] else "passed"


def _tap_problem(name: str, after: list[str]) -> Problem:
    block = _block(after)
    place = _tap_at(block)
    error = next((number for number, line in enumerate(block) if _tap_error.match(line)), None)
    why = "" if error is None else _tap_words(block[error:])
    file, line, column = (place[1], int(place[2]), int(place[3])) if place else ("", 0, 0)
    message = f"{name.strip() or 'a test'} fails" + (f": {why}" if why else "")
    excerpt = "\n".join(line.strip() for line in block[:EXCERPT_LINES])[:EXCERPT_MAX]
    raised = "".join(found[1] for found in map(_tap_raised.match, block) if found)
    return Problem(file=file, line=line, column=column, message=message[:MESSAGE_MAX], excerpt=excerpt, raised=raised)


def _tap_at(block: list[str]) -> re.Match[str] | None:
    """Where it failed: the first place of its stack in the test's own file, else where the test starts."""
    test = next(filter(None, map(_tap_place.match, block)), None)
    stack = filter(None, (_tap_stack.search(line) for line in block if "location:" not in line))
    return next((place for place in stack if test and place[1] == test[1]), test)


def _block(lines: list[str]) -> list[str]:
    """The lines of the notes between `---` and `...` that follow a test."""
    if not lines or lines[0].strip() != "---":
        return []
    end = next((number for number, line in enumerate(lines) if line.strip() == "..."), len(lines))
    return lines[1:end]


def _tap_words(lines: list[str]) -> str:
    found = _tap_error.match(lines[0])
    if found is None:
        return ""
    words = found[2] or found[3] or found[4] or ""
    if words not in {"|-", "|", ">-", ">"}:
        return words
    inner = [line.strip() for line in lines[1:EXCERPT_LINES] if line.startswith(found[1] + " ")]
    return " ".join(filter(None, inner))


def lcov(ran: Ran) -> Result:
    """The coverage in the lcov report that a command writes to standard output."""
    lines, is_whole = lcov_lines(ran.stdout), "end_of_record" in ran.stdout
    return Result(covered=lcov_files(ran.stdout), lines=lines, is_whole=is_whole)


def sums(text: str) -> dict[str, int]:
    """Totals of tests in free text: `3 passed, 1 failed`, `Tests run: 4, Failures: 1`."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        for pattern, number, name in _sums:
            for found in pattern.finditer(line[:LINE_MAX]):
                key = _names.get(found[name].lower(), found[name].lower())
                counts[key] = counts.get(key, 0) + int(found[number])
    return _with_total(counts)


def _with_total(counts: dict[str, int]) -> dict[str, int]:
    if not any(counts.values()) and not counts.keys() & {"tests", "passed"}:
        return {}  # only what did not happen was said: "0 failed"
    total = sum(count for name, count in counts.items() if name != "deselected")
    return {**counts, "tests": counts.get("tests", total)}


def generic_result(ran: Ran) -> Result:
    """The result of an unknown command, as far as its output is understood: places, TAP, totals."""
    report = tap(ran)
    if report.counts["tests"] and _announced(ran.stdout.splitlines()) >= 0:
        return report
    found = diagnostics(ran)
    return Result(counts=sums(ran.stdout + "\n" + ran.stderr), problems=found.problems if ran.exit else ())
