"""`coverage_at_least`: tests run enough of the code: measured now, or read from a report that is newer than the code or
that a command writes now."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from handrail.domain.checks.changed_coverage import Lines, changed_coverage, merged_lines
from handrail.domain.checks.changed_lines import ChangedLines
from handrail.domain.checks.finding import Finding, FixedBy
from handrail.domain.checks.rule import CheckOutcome
from handrail.engine.checking.rule import PlannedCommand, Setting
from handrail.engine.sandbox import WANTED_BYTES_MAX, Ran
from handrail.rules.cards import COVERAGE_AT_LEAST as CARD
from handrail.rules.files.changed_lines import changed_for, with_since
from handrail.rules.files.git_process import GitUnavailable
from handrail.rules.files.project import PathRefused, project_of
from handrail.rules.function_rule import (
    FunctionRule,
    evidence_of,
    found_at,
    not_checked,
    note_outcome,
    outcome,
    unchecked_outcome,
)
from handrail.rules.toolchain.comparing.guarded import guarded
from handrail.rules.toolchain.coverage_report import Covered, NoReport, read_lines, read_report
from handrail.rules.toolchain.languages import LANGUAGES
from handrail.rules.toolchain.parameters import VERSIONS, command_task, depends_on, planned, planned_commands
from handrail.rules.toolchain.site import SKIPPED, TEXT_BYTES_MAX, Site, site_at
from handrail.rules.toolchain.task import CannotRun, Problem, Result, Task, TaskKind
from handrail.rules.toolchain.toolchain_runner import ToolchainRunner

LEAST_SHOWN: Final = 5
CODE: Final = tuple(suffix for language in LANGUAGES.values() for suffix in language.suffixes)
NO_REPORT_FIX: Final = "let the tests write a report, and set `report` to its path"
FIX_CHANGED: Final = "write tests for the changed lines"
FIX: Final = "write tests for the files that are covered least"

_runner = ToolchainRunner(CARD, VERSIONS)
_test_file = re.compile(r"(?:^|/)(?:tests?|__tests__|spec)/|(?:^|/)(?:test_|conftest)[^/]*$|[._-](?:test|spec)\.[^/]*$")
_run_by_tools = re.compile(
    r"^(?:noxfile|toxfile|setup|fabfile|hatch_build)\.py$|^docs?/(?:source/)?conf\.py$"
    r"|(?:^|/)(?:\.[\w.-]+rc|[\w-]+\.config)\.[cm]?[jt]s$|^[Gg](?:ulp|runt)file\.[cm]?[jt]s$"
)
"""What builds, tests and documents the project: no test runs it."""


async def _apply(parameters: Mapping[str, Any], setting: Setting) -> CheckOutcome:
    try:
        changed = await changed_for(parameters, setting)
        return _noted(await _measured(parameters, setting, changed), changed)
    except GitUnavailable as error:
        return unchecked_outcome(CARD, str(error), f"{error.fix}, or set `only: all`", error.by)
    except (PathRefused, NoReport) as error:
        return CheckOutcome(findings=(not_checked(CARD.name, str(error), NO_REPORT_FIX, FixedBy.AGENT),))


async def _measured(parameters: Mapping[str, Any], setting: Setting, changed: ChangedLines | None) -> CheckOutcome:
    if changed is not None and not any(map(_is_judged, changed.files)):
        return note_outcome(CARD, f"no code has changed since {changed.since}")
    if "report" in parameters and "command" not in parameters:
        return await asyncio.to_thread(_reported, parameters, setting, changed)
    site, plan = await asyncio.to_thread(_planned, parameters, setting)

    judged = partial(_judged_results, parameters, site, changed)
    return await _runner.run_all(plan, site, parameters, setting, judged=judged)


def _judged_results(
    parameters: Mapping[str, Any], site: Site, changed: ChangedLines | None, results: Sequence[Result]
) -> tuple[list[Finding], dict[str, int]]:
    if changed is None:
        return _judged({name: pair for one in results for name, pair in one.covered.items()}, parameters, site)
    is_narrowed = any(one.is_narrowed for one in results)
    lines = merged_lines([one.lines for one in results])
    return _judged_changed(changed, lines, parameters, site, is_narrowed=is_narrowed)


def _noted(outcome: CheckOutcome, changed: ChangedLines | None) -> CheckOutcome:
    """The outcome; a note if all went well, but no line with code has changed that could be judged."""
    counts = outcome.evidence.counts if outcome.evidence is not None else {}
    if changed is None or outcome.findings or counts.get("changed_lines") != 0:
        return outcome
    return note_outcome(CARD, f"no line with code has changed since {changed.since}")


def _is_judged(path: str) -> bool:
    return _counts(path) and path.endswith(CODE)


def _planned(parameters: Mapping[str, Any], setting: Setting) -> tuple[Site, Sequence[Task | CannotRun]]:
    how = _report_task if "command" in parameters else partial(planned, TaskKind.COVERAGE)
    return how(parameters, setting)


async def _would(parameters: Mapping[str, Any], setting: Setting) -> Sequence[PlannedCommand]:
    if "report" in parameters and "command" not in parameters:
        return ()
    return await asyncio.to_thread(planned_commands, _planned, parameters, setting)


def _reported(parameters: Mapping[str, Any], setting: Setting, changed: ChangedLines | None) -> CheckOutcome:
    project = project_of(setting)
    site = site_at(project, parameters.get("path", "."))
    name = parameters["report"]
    text = project.read(name, bytes_max=WANTED_BYTES_MAX).decode(errors="replace")
    covered = read_report(name, text)
    status = project.status(name)
    if newer := _newer(site, status.st_mtime_ns if status else 0):
        message = f"the report is older than {newer}"
        return outcome([found_at(CARD.name, name, message, "run the tests again to update it")], evidence_of(CARD))
    if changed is None:
        findings, counts = _judged(covered, parameters, site)
    else:
        findings, counts = _judged_changed(changed, read_lines(text), parameters, site, is_narrowed=False)
    return outcome(findings, evidence_of(CARD, counts=counts))


def _report_task(parameters: Mapping[str, Any], setting: Setting) -> tuple[Site, Sequence[Task | CannotRun]]:
    """The command that writes the report, which is read before all that it wrote is dropped."""
    project = project_of(setting)
    site = site_at(project, parameters.get("path", "."))
    if "report" not in parameters:
        return site, [
            CannotRun(
                message="`command` is given without `report`",
                fix="set `report` to what it writes",
                fixed_by=FixedBy.AUTHOR,
            )
        ]
    name = parameters["report"]
    task = command_task(site, parameters["command"], parameters.get("env", {}), is_test=True)
    if isinstance(task, CannotRun):
        return site, [task]
    status = project.status(name)
    before_ns = status.st_mtime_ns if status else None

    def read(ran: Ran) -> Result:
        if ran.exit not in task.exits:
            return task.read(ran)
        content = ran.files.get(name)
        if content is None:
            return Result(problems=(Problem(message=f"the command left no report {name} that can be read"),))
        if ran.written_ns.get(name) == before_ns:  # whatever its time says: anybody can set that
            return Result(problems=(Problem(message=f"the command did not write {name}: it was there before"),))
        try:
            text = content.decode(errors="replace")
            return Result(covered=read_report(name, text), lines=read_lines(text))
        except NoReport as error:
            return Result(problems=(Problem(message=str(error)),))

    return site, [replace(task, read=read, wanted=(name,))]


def _newer(site: Site, than_ns: int) -> str:
    """A source that was changed later than that; empty if there is none."""
    suffixes = [suffix for language in LANGUAGES.values() for suffix in language.suffixes]
    for name in site.sources(*suffixes):
        path = site.folder / name
        if path.lstat().st_mtime_ns > than_ns:
            return site.shown(name)
    return ""


def _judged(covered: Covered, parameters: Mapping[str, Any], site: Site) -> tuple[list[Finding], dict[str, int]]:
    counted = _counted(covered, site)
    run, every = (sum(pair[at] for pair in counted.values()) for at in (0, 1))
    counts = {"files": len(counted), "lines": every, "covered": run}
    if not every:
        return [not_checked(CARD.name, "no lines of the project were measured", FIX, FixedBy.AGENT)], counts
    percent = 100 * run / every
    return ([] if percent >= parameters["percent"] else _short(percent, counted, parameters["percent"])), counts


def _judged_changed(
    changed: ChangedLines, lines: Lines, parameters: Mapping[str, Any], site: Site, *, is_narrowed: bool
) -> tuple[list[Finding], dict[str, int]]:
    measured = {site.shown(name): found for name, found in lines.items()}
    found = changed_coverage(changed, measured, partial(_text, site), is_narrowed=is_narrowed)
    counts = {"changed_files": len(found.files), "changed_lines": found.lines, "changed_covered": found.covered}
    if not found.lines or 100 * found.covered >= parameters["percent"] * found.lines:
        return [], counts
    share = f"{100 * found.covered / found.lines:.1f} % of the {found.lines:,} lines that changed"
    words = f"{share} since {changed.since} are covered, {parameters['percent']} % is needed"
    least = [
        found_at(CARD.name, path, f"no test runs the changed lines {missed}", "write tests for it")
        for path, missed in found.missed()
    ]
    return [found_at(CARD.name, "checks", words, FIX_CHANGED), *least[:LEAST_SHOWN]], counts


def _text(site: Site, path: str) -> str | None:
    """The text of a changed file, if it is code below the site."""
    start = f"{site.cwd}/" if site.cwd else ""
    try:
        is_judged = path.startswith(start) and _is_judged(path)
        return site.project.read(path, bytes_max=TEXT_BYTES_MAX).decode(errors="replace") if is_judged else None
    except PathRefused:
        return None


def _counted(covered: Covered, site: Site) -> dict[str, tuple[int, int]]:
    own = {site.shown(name): pair for name, pair in covered.items()}
    return {name: pair for name, pair in own.items() if _counts(name) and pair[1]}


def _short(percent: float, counted: Covered, wanted: float) -> list[Finding]:
    least = sorted(counted, key=lambda name: (_share(counted[name]), name))[:LEAST_SHOWN]
    whole = found_at(CARD.name, "checks", f"{percent:.1f} % is covered, {wanted} % is needed", FIX)
    return [whole, *(_least(name, counted[name]) for name in least if _share(counted[name]) < 1)]


def _least(name: str, pair: tuple[int, int]) -> Finding:
    message = f"{100 * _share(pair):.1f} % of it is covered: {pair[0]} of {pair[1]} lines"
    return found_at(CARD.name, name, message, "write tests for it")


def _share(pair: tuple[int, int]) -> float:
    return pair[0] / pair[1]


def _counts(name: str) -> bool:
    """Whether a file is the project's own code, and neither a test nor what runs the tests."""
    parts = name.split("/")[:-1]
    is_ours = not name.startswith("/") and not any(part in SKIPPED or part.startswith(".") for part in parts)
    return is_ours and not _test_file.search(name) and not _run_by_tools.search(name)


async def _reads(parameters: Mapping[str, Any], setting: Setting) -> str:
    if "report" in parameters:  # it must be newer than the code, but the cache key has contents, no times
        return ""
    own = await depends_on(TaskKind.COVERAGE, parameters, setting)
    return await with_since(own, parameters, setting)


coverage_at_least: Final = guarded(FunctionRule(CARD, _apply, _reads, _would), "coverage")
