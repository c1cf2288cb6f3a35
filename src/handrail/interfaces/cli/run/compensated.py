"""`handrail run compensated`: record that a step was undone by hand, or needs no undo.

The run then continues to undo what is left, in this process unless another one executes it. Undoing itself is
`handrail run compensate` (control.py)."""

from __future__ import annotations

import click

from handrail.assembly.opening import open_assembly, open_writer
from handrail.domain.journal.event import How
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.run.execution import end_with, execute
from handrail.interfaces.cli.run.pick_up import warn_if_not_picked_up
from handrail.interfaces.cli.run.view import print_status, status_data
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.completion import complete_run, in_trouble, steps_completer
from handrail.settings import Settings


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@click.argument("step", metavar="STEP", shell_complete=steps_completer(in_trouble))
@click.option("--description", required=True, metavar="TEXT", help="What was done, or why it needs no undo; kept.")
@click.option("--not-needed", is_flag=True, help="Nothing has to be undone: there is no effect left.")
@click.option("--detach", is_flag=True, help="Do not continue the run here; a worker does.")
@json_option
@click.pass_context
@reports_errors
async def compensated(
    ctx: click.Context, run_id: str, step: str, description: str, not_needed: bool, detach: bool, as_json: bool
) -> None:
    """Record that STEP of RUN was undone by hand; the run then undoes what is left.

    For agents it is the tool record_compensation. To let handrail undo what RUN did: `handrail run compensate`."""
    settings = settings_of(ctx)
    how = How.NOT_NEEDED if not_needed else How.RECORDED
    if detach:
        await _recorded(settings, run_id, step, how, description, as_json=as_json)
        return
    async with open_assembly(settings, picks_up=False) as parts:
        await parts.control.record_compensation(
            run_id, step, how=how, description=description, actor=person(), details={}
        )
        end = await execute(parts, run_id, is_watched=False, as_json=as_json)
    end_with(end, as_json=as_json)


async def _recorded(settings: Settings, run_id: str, step: str, how: How, description: str, *, as_json: bool) -> None:
    async with open_writer(settings) as handrail:
        await handrail.control.record_compensation(
            run_id, step, how=how, description=description, actor=person(), details={}
        )
        status = await handrail.reader.run_reader().status(run_id)
        await warn_if_not_picked_up(handrail.reader, status)
    answer(status_data(status), as_json=as_json, as_text=lambda: print_status(status))
