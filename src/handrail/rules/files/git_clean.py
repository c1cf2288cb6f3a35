"""`git_clean`: everything is committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import Setting
from handrail.rules.cards import GIT_CLEAN as CARD
from handrail.rules.files.baseline import HEAD, since_of, with_hidden, without_old
from handrail.rules.files.files_changed import git_evidence, within
from handrail.rules.files.git import uncommitted
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.ignoring.newly_ignored import newly_ignored
from handrail.rules.files.project import project_of
from handrail.rules.function_rule import FunctionRule, found_at, outcome, unchecked_outcome


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    project = project_of(setting)
    try:
        every = await uncommitted(project, untracked=parameters.get("untracked", True))
        since = since_of(parameters, setting)
        hidden = await newly_ignored(project, replace(since.rules, commit=HEAD))  # by a rule that is not committed
        if parameters.get("untracked", True):
            every = with_hidden(every, hidden)
        found = await without_old(project, every, since)
    except GitUnavailable as error:
        return unchecked_outcome(CARD, str(error), error.fix, error.by)
    touched, new = within(found, parameters.get("paths", ["."])), {one.path for one in found.files if one.is_untracked}
    findings = [
        found_at(CARD.name, path, f"{path} was never committed", "commit it, ignore it or delete it")
        if path in new
        else found_at(CARD.name, path, f"{path} has changes that are not committed", "commit them, or restore the file")
        for path in touched
    ]
    return outcome(findings, await git_evidence(CARD, found, touched, project))


git_clean: Final = FunctionRule(CARD, _apply)
