"""JUnit's reports: the XML files that Maven and Gradle write, one for each class, printed one after the other. Pure.

What a build prints says how many tests ran; only these say which. Reports are not trusted: one that defines entities
or is no XML makes the result incomplete."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from xml.parsers import expat

from handrail.engine.sandbox import Ran
from handrail.rules.toolchain.reading import EXCERPT_MAX, diagnostics, numbered
from handrail.rules.toolchain.report_file import BETWEEN
from handrail.rules.toolchain.task import MESSAGE_MAX, PROBLEMS_MAX, Problem, Result

COUNTED: Final = ("passed", "failed", "errors", "skipped")
WRONG: Final = frozenset({"failed", "errors"})
OUTCOMES: Final = {"failure": "failed", "error": "errors", "skipped": "skipped"}
TEXT_MAX: Final = 20_000

_frame = re.compile(
    r"^\s*at ([\w.$]{1,300})\.[\w$<>]{1,200}\((\w{1,200}\.(?:java|kt|groovy)):(\d{1,7})\)", re.MULTILINE
)
_assertion = re.compile(r"^(?:Assertion\w*Error|ComparisonFailure|MultipleFailuresError)$")
_call = re.compile(r"\(.*$")


@dataclass
class _Case:
    """One test of a report."""

    name: str
    type: str
    """Its class."""
    outcome: str = "passed"
    raised: str = ""
    message: str = ""
    stack: str = ""


def junit_tests(ran: Ran, sources: Sequence[str] = ()) -> Result:
    """The result of a build whose reports are printed; what is wrong with the build itself if it wrote none."""
    reports = [_read(text) for text in ran.stdout.split(BETWEEN)[1:]]
    cases = [one for report in reports if report is not None for one in report]
    if not cases and ran.exit:
        return Result(problems=diagnostics(Ran(exit=ran.exit, stdout=ran.stderr, stderr="", took_ms=0)).problems)
    wrong = [one for one in cases if one.outcome in WRONG]
    return Result(
        counts=_counts(cases),
        problems=tuple(_problem(one, sources) for one in wrong[:PROBLEMS_MAX]),
        tests=numbered([(_name(one), one.outcome) for one in cases[:PROBLEMS_MAX]]),
        raised={_name(one): _raised(one) for one in wrong},
        is_whole=None not in reports,
    )


def _counts(cases: Sequence[_Case]) -> dict[str, int]:
    outcomes = [one.outcome for one in cases]
    return {"tests": len(cases), **{name: outcomes.count(name) for name in COUNTED}}


class _NoReport(Exception):
    """A string that is no report."""


@dataclass
class _ReportReader:
    """Reads one report, element by element."""

    cases: list[_Case] = field(default_factory=list)
    is_within: bool = False
    """Whether the text that follows belongs to a failure."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if name == "testcase":
            self.cases.append(_Case(attributes.get("name", ""), attributes.get("classname", "")))
        self.is_within = name in OUTCOMES and bool(self.cases)
        if self.is_within:
            case = self.cases[-1]
            case.outcome, case.raised = OUTCOMES[name], attributes.get("type", "")
            case.message = attributes.get("message", "")[:TEXT_MAX]

    def end(self, _name: str) -> None:
        self.is_within = False

    def said(self, words: str) -> None:
        if self.is_within and len(self.cases[-1].stack) < TEXT_MAX:
            self.cases[-1].stack += words


def _read(text: str) -> list[_Case] | None:
    """The tests of a report; None if it can't be read."""
    reader, parser = _ReportReader(), expat.ParserCreate()
    parser.StartElementHandler, parser.EndElementHandler = reader.start, reader.end
    parser.CharacterDataHandler, parser.EntityDeclHandler = reader.said, _refuse_entity
    try:
        parser.Parse(text.strip(), True)  # noqa: FBT003 - it takes no keywords; true: this is the whole text
    except (expat.ExpatError, _NoReport):
        return None
    return reader.cases


def _refuse_entity(*_: object) -> None:
    raise _NoReport


def _name(case: _Case) -> str:
    """A test with its class; a case of a parameterized one in brackets: `calc.CalcTest::adds[1]`."""
    bare, bracket, number = case.name.partition("[")
    return f"{case.type}::{_call.sub('', bare).strip()}{bracket}{number}"


def _raised(case: _Case) -> str:
    """The kind of error; every library of assertions has its own, and they count as one."""
    kind = case.raised.rpartition(".")[2]
    return "AssertionError" if _assertion.search(kind) else kind


def _problem(case: _Case, sources: Sequence[str]) -> Problem:
    words = case.stack.strip() or case.message
    said = filter(None, map(str.strip, (case.message or words or case.raised).splitlines()))
    file, line = _place(case, words, sources)
    message = f"{_name(case)} fails: {next(said, 'it does not say why')}"[:MESSAGE_MAX]
    return Problem(file=file, line=line, message=message, excerpt=words[:EXCERPT_MAX], raised=_raised(case))


def _place(case: _Case, words: str, sources: Sequence[str]) -> tuple[str, int]:
    """Where the test failed, in the file that its class was written in."""
    own = case.type.partition("$")[0]
    frame = next((found for found in _frame.finditer(words) if found[1].partition("$")[0] == own), None)
    file = _source(case.type, frame[2], sources) if frame else ""
    return (file, int(frame[3])) if frame and file else ("", 0)


def _source(type_name: str, file: str, sources: Sequence[str]) -> str:
    """The file of the project that a class was written in."""
    package = type_name.rpartition(".")[0].replace(".", "/")
    wanted = f"/{package}/{file}".replace("//", "/")
    return next((name for name in sources if f"/{name}".endswith(wanted)), "")
