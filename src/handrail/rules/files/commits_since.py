"""`commits_since`: how many commits the run has made, and what their messages say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome
from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import COMMITS_SINCE as CARD
from handrail.rules.files.baseline import commits_after, require_start
from handrail.rules.files.git import version_of
from handrail.rules.files.git_history import commits_since as commits_of
from handrail.rules.files.git_language import Commit
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import project_of
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome, unchecked_outcome
from handrail.rules.output.subject import unfit


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    project = project_of(setting)
    try:
        fits = linear_pattern(parameters["pattern"]) if "pattern" in parameters else None
    except Invalid as error:
        return CheckOutcome(findings=(unfit(CARD.name, "pattern", str(error)),))
    try:
        since = commits_after(parameters, setting)
        await require_start(project, since)
        commits = await commits_of(project, since.commit)
        tools = {"git": await version_of(project)}
    except GitUnavailable as error:
        return unchecked_outcome(CARD, str(error), error.fix, error.by)
    wrong = [one for one in commits if fits is not None and not fits(one.subject)]
    findings = [*_findings(commits, parameters, since.name), *(_misfit(one, parameters["pattern"]) for one in wrong)]
    excerpt = "\n".join(map(str, commits[:20]))
    evidence = evidence_of(CARD, counts={"commits": len(commits)})
    return outcome(findings, replace(evidence, tools=tools, excerpt=excerpt))


def _findings(commits: Sequence[Commit], parameters: Mapping[str, Any], since: str) -> Iterator[Finding]:
    least, most = parameters.get("min", 1), parameters.get("max")
    if len(commits) < least:
        message = f"there are {len(commits):,} commits since {since}, at least {least:,} are needed"
        yield found_at(CARD.name, "HEAD", message, "commit the work")
    if most is not None and len(commits) > most:
        message = f"there are {len(commits):,} commits since {since}, at most {most:,} may be"
        yield found_at(CARD.name, "HEAD", message, "squash them")


def _misfit(commit: Commit, pattern: str) -> Finding:
    message = f"`{commit.subject[:100]}` does not match `{pattern[:100]}`"
    return found_at(CARD.name, commit.oid[:12], message, "reword the message of the commit")


commits_since: Final = FunctionRule(CARD, _apply)
