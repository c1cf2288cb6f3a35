"""`handrail approvals`: what people are asked to approve, over all open runs."""

from __future__ import annotations

import click

from handrail.assembly import open_reader
from handrail.domain.run.status import RUN_SHOWN_ASKING
from handrail.engine.clock import system_clock
from handrail.engine.reading.run_reader import RunReader
from handrail.engine.reading.run_view import WaitingKind
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.times import time_format, utc_option
from handrail.interfaces.pictures.caption import plain


@click.command()
@click.option("--limit", default=200, type=click.IntRange(1, 1000), help="Look at this many runs at most.")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def command(ctx: click.Context, limit: int, is_utc: bool, as_json: bool) -> None:
    """List all pending approvals, with the question of each."""
    async with open_reader(settings_of(ctx)) as look:
        rows = await RunReader(look.store, system_clock).runs(status=RUN_SHOWN_ASKING, limit=limit)
    asked = [(row, one) for row in rows for one in row.waiting_for if one.kind is WaitingKind.APPROVAL]
    data = [
        {
            "run": row.run,
            "step": one.step,
            "text": one.text,
            "workflow": row.workflow,
            "by": one.by,
            "since": one.since,
            "expires": one.expires or None,
        }
        for row, one in asked
    ]

    def print_text() -> None:
        if not data:
            click.echo("no pending approvals", err=True)
            return
        shown = time_format(is_utc=is_utc)
        cells = [
            (row.run, one.step, ", ".join(one.by), shown.ago(one.since), shown.ago(one.expires), plain(one.text))
            for row, one in asked
        ]
        print_table(("run", "step", Column("by", 2), Column("since", 3), Column("expires", 1), "question"), cells)
        click.echo("to answer: handrail approve RUN STEP --reason '...'    (or: handrail reject ...)", err=True)

    answer(listing("approvals", data), as_json=as_json, as_text=print_text)
