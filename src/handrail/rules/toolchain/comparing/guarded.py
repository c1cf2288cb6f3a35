"""A rule that also minds its settings: it passes only if this run has not made them milder (weakened.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Setting
from handrail.rules.files.baseline import is_compared, since_of, state_of
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import PathRefused, ProjectFiles, project_of
from handrail.rules.function_rule import FunctionRule, found_at, unchecked_outcome
from handrail.rules.toolchain.comparing.old_view import OldFiles, is_test_like, old_files
from handrail.rules.toolchain.comparing.weakened import CODE, weakenings
from handrail.rules.toolchain.suite import with_findings

FIX = "restore what the start of the run had, and fix what it then reports"


def guarded(rule: FunctionRule, kind: str) -> FunctionRule:
    """The rule, with findings about settings and marks of that kind: `lint` or `coverage`."""
    card = rule.card

    async def applied(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
        outcome = await rule.do(parameters, setting)
        if not is_compared(setting) or (outcome.findings and not outcome.is_note):
            return outcome  # a note is looked behind: marks may be why there is nothing to judge
        project = project_of(setting)
        try:
            old = await old_files(project, since_of({}, setting))
        except GitUnavailable as error:
            return unchecked_outcome(card, str(error), error.fix, error.by)
        found = await asyncio.to_thread(lambda: list(_findings(card.name, kind, old, project)))
        return with_findings(outcome, found)

    async def reads(parameters: Mapping[str, Any], setting: Setting) -> str:
        own = await rule.reads(parameters, setting)
        if not own or not is_compared(setting):
            return own
        try:
            return f"{own} {await state_of(project_of(setting), since_of({}, setting))}"
        except GitUnavailable:
            return ""

    return replace(rule, do=applied, reads=reads)


def _findings(rule: str, kind: str, old: OldFiles, project: ProjectFiles) -> Iterator[Finding]:
    code = tuple(path for path in old.contents if path.endswith(CODE) and not is_test_like(path))
    for path, content in old.contents.items():
        for one in weakenings(kind, path, _text(content), _text(_present(project, path)), code):
            where = f"{one.path}:{one.line}" if one.line else one.path
            yield found_at(rule, where, one.message, FIX)


def _present(project: ProjectFiles, path: str) -> bytes:
    try:
        return project.read(path)
    except PathRefused:
        return b""  # deleted, or no plain file


def _text(content: bytes | None) -> str:
    return (content or b"").decode(errors="replace")
