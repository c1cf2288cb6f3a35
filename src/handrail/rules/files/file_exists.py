"""`file_exists`: there is a file or folder at a path of the project. Contents are checked in file_contains.py."""

from __future__ import annotations

import asyncio
import hashlib
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import FILE_EXISTS as CARD
from handrail.rules.files.project import PathRefused, ProjectFiles, paths_of, project_of
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome
from handrail.rules.output.subject import unfit

CREATE: Final = "create it, or submit the path you wrote"


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    paths = paths_of(parameters)
    if not paths:
        return CheckOutcome(findings=(unfit(CARD.name, "path", "it has no `path` or `paths`"),))
    project = project_of(setting)
    findings = await asyncio.to_thread(lambda: list(_findings(project, paths, parameters)))
    evidence = evidence_of(CARD, digest=await _inputs(parameters, setting), counts={"files": len(paths)})
    return outcome(findings, evidence)


async def _inputs(parameters: Mapping[str, Any], setting: Setting) -> str:
    project, paths = project_of(setting), paths_of(parameters)
    seen = await asyncio.to_thread(lambda: [(path, *seen_at(project, path)) for path in paths])
    return f"sha256:{hashlib.sha256(repr(seen).encode()).hexdigest()}"


def _findings(project: ProjectFiles, paths: Sequence[str], parameters: Mapping[str, Any]) -> Iterator[Finding]:
    for path in paths:
        what, size = seen_at(project, path)
        if what not in {"file", "folder"}:
            yield found_at(CARD.name, path, what, CREATE)
        elif what != parameters.get("kind", what):
            yield found_at(CARD.name, path, f"{path} is a {what}, not a {parameters['kind']}", CREATE)
        elif what == "file" and size < parameters.get("min_bytes", 0):
            message = f"{path} has {size:,} bytes, at least {parameters['min_bytes']:,} are needed"
            yield found_at(CARD.name, path, message, "write the missing content")


def seen_at(project: ProjectFiles, path: str) -> tuple[str, int]:
    """What is at a path and its size, or why nothing is."""
    try:
        status = project.status(path)
    except PathRefused as error:
        return str(error), 0
    if status is None:
        return f"{path} does not exist", 0
    if stat.S_ISDIR(status.st_mode):
        return "folder", 0
    return ("file", status.st_size) if stat.S_ISREG(status.st_mode) else (f"{path} is neither file nor folder", 0)


file_exists: Final = FunctionRule(CARD, _apply, _inputs)
