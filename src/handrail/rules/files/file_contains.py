"""`file_contains`: a file of the project contains texts or matches a pattern, or not. Patterns take linear time."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome
from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import FILE_CONTAINS as CARD
from handrail.rules.files.project import PathRefused, paths_of, project_of
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome
from handrail.rules.output.subject import unfit

SHOWN_MAX: Final = 80
LINE_MAX: Final = 200
PLACES_MAX: Final = 3
"""How many places of one unwanted text are reported."""


class _Sought:
    """A string or a pattern to search for."""

    def __init__(self, words: str, occurs: Callable[[str], bool]) -> None:
        self.words = words
        self.occurs = occurs


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    path = parameters["path"]
    try:
        sought = await asyncio.to_thread(lambda: list(_sought(parameters)))
    except Invalid as error:
        return CheckOutcome(findings=(unfit(CARD.name, "pattern", str(error)),))
    if not sought:
        return CheckOutcome(findings=(unfit(CARD.name, "text", "it has no `text`, `texts` or `pattern`"),))
    try:
        content = await asyncio.to_thread(project_of(setting).read, path)
    except PathRefused as error:
        finding = found_at(CARD.name, path, str(error), "create it, or name the file you wrote")
        return outcome([finding], evidence_of(CARD))
    text = content.decode(errors="replace")
    look = _unwanted if parameters.get("absent", False) else _missing
    findings = await asyncio.to_thread(lambda: [one for what in sought for one in look(path, text, what)])
    return outcome(findings, evidence_of(CARD, digest=_digest(content), counts={"bytes": len(content)}))


async def _inputs(parameters: Mapping[str, Any], setting: Setting) -> str:
    try:
        return _digest(await asyncio.to_thread(project_of(setting).read, parameters["path"]))
    except PathRefused:
        return ""


def _sought(parameters: Mapping[str, Any]) -> Iterator[_Sought]:
    for text in paths_of(parameters, "text", "texts"):
        yield _Sought(f"`{text[:SHOWN_MAX]}`", _contains(text))
    if "pattern" in parameters:
        pattern = parameters["pattern"]
        yield _Sought(f"a match of `{pattern[:SHOWN_MAX]}`", linear_pattern(pattern))


def _contains(text: str) -> Callable[[str], bool]:
    return lambda line: text in line


def _missing(path: str, text: str, sought: _Sought) -> Iterator[Finding]:
    if not sought.occurs(text):
        yield found_at(CARD.name, path, f"{sought.words} is not in {path}", "write it there")


def _unwanted(path: str, text: str, sought: _Sought) -> Iterator[Finding]:
    if not sought.occurs(text):
        return
    lines = [(at, line) for at, line in enumerate(text.splitlines(), 1) if sought.occurs(line)]
    for at, line in lines[:PLACES_MAX]:
        message = f"{sought.words} is in {path}, {len(lines):,} lines in all" if len(lines) > 1 else ""
        message = message or f"{sought.words} is in {path}"
        yield found_at(CARD.name, f"{path}:{at}", message, "remove it", excerpt=line.strip()[:LINE_MAX])
    if not lines:  # it spans more than one line
        yield found_at(CARD.name, path, f"{sought.words} is in {path}", "remove it")


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


file_contains: Final = FunctionRule(CARD, _apply, _inputs)
