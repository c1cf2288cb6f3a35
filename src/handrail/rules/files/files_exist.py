"""`files_exist`: every file of a list exists; the list is what was submitted, or what the check names."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome, subject_name
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import FILES_EXIST as CARD
from handrail.rules.files.file_exists import seen_at
from handrail.rules.files.project import ProjectFiles, project_of
from handrail.rules.files.tree import paths_digest
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome
from handrail.rules.output.subject import MISSING, finding, missing, subject_of

PATHS_MAX: Final = 1_000
CREATE: Final = "create it, or submit only the files that you wrote"


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    paths = parameters.get("paths") or _listed(parameters, setting)
    if isinstance(paths, Finding):
        return CheckOutcome(findings=(paths,))
    project, least = project_of(setting), parameters.get("min", 1)
    findings = await asyncio.to_thread(lambda: list(_findings(project, paths, parameters.get("min_bytes", 1))))
    if len(set(paths)) < least:
        message = f"{len(set(paths)):,} files are listed, at least {least:,} are needed"
        findings.append(finding(CARD.name, parameters, message, "list every file"))
    digest = await paths_digest(project, sorted(set(paths)))
    return outcome(findings, evidence_of(CARD, digest=digest, counts={"files": len(paths)}))


def _listed(parameters: Mapping[str, Any], setting: Setting) -> list[str] | Finding:
    """The paths in the output; a finding if there is no list of texts."""
    value = subject_of(parameters, setting.given)
    if value is MISSING:
        return missing(CARD.name, parameters)
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or len(items) > PATHS_MAX:
        return finding(
            CARD.name, parameters, f"it is not a list of at most {PATHS_MAX:,} paths", "submit a list of paths"
        )
    return _paths(items, parameters)


def _paths(items: Sequence[Any], parameters: Mapping[str, Any]) -> list[str] | Finding:
    key = parameters.get("key")
    paths = [item.get(key) if key and isinstance(item, Mapping) else item for item in items]
    wrong = next((at for at, path in enumerate(paths) if not isinstance(path, str) or not path), None)
    if wrong is not None:
        where = f"{subject_name(parameters)}[{wrong}]" + (f".{key}" if key else "")
        return found_at(CARD.name, where, "it is not a path", "submit the path of a file as text")
    return [str(path) for path in paths]


def _findings(project: ProjectFiles, paths: Sequence[str], min_bytes: int) -> Iterator[Finding]:
    for path in dict.fromkeys(paths):
        what, size = seen_at(project, path)
        if what == "folder":
            yield found_at(CARD.name, path, f"{path} is a folder, not a file", CREATE)
        elif what != "file":
            yield found_at(CARD.name, path, what, CREATE)
        elif size < min_bytes:
            yield found_at(CARD.name, path, f"{path} has {size:,} bytes, at least {min_bytes:,} are needed", CREATE)


files_exist: Final = FunctionRule(CARD, _apply)
