"""`commit_exists`: the commits that the output names are real, in the history of HEAD, and of this run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.finding import Finding
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import COMMIT_EXISTS as CARD
from handrail.rules.files.baseline import HEAD, commits_after
from handrail.rules.files.git import commit_of, version_of
from handrail.rules.files.git_history import is_ancestor, is_empty
from handrail.rules.files.git_language import EMPTY
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.ignoring.ignore_rules import Since
from handrail.rules.files.project import ProjectFiles, paths_of, project_of
from handrail.rules.function_rule import FunctionRule, evidence_of, found_at, outcome, unchecked_outcome
from handrail.rules.output.subject import unfit

ANY: Final = "any"
COMMIT: Final = "commit the work, and submit the hash of that commit"


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    names, project = paths_of(parameters, "commit", "commits"), project_of(setting)
    if not names:
        return CheckOutcome(findings=(unfit(CARD.name, "commit", "it has no `commit` or `commits`"),))
    is_any = parameters.get("since") == ANY or (setting.baselines.run is None and "since" not in parameters)
    try:
        head = await commit_of(project, HEAD)  # also whether there is a repository at all
        since = None if is_any else commits_after(parameters, setting)
        found = [one for name in names if (one := await _flaw(project, name, head, since)) is not None]
        tools = {"git": await version_of(project)}
    except GitUnavailable as error:
        return unchecked_outcome(CARD, str(error), error.fix, error.by)
    return outcome(found, replace(evidence_of(CARD, counts={"commits": len(names)}), tools=tools))


async def _flaw(project: ProjectFiles, name: str, head: str, since: Since | None) -> Finding | None:
    try:
        commit = await commit_of(project, name)
    except GitUnavailable as error:
        return found_at(CARD.name, name, str(error), COMMIT)
    if commit in EMPTY.values():
        return found_at(CARD.name, name, "nothing was committed yet", COMMIT)
    if not await is_ancestor(project, commit, head):
        return found_at(CARD.name, name, f"{name} is not in the history of HEAD", "check out or merge its branch")
    if since is not None and await is_ancestor(project, commit, since.commit):
        return found_at(CARD.name, name, f"{name} was there before {since.name}", COMMIT)
    if since is not None and await is_empty(project, commit):
        return found_at(CARD.name, name, f"{name} changes nothing", COMMIT)
    return None


commit_exists: Final = FunctionRule(CARD, _apply)
