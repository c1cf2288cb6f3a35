"""`handrail db salvage`: bring what can still be proved out of a damaged journal."""

from __future__ import annotations

from pathlib import Path

import click

from handrail.assembly.backups.salvaging import NAMED_MAX, PARTIAL, salvage_journal
from handrail.domain.plural import plural
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.asking import required_reason
from handrail.interfaces.cli.words.terminal_edge import say


@click.command()
@click.argument("home", type=click.Path(path_type=Path))
@click.option(
    "--journal",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The damaged file; default: the journal of this home.",
)
@click.option("--reason", default="", help="Why it is accepted; recorded in the new journal.")
@json_option
@click.pass_context
@reports_errors
async def salvage(ctx: click.Context, home: Path, journal: Path | None, reason: str, as_json: bool) -> None:
    """Bring every stream that can still be proved out of a damaged journal into the new folder HOME.

    A stream, such as a run, is brought out only whole; the first events of others are in the folder salvaged/ of HOME,
    to read. The damaged file is only read. What is lost is listed here and recorded in the new journal."""
    settings = settings_of(ctx)
    report = await salvage_journal(journal or settings.journal, home, reason=required_reason(reason), actor=person())
    data = {
        "home": str(report.home),
        "events": report.events,
        "streams": report.streams,
        "definitions": report.definitions,
        "lost": report.lost,
    }

    def print_text() -> None:
        say(f"salvaged and verified {plural(report.events, 'event')} of {plural(report.streams, 'stream')}")
        for one in report.lost[:NAMED_MAX]:
            proved = f"{one.proved} of {plural(one.events, 'event')} can be read in {PARTIAL}/" if one.proved else "all"
            say(f"lost: {one.stream}: {one.reason}; {proved}", fg="red")
        if len(report.lost) > NAMED_MAX:
            say(f"and {len(report.lost) - NAMED_MAX} more: use --json for all of them", fg="red")
        say(f"  what to do: set HANDRAIL_HOME to {report.home}; the damaged file is as it was")

    answer(data, as_json=as_json, as_text=print_text)
