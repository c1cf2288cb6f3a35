"""`handrail workflow test`: walks through workflows with scripted outputs, and along all their paths.

Translates: words in, words out. The walks are domain/rehearsing/'s work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from handrail.domain.rehearsing.difference import Difference
from handrail.domain.rehearsing.paths import Paths
from handrail.domain.rehearsing.walk import Walked
from handrail.interfaces.cli.answer import Exit, answer, tell_findings
from handrail.interfaces.cli.program import json_option, settings_of, told
from handrail.interfaces.cli.workflow_finding import files_of
from handrail.interfaces.cli.workflow_paths import explored, paths_data, tell_paths, tell_taken
from handrail.interfaces.cli.workflow_rehearsal import Report, Tested, report_on


@click.command("test")
@click.argument("targets", nargs=-1, required=True, metavar="FILE|ID|FOLDER...")
@click.option("--paths", "is_exploring", is_flag=True, help="Also try every path: what is reached, missing, longest.")
@json_option
@click.pass_context
@told
async def test(ctx: click.Context, targets: tuple[str, ...], is_exploring: bool, as_json: bool) -> None:
    """Walk through workflows as the tests beside them say (NAME.tests.yaml); nothing is called, nothing is written."""
    settings = settings_of(ctx)
    reports = [report_on(file, settings) for file in files_of(targets, settings)]
    told = [(report, explored(report) if is_exploring else None) for report in reports]
    answer([_data(*one) for one in told], as_json=as_json, words=lambda: _words(told))
    sys.exit(Exit.OK if all(report.passed for report in reports) else Exit.FAILED)


def _words(told: Sequence[tuple[Report, Paths | None]]) -> None:
    for report, found in told:
        _tell(report)
        if found is not None:
            tell_paths(found, report.taken)
        else:
            tell_taken(report)
    _tell_sum([report for report, _ in told])


def _data(report: Report, found: Paths | None) -> dict[str, Any]:
    definition = report.loaded.definition
    told = {
        "file": report.file,
        "workflow": definition.id if definition is not None else None,
        "passed": report.passed,
        "findings": [*report.loaded.findings, *report.findings],
        "tests": [_test_data(test) for test in report.tests],
    }
    return told if found is None else {**told, "paths": paths_data(found, report.taken)}


def _test_data(test: Tested) -> dict[str, Any]:
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


def _tell(report: Report) -> None:
    click.secho(report.file, bold=True)
    tell_findings(report.findings or (() if report.loaded.is_valid else report.loaded.findings))
    if not report.loaded.is_valid:
        click.secho("  not sound, so not tested", fg="red")
    elif not report.has_tests:
        click.secho("  there are no tests beside it", fg="red")
    for test in report.tests:
        _tell_test(test)


def _tell_test(test: Tested) -> None:
    mark, color = ("passed", "green") if test.passed else ("FAILED", "red")
    click.secho(f"  {mark}  ", fg=color, nl=False)
    click.echo(test.name)
    if not test.passed:
        _tell_difference(test.differences)
        _tell_way(test.walked)


def _tell_difference(found: Sequence[Difference]) -> None:
    click.echo(f"      {found[0].what}")
    click.echo(f"        expected: {found[0].expected}")
    click.echo(f"        got:      {found[0].got}")
    if len(found) > 1:
        click.echo(f"      and {len(found) - 1} more difference(s), that may follow from it")


def _tell_way(walked: Walked) -> None:
    waits = f" ({walked.waits_for})" if walked.waits_for else ""
    click.echo(f"      it went: {', '.join(walked.path) or 'nowhere'} -> {walked.end or 'not begun'}{waits}")
    if walked.unused:
        click.echo(f"      in the script, but never asked for: {', '.join(walked.unused)}")


def _tell_sum(reports: Sequence[Report]) -> None:
    tests = [test for report in reports for test in report.tests]
    broken = [report for report in reports if not report.passed]
    rest = f"; {len(broken)} workflow(s) to look at" if broken else ""
    words = f"{sum(test.passed for test in tests)} of {len(tests)} test(s) passed in {len(reports)} workflow(s){rest}"
    click.secho(words, fg="red" if broken else "green")
