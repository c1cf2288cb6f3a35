"""`lint_clean`: the linters of the project's languages find nothing; in a run, nothing in the lines that it changed.

A project without a linter is a note: there is nothing to judge by, so that it neither refuses nor proves anything."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.changed_lines import ChangedLines
from handrail.domain.checks.finding import FixedBy
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import PlannedCommand, Setting
from handrail.rules.cards import LINT_CLEAN as CARD
from handrail.rules.files.changed_lines import changed_for, existing, with_since
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import PathRefused, project_of
from handrail.rules.function_rule import FunctionRule, not_checked, note_outcome, unchecked_outcome
from handrail.rules.toolchain.comparing.guarded import guarded
from handrail.rules.toolchain.linters.narrowed import narrowed
from handrail.rules.toolchain.parameters import VERSIONS, depends_on, planned, planned_commands
from handrail.rules.toolchain.site import Site
from handrail.rules.toolchain.task import CannotRun, Task, TaskKind
from handrail.rules.toolchain.toolchain_runner import ToolchainRunner

_runner = ToolchainRunner(CARD, VERSIONS)


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    try:
        changed = await changed_for(parameters, setting)
        site, plan = await asyncio.to_thread(_planned, changed, parameters, setting)
    except GitUnavailable as error:
        return unchecked_outcome(CARD, str(error), f"{error.fix}, or set `only: all`", error.by)
    except PathRefused as error:
        return CheckOutcome(findings=(not_checked(CARD.name, str(error), "name a path in the project", FixedBy.AGENT),))
    missing, rest = _parted(plan)
    if not rest:
        return _nothing_to_judge(missing, changed)
    tasks = rest if changed is None else [_narrowed(one, changed, site) for one in rest]
    outcome = await _runner.run_all(tasks, site, parameters, setting)
    return _recorded(outcome, missing, changed)


def _parted(plan: Sequence[Task | CannotRun]) -> tuple[list[CannotRun], list[Task | CannotRun]]:
    """The linters that the project does without, and the rest."""
    missing = [one for one in plan if isinstance(one, CannotRun) and one.is_note]
    return missing, [one for one in plan if one not in missing]


def _planned(
    changed: ChangedLines | None, parameters: Mapping[str, Any], setting: Setting
) -> tuple[Site, Sequence[Task | CannotRun]]:
    files = None if changed is None else existing(changed, project_of(setting))
    return planned(TaskKind.LINT, parameters, setting, changed=files)


def _narrowed(one: Task | CannotRun, changed: ChangedLines, site: Site) -> Task | CannotRun:
    return one if isinstance(one, CannotRun) else narrowed(one, changed, site)


def _nothing_to_judge(missing: Sequence[CannotRun], changed: ChangedLines | None) -> CheckOutcome:
    if missing:
        return note_outcome(CARD, "; ".join(one.message for one in missing), missing[0].fix)
    since = changed.since if changed is not None else ""
    return note_outcome(CARD, f"no file that a linter reads has changed since {since}")


def _recorded(outcome: CheckOutcome, missing: Sequence[CannotRun], changed: ChangedLines | None) -> CheckOutcome:
    """The outcome; its evidence says what was judged, and which languages have no linter."""
    if outcome.evidence is None:
        return outcome
    judged = {} if changed is None else {"changed_files": len(changed.files), "changed_lines": changed.count}
    without = {f"no linter {number}": one.message for number, one in enumerate(missing, 1)}
    evidence = outcome.evidence
    record = replace(evidence, counts={**evidence.counts, **judged}, chosen={**evidence.chosen, **without})
    return replace(outcome, evidence=record)


async def _reads(parameters: Mapping[str, Any], setting: Setting) -> str:
    return await with_since(await depends_on(TaskKind.LINT, parameters, setting), parameters, setting)


async def _would(parameters: Mapping[str, Any], setting: Setting) -> Sequence[PlannedCommand]:
    return await asyncio.to_thread(planned_commands, partial(planned, TaskKind.LINT), parameters, setting)


lint_clean: Final = guarded(FunctionRule(CARD, _apply, _reads, _would), "lint")
