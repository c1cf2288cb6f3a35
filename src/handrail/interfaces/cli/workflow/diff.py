"""`handrail workflow diff`: what changed between two workflows, and whether that breaks their users."""

from __future__ import annotations

import sys

import click

from handrail.domain.definition.compatibility import VersionChange, Weight, bump, changes, is_enough, next_version
from handrail.domain.plural import plural
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.completion import complete_workflow
from handrail.interfaces.cli.words.excerpt import printable
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.workflow.lookup import found_valid

COLOR_OF = {Weight.BREAKING: "red", Weight.MINOR: "yellow", Weight.PATCH: None}


@click.command()
@click.argument("old", shell_complete=complete_workflow)
@click.argument("new", shell_complete=complete_workflow)
@click.option("--fail-on-breaking", is_flag=True, help="End with exit code 1 if a change is breaking.")
@json_option
@click.pass_context
@reports_errors
async def diff(ctx: click.Context, old: str, new: str, fail_on_breaking: bool, as_json: bool) -> None:
    """Show what changed from OLD to NEW (files, ids, id@version), and whether that breaks users."""
    settings = settings_of(ctx)
    before, after = found_valid(old, settings), found_valid(new, settings)
    found = changes(before, after)
    weight = bump(found)
    wanted, enough = next_version(before.version, weight), is_enough(before.version, after.version, weight)
    data = {
        "old": {"id": before.id, "version": before.version},
        "new": {"id": after.id, "version": after.version},
        "breaking": weight is Weight.BREAKING,
        "bump": weight,
        "version_wanted": wanted or None,
        "version_is_enough": enough,
        "changes": found,
    }

    def print_text() -> None:
        for change in found:
            _print(change)
        say(_sum(found, weight, wanted, after.version if not enough else ""))

    answer(data, as_json=as_json, as_text=print_text)
    sys.exit(Exit.FAILED if fail_on_breaking and weight is Weight.BREAKING else Exit.OK)


def _print(change: VersionChange) -> None:
    say(f"{change.weight.value:<9}", fg=COLOR_OF[change.weight], nl=False)
    say(printable(f" {change.where} {change.what}"))


def _sum(found: list[VersionChange], weight: Weight | None, wanted: str, too_low: str) -> str:
    if weight is None:
        return "no changes"
    asked = f": at least version {wanted}" if wanted else ""
    low = f", and it is {too_low}" if too_low and wanted else ""
    return f"{plural(len(found), 'change')}, the most severe is {weight.value}{asked}{low}"
