"""`files_changed` and `files_unchanged`: whether files differ from a commit or from a digest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding, FixedBy
from handrail.domain.checks.rule import CheckOutcome, Evidence, RuleCard
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import FILES_CHANGED as CHANGED
from handrail.rules.cards import FILES_UNCHANGED as UNCHANGED
from handrail.rules.files.baseline import changes_since, since_of, since_words
from handrail.rules.files.git_language import Changes
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import ProjectFiles, is_in, project_of
from handrail.rules.files.tree import FILES_MAX, files_digest, paths_digest
from handrail.rules.function_rule import (
    FunctionRule,
    evidence_of,
    found_at,
    named,
    not_checked,
    outcome,
    unchecked_outcome,
)

CHANGE: Final = "change them, or explain why that is not needed"
REVERT: Final = "restore them"


async def _apply_changed(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    paths, project = parameters["paths"], project_of(setting)
    if "digest" in parameters:
        return await _by_digest(CHANGED, parameters, setting)
    try:
        since = since_of(parameters, setting)
        found = await changes_since(project, since)
    except GitUnavailable as error:
        return unchecked_outcome(CHANGED, str(error), error.fix, error.by)
    touched = within(found, paths)
    message = f"no file of {named(paths)} has changed since {since_words(since, found)}"
    finding = found_at(CHANGED.name, paths[0], message, CHANGE)
    return outcome([] if touched else [finding], await git_evidence(CHANGED, found, touched, project))


async def _apply_unchanged(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    project = project_of(setting)
    if "digest" in parameters:
        return await _by_digest(UNCHANGED, parameters, setting)
    try:
        since = since_of(parameters, setting)
        found = await changes_since(project, since)
    except GitUnavailable as error:
        return unchecked_outcome(UNCHANGED, str(error), error.fix, error.by)
    touched, words = within(found, parameters["paths"]), since_words(since, found)
    findings = [found_at(UNCHANGED.name, path, f"{path} has changed since {words}", REVERT) for path in touched]
    return outcome(findings, await git_evidence(UNCHANGED, found, touched, project))


async def _by_digest(card: RuleCard, parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    paths = parameters["paths"]
    digest, files = await files_digest(project_of(setting), paths)
    evidence = evidence_of(card, digest=digest, counts={"files": len(files)})
    return outcome(_digest_findings(card, paths, parameters["digest"], digest), evidence)


def _digest_findings(card: RuleCard, paths: Sequence[str], wanted: str, digest: str) -> Iterable[Finding]:
    if not digest:
        yield not_checked(
            card.name,
            f"{named(paths)} are more than {FILES_MAX:,} files, or can't be read",
            "name fewer",
            FixedBy.AGENT,
        )
    elif card is CHANGED and digest == wanted:
        message = f"{named(paths)} have not changed; their digest now is {digest}"
        yield found_at(card.name, paths[0], message, CHANGE)
    elif card is UNCHANGED and digest != wanted:
        yield found_at(card.name, paths[0], f"{named(paths)} have changed; their digest now is {digest}", REVERT)


def within(found: Changes, globs: Sequence[str]) -> list[str]:
    """The changed files that match globs."""
    return [one.path for one in found.files if is_in(one.path, globs)]


async def git_evidence(card: RuleCard, found: Changes, touched: Sequence[str], project: ProjectFiles) -> Evidence:
    """The evidence of a git query: the command, the commit, and the digest of the files as they are now."""
    digest = await paths_digest(project, touched, since=found.base)
    counts = {"changed": len(found.files), "named": len(touched)}
    excerpt = named(touched, most=50)[:2_000]
    evidence = evidence_of(card, digest=digest, counts=counts)
    return replace(evidence, ran=found.ran, exit=0, tools={"git": found.version}, excerpt=excerpt)


files_changed: Final = FunctionRule(CHANGED, _apply_changed)
files_unchanged: Final = FunctionRule(UNCHANGED, _apply_unchanged)
