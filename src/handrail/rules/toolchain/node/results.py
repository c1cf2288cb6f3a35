"""Results of JavaScript's test runners: the JSON of Jest, Vitest and Mocha. Pure; nothing is trusted."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.reading import json_of, maps, numbered, whole
from handrail.rules.toolchain.task import MESSAGE_MAX, PROBLEMS_MAX, Problem, Result

STATUSES: Final = {"passed": "passed", "failed": "failed"}

_error = re.compile(r"(?:Uncaught )?(\w{0,100}(?:Error|Exception))\b")
_stack_place = re.compile(r"(?:\(|at |file://)(?!node:)([^\s():]{1,300}):(\d{1,7}):(\d{1,6})")


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
