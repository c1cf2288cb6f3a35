"""`on_branch`: which branch is checked out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome
from handrail.domain.errors import Invalid
from handrail.domain.language.pattern import linear_pattern
from handrail.domain.run.baseline import Baseline
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import ON_BRANCH as CARD
from handrail.rules.files.git import branch_of, commit_of, version_of
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import project_of
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome, unchecked_outcome
from handrail.rules.output.subject import unfit

SWITCH: Final = "create or check out the right branch, and bring the work there"


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    project = project_of(setting)
    if not {"name", "pattern", "none_of", "changed"} & parameters.keys():
        return CheckOutcome(findings=(unfit(CARD.name, "name", "it names no branch"),))
    try:
        await commit_of(project, "HEAD")  # whether there is a repository at all
        branch, tools = await branch_of(project), {"git": await version_of(project)}
    except GitUnavailable as error:
        return unchecked_outcome(CARD, str(error), error.fix, error.by)
    try:
        findings = list(_findings(branch, parameters, setting.baselines.run))
    except Invalid as error:
        return CheckOutcome(findings=(unfit(CARD.name, "pattern", str(error)),))
    return outcome(findings, replace(evidence_of(CARD), tools=tools, excerpt=branch))


def _findings(branch: str, parameters: Mapping[str, Any], start: Baseline | None) -> Iterator[Finding]:
    here = f"the branch {branch} is checked out" if branch else "no branch is checked out"
    if "name" in parameters and branch != parameters["name"]:
        yield found_at(CARD.name, "HEAD", f"{here}, not {parameters['name']}", SWITCH)
    fits = linear_pattern(parameters["pattern"]) if "pattern" in parameters else None
    if fits is not None and not (branch and fits(branch)):
        yield found_at(CARD.name, "HEAD", f"{here}, which does not match `{parameters['pattern']}`", SWITCH)
    if "none_of" in parameters and (not branch or branch in parameters["none_of"]):
        yield found_at(CARD.name, "HEAD", f"{here}, which is not allowed", SWITCH)
    if "changed" in parameters:
        yield from _compared(branch, here, start, must_differ=parameters["changed"])


def _compared(branch: str, here: str, start: Baseline | None, *, must_differ: bool) -> Iterator[Finding]:
    if start is None or start.missing:
        yield unfit(CARD.name, "changed", "the branch at the start of the run is not known")
    elif must_differ:
        if branch in {"", start.branch}:
            yield found_at(CARD.name, "HEAD", f"{here}, as at the start of the run", SWITCH)
    elif branch != start.branch:
        yield found_at(CARD.name, "HEAD", f"{here}, but {start.branch or 'none'} was at the start of the run", SWITCH)


on_branch: Final = FunctionRule(CARD, _apply)
