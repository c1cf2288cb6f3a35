"""Probes: small programs that run in the sandbox, passed on standard input, and print their results as lines of JSON.

Used where a tool writes its results only to files or in free text: the probe calls the tool through its API. Files in
the sandbox are gone afterwards; the printed lines are not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.reading import EXCERPT_MAX, json_lines, whole
from handrail.rules.toolchain.task import MESSAGE_MAX, PROBLEMS_MAX, Problem, Result

FOLDER = Path(__file__).parent / "probes"
OUTCOMES = {"passed": "passed", "failed": "failed", "error": "errors", "skipped": "skipped", "xfailed": "xfailed"}
SEAL = token_hex(16)
"""What the lines of our probes carry: it can not be guessed."""
NAME_MAX = 500
IMPORTED_MAX = 1_000
SPAN_MAX = 100_000
"""How many lines one span may have."""


@cache
def probe(name: str) -> str:
    """The text of a probe."""
    return (FOLDER / f"{name}.in").read_text(encoding="utf-8")


def assignment(name: str, value: Any) -> str:
    """A line that assigns a value to a name, for languages that write lists, strings and numbers as JSON does."""
    return f"{name} = {json_text(value)};\n"


def json_text(value: Any) -> str:
    """A value as it is written in these languages."""
    return msgspec.json.encode(value).decode()


def flaws(ran: Ran) -> Result:
    """The result of a probe that checks one file after the other."""
    problems: list[Problem] = []
    looked = -1
    for fact in json_lines(ran.stdout):
        if "done" in fact:
            looked = whole(fact["done"])
        elif "file" in fact and len(problems) < PROBLEMS_MAX:
            problems.append(_problem(fact, str(fact.get("message", ""))))
    counts = {"files": max(looked, 0), "errors": len(problems)}
    return Result(counts=counts, problems=tuple(problems), is_whole=looked >= 0)


def results(ran: Ran, *, seal: str = "") -> Result:
    """The result of a probe that runs tests. Lines without its seal are not its own: a test may print anything."""
    counts = {"tests": 0, "passed": 0, "failed": 0, "errors": 0, "skipped": 0, "xfailed": 0, "deselected": 0}
    problems: list[Problem] = []
    ends = 0
    late = False
    covered: dict[str, tuple[int, int]] = {}
    tests: dict[str, str] = {}
    raised: dict[str, str] = {}
    lines: dict[str, Mapping[int, bool]] = {}
    imported: dict[str, str] = {}
    is_narrowed = False
    for fact in json_lines(ran.stdout):
        if seal and fact.get("seal") != seal:
            continue
        ends += "done" in fact
        late = late or bool(ends and "outcome" in fact)
        name = str(fact.get("test") or "")[:NAME_MAX]
        counts["deselected"] += whole(fact.get("deselected"))
        outcome = OUTCOMES.get(str(fact.get("outcome")))
        if outcome:
            counts["tests"] += 1
            counts[outcome] += 1
            # A test may be reported twice (its call and its teardown): a failure must not be covered by a later
            # success.
            if len(tests) < PROBLEMS_MAX and tests.get(name) not in {"failed", "errors"}:
                tests[name] = outcome
            if fact.get("raised"):
                raised[name] = str(fact["raised"])[:NAME_MAX]
        if outcome in {"failed", "errors"} and len(problems) < PROBLEMS_MAX:
            problems.append(_problem(fact, f"{fact.get('test')} fails: {_first(fact.get('message'))}"))
        covered.update(_covered(fact.get("covered")))
        is_narrowed = is_narrowed or fact.get("narrowed") is True
        imported.update(_named(fact.get("imported")))
        if fact.get("measured"):
            missed = dict.fromkeys(_numbers(fact.get("missed")), False)
            lines[str(fact["measured"])] = {**missed, **dict.fromkeys(_numbers(fact.get("run")), True)}
    counts = {name: count for name, count in counts.items() if count or name not in ("xfailed", "deselected")}
    return Result(
        counts=counts,
        problems=tuple(problems),
        is_whole=ends == 1 and not late,  # our probe ends once, and says nothing about tests after that
        covered=covered,
        lines=lines,
        is_narrowed=is_narrowed,
        imported=imported,
        tests=tests,
        raised=raised,
    )


def _problem(fact: Any, message: str) -> Problem:
    return Problem(
        file=str(fact.get("file") or ""),
        line=whole(fact.get("line")),
        column=whole(fact.get("column")),
        message=message[:MESSAGE_MAX],
        excerpt=str(fact.get("excerpt") or "")[-EXCERPT_MAX:],
    )


def _first(message: object) -> str:
    lines = str(message or "").strip().splitlines()
    return lines[0] if lines else "it does not say why"


def _numbers(spans: Any) -> Iterator[int]:
    """The numbers in pairs of first and last."""
    pairs = [pair for pair in spans if isinstance(pair, list) and len(pair) == 2] if isinstance(spans, list) else []
    for first, last in pairs:
        # Bounded: the line comes from a process that runs the code of the project.
        yield from range(whole(first), min(whole(last), whole(first) + SPAN_MAX) + 1)


def _named(found: Any) -> dict[str, str]:
    pairs = list(found.items())[:IMPORTED_MAX] if isinstance(found, dict) else []
    return {str(name)[:NAME_MAX]: str(file)[:NAME_MAX] for name, file in pairs}


def _covered(found: Any) -> dict[str, tuple[int, int]]:
    if not isinstance(found, dict):
        return {}
    pairs = {name: pair for name, pair in found.items() if isinstance(pair, list) and len(pair) == 2}
    return {str(name): (whole(pair[0]), whole(pair[1])) for name, pair in pairs.items()}
