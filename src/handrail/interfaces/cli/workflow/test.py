"""`handrail workflow test`: runs workflows with scripted outputs, and tries all their paths.

domain/rehearsing/ runs the tests."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from handrail.domain.plural import plural
from handrail.domain.rehearsal.difference import Difference
from handrail.domain.rehearsal.paths import Paths
from handrail.domain.rehearsal.walk import Walked
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer, listing
from handrail.interfaces.cli.words.completion import complete_workflow
from handrail.interfaces.cli.words.excerpt import printable
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.workflow.lookup import files_of
from handrail.interfaces.cli.workflow.paths import explored, paths_data, print_coverage, print_paths
from handrail.interfaces.cli.workflow.rehearsal import WorkflowReport, WorkflowTestResult, report_on


@click.command("test")
@click.argument("targets", nargs=-1, required=True, metavar="FILE|ID|FOLDER...", shell_complete=complete_workflow)
@click.option(
    "--paths", "is_exploring", is_flag=True, help="Also try every path, and show what is reached, missing and longest."
)
@json_option
@click.pass_context
@reports_errors
async def test(ctx: click.Context, targets: tuple[str, ...], is_exploring: bool, as_json: bool) -> None:
    """Run the tests beside workflows (NAME.tests.yaml); no tool is called, and nothing is written."""
    settings = settings_of(ctx)
    reports = [report_on(file, settings) for file in files_of(targets, settings)]
    results = [(report, explored(report) if is_exploring else None) for report in reports]
    data = listing("workflows", [_data(*one) for one in results])
    answer(data, as_json=as_json, as_text=lambda: _print_all(results))
    sys.exit(Exit.OK if all(report.passed for report in reports) else Exit.FAILED)


def _print_all(results: Sequence[tuple[WorkflowReport, Paths | None]]) -> None:
    for report, found in results:
        _print(report)
        if found is not None:
            print_paths(found, report.taken)
        else:
            print_coverage(report)
    _print_sum([report for report, _ in results])


def _data(report: WorkflowReport, found: Paths | None) -> dict[str, Any]:
    definition = report.loaded.definition
    data = {
        "file": report.file,
        "workflow": definition.id if definition is not None else None,
        "passed": report.passed,
        "findings": [*report.loaded.findings, *report.findings],
        "tests": [_test_data(test) for test in report.tests],
    }
    return data if found is None else {**data, "paths": paths_data(found, report.taken)}


def _test_data(test: WorkflowTestResult) -> dict[str, Any]:
    walked = test.walked
    return {
        "name": test.name,
        "passed": test.passed,
        "differences": test.differences,
        "end": walked.end,
        "path": walked.path,
        "skipped": walked.skipped,
        "undone": walked.undone,
        "outputs": walked.outputs,
        "unused": walked.unused,
    }


def _print(report: WorkflowReport) -> None:
    say(printable(report.file), bold=True)
    print_findings(report.findings or (() if report.loaded.is_valid else report.loaded.findings))
    if not report.loaded.is_valid:
        say("  not valid, so not tested", fg="red")
    elif not report.has_tests:
        say("  there are no tests beside it", fg="red")
    for test in report.tests:
        _print_test(test)


def _print_test(test: WorkflowTestResult) -> None:
    mark, color = ("passed", "green") if test.passed else ("FAILED", "red")
    say(f"  {mark}  ", fg=color, nl=False)
    say(printable(test.name))
    if not test.passed:
        _print_difference(test.differences)
        _print_way(test.walked)


def _print_difference(found: Sequence[Difference]) -> None:
    say(f"      {printable(found[0].what)}")
    say(f"        expected: {printable(str(found[0].expected))}")
    say(f"        got:      {printable(str(found[0].got))}")
    if len(found) > 1:
        say(f"      and {plural(len(found) - 1, 'more difference')}, which may follow from it")


def _print_way(walked: Walked) -> None:
    waits = f" ({printable(walked.waits_for)})" if walked.waits_for else ""
    say(f"      path: {', '.join(walked.path) or 'no step'} -> {walked.end or 'not started'}{waits}")
    if walked.unused:
        say(f"      in the test, but never used: {printable(', '.join(walked.unused))}")


def _print_sum(reports: Sequence[WorkflowReport]) -> None:
    tests = [test for report in reports for test in report.tests]
    broken = [report for report in reports if not report.passed]
    passed = f"{sum(test.passed for test in tests)} of {plural(len(tests), 'test')} passed"
    rest = f"; not passed: {', '.join(printable(report.file) for report in broken)}" if broken else ""
    words = f"{passed} in {plural(len(reports), 'workflow')}{rest}"
    say(words, fg="red" if broken else "green")
