"""`handrail db migrate`: bring the tables of the journal to this version, with a backup before it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from handrail.assembly.upgrading import UpgradePlan, upgrade, upgrade_plan
from handrail.domain.plural import plural
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.terminal_edge import say

FOLDER: Final = "backups"


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be applied, and change nothing.")
@click.option(
    "--backup", type=click.Path(path_type=Path), help="Where the backup goes; default: backups/ in HANDRAIL_HOME."
)
@click.option("--no-backup", is_flag=True, help="Make no backup: you have made one yourself.")
@json_option
@click.pass_context
@reports_errors
async def migrate(ctx: click.Context, dry_run: bool, backup: Path | None, no_backup: bool, as_json: bool) -> None:
    """Bring the tables of the journal to this version of handrail, after a backup; then verify the journal.

    Stop processes of the older version first: they refuse to write from then on. Opening a journal does the same
    without being asked, and keeps a copy of the file from before."""
    settings = settings_of(ctx)
    if backup is not None and no_backup:
        raise click.UsageError("--backup and --no-backup contradict each other")
    if dry_run:
        plan = await upgrade_plan(settings)
        answer(_data(plan), as_json=as_json, as_text=lambda: _print_plan(plan))
        return
    done = await upgrade(settings, None if no_backup else backup or settings.home / FOLDER)
    data = _data(done.plan) | {"backup": str(done.backup) if done.backup else "", "events": done.events}

    def print_text() -> None:
        _print_plan(done.plan)
        if done.backup is not None:
            say(f"backed up to {done.backup}")
        if done.plan.pending:
            say(f"the journal has schema {done.plan.newest}: {plural(done.events, 'event')} verified", fg="green")

    answer(data, as_json=as_json, as_text=print_text)


def _data(plan: UpgradePlan) -> dict[str, object]:
    pending = [{"number": number, "name": name} for number, name in plan.pending]
    return {"schema": plan.schema, "newest": plan.newest, "pending": pending}


def _print_plan(plan: UpgradePlan) -> None:
    if not plan.pending:
        say(f"the journal is up to date: schema {plan.schema}")
    for number, name in plan.pending:
        say(f"schema {number}: {name}")
