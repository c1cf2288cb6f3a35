"""`handrail run`: start, list, show and watch runs. Controls are in control.py, submitting in submit.py."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import Any

import click

from handrail.assembly.opening import open_assembly, open_reader, open_writer
from handrail.assembly.retention.archives import archived_in
from handrail.assembly.tools import toolbox_of
from handrail.domain.definition.model import Definition
from handrail.domain.definition.work_items import tools_in
from handrail.domain.project import NO_PROJECT
from handrail.domain.run.command import StartRun
from handrail.domain.run.status import RUN_SHOWN_OPEN, RUN_UNENDED, RunStatus
from handrail.engine.reading.run_view import Detail, Status
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.run.compensated import compensated
from handrail.interfaces.cli.run.control import CONTROLS
from handrail.interfaces.cli.run.execution import Stopped, end_with, execute, first_of, stoppable
from handrail.interfaces.cli.run.guided_view import print_how_to_submit
from handrail.interfaces.cli.run.pick_up import warn_if_not_executed, warn_if_not_picked_up
from handrail.interfaces.cli.run.report import report
from handrail.interfaces.cli.run.runnable import definition_of, inputs_of
from handrail.interfaces.cli.run.submit import submit
from handrail.interfaces.cli.run.view import EXIT_OF_STATUS, print_runs, print_status, status_data
from handrail.interfaces.cli.run.watch import run_viewer, watch
from handrail.interfaces.cli.words.all_projects import all_projects_option
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.archived import archived_data, print_archived
from handrail.interfaces.cli.words.completion import complete_run, complete_runnable
from handrail.interfaces.cli.words.finding_view import print_how_to_allow
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import utc_option
from handrail.runs import settle, start_for_a_worker
from handrail.settings import Settings
from handrail.tools.registry import Registry

STATUSES = [status.value for status in RunStatus if status is not RunStatus.NEW]


@click.group()
def command() -> None:
    """Start, list, show, watch, submit and control runs."""


for one in (*CONTROLS, compensated, submit, report):
    command.add_command(one)


@command.command()
@click.argument("name", metavar="FILE|ID", shell_complete=complete_runnable)
@click.option("-i", "--input", "typed", multiple=True, metavar="NAME=VALUE", help="An input; or @FILE for many.")
@click.option("--goal", default="", help="The purpose of the run, in a few words.")
@click.option("--priority", default=0, type=click.IntRange(-1_000, 1_000), help="Runs with a higher number go first.")
@click.option("--watch", "is_watched", is_flag=True, help="Show what happens, live.")
@click.option("--detach", is_flag=True, help="Only start it; a worker executes it.")
@json_option
@click.pass_context
@reports_errors
async def start(
    ctx: click.Context,
    name: str,
    typed: tuple[str, ...],
    goal: str,
    priority: int,
    is_watched: bool,
    detach: bool,
    as_json: bool,
) -> None:
    """Run FILE (`-`: stdin), or the workflow or saved plan with this ID, until it ends or waits for someone."""
    settings = settings_of(ctx)
    toolbox = toolbox_of(settings)
    try:
        async with open_reader(settings) as look:
            definition, pins = await definition_of(name, look, toolbox)
        _warn_of_tools_off(toolbox, definition)
        ask = StartRun(goal=goal, priority=priority, pins=pins)
        inputs = inputs_of(definition, typed, goal)
        if detach:
            status = await _started_for_a_worker(settings, toolbox, definition, inputs, ask)
            _print_id(status.run, as_json=as_json)
        else:
            async with open_assembly(settings, picks_up=False, toolbox=toolbox) as parts:
                run = await parts.worker.start(definition, inputs, actor=person(), ask=ask)
                _print_id(run.id, as_json=as_json)
                status = await execute(parts, run.id, is_watched=is_watched, as_json=as_json)
    finally:
        await toolbox.close()
    end_with(status, as_json=as_json)


async def _started_for_a_worker(
    settings: Settings, toolbox: Registry, definition: Definition, inputs: Mapping[str, Any], ask: StartRun
) -> Status:
    async with open_writer(settings) as writer:
        run = await start_for_a_worker(writer.dispatch, toolbox, definition, inputs, actor=person(), ask=ask)
        status = await writer.reader.run_reader().status(run.id)
        await warn_if_not_picked_up(writer.reader, status)
        return status


def _warn_of_tools_off(toolbox: Registry, definition: Definition) -> None:
    """Say before the start which calls will be refused, so that a person can allow them first."""
    for why in toolbox.known(tools_in(definition)).off.values():
        say(f"warning: {why}", fg="yellow", err=True)
        print_how_to_allow(err=True)


def _print_id(run_id: str, *, as_json: bool) -> None:
    """Print the run's id before anything can fail; with JSON on stderr, since stdout has one answer at the end."""
    say(run_id, err=as_json)
    (sys.stderr if as_json else sys.stdout).flush()


@command.command("list")
@click.option(
    "--status",
    "statuses",
    multiple=True,
    type=click.Choice(STATUSES),
    help="Only runs with this status; may be repeated.",
)
@click.option("--all", "is_all", is_flag=True, help="Include ended runs.")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="Show at most this many.")
@click.option("--after", default="", help="Only runs whose id comes after this one.")
@all_projects_option
@utc_option
@json_option
@click.pass_context
@reports_errors
async def list_(
    ctx: click.Context,
    statuses: tuple[str, ...],
    is_all: bool,
    limit: int,
    after: str,
    all_projects: bool,
    is_utc: bool,
    as_json: bool,
) -> None:
    """List the open runs of this project; with --all or --status, others too.

    Steps that were skipped are over, too; `run show` counts them apart."""
    wanted = statuses or (() if is_all else tuple(RUN_SHOWN_OPEN))
    async with open_reader(settings_of(ctx)) as look:
        run_reader = look.run_reader()
        rows = await run_reader.runs(status=wanted, after=after, limit=limit, all_projects=all_projects)
        waiting = [] if all_projects else await look.store.runs(status=tuple(RUN_UNENDED), limit=1, project=NO_PROJECT)
    data = listing("runs", rows, cursor=rows[-1].run if len(rows) == limit else "")
    answer(data, as_json=as_json, as_text=lambda: print_runs(rows, is_utc=is_utc))
    if waiting:
        advise("some open runs have no project yet and wait: `handrail project adopt --all`")


@command.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@click.option("--full", is_flag=True, help="Include every step.")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def show(ctx: click.Context, run_id: str, full: bool, is_utc: bool, as_json: bool) -> None:
    """Show the status of RUN, what it waits for, and how to continue."""
    settings = settings_of(ctx)
    async with open_reader(settings) as look:
        run_reader = look.run_reader(toolbox_of(settings))
        status = await run_reader.status(run_id, detail=Detail.FULL if full else Detail.SUMMARY)
        archived = await archived_in(look, status.run)
        await warn_if_not_executed(look, status)

    def print_text() -> None:
        print_status(status, is_utc=is_utc)
        print_archived(archived)
        print_how_to_submit(status)

    answer(status_data(status) | archived_data(archived), as_json=as_json, as_text=print_text)


@command.command("watch")
@click.argument("run_id", metavar="RUN", shell_complete=complete_run)
@json_option
@click.pass_context
@reports_errors
async def watch_(ctx: click.Context, run_id: str, as_json: bool) -> None:
    """Show what happens in RUN, whichever process executes it, until it ends or waits for someone."""
    status = await _watched(settings_of(ctx), run_id, as_json=as_json)
    answer(status_data(status), as_json=as_json, as_text=lambda: print_status(status))
    sys.exit(EXIT_OF_STATUS[status.status])


async def _watched(settings: Settings, run_id: str, *, as_json: bool) -> Status:
    async with open_reader(settings) as look:
        run_reader = look.run_reader(toolbox_of(settings))
        await warn_if_not_executed(look, await run_reader.status(run_id))
        with stoppable() as stop:
            task = asyncio.ensure_future(settle(run_id, run_reader))
            until = asyncio.ensure_future(first_of(task, stop))
            try:
                with run_viewer(err=as_json) as shown:
                    await watch(run_reader, run_id, shown, until)
                await until
            except Stopped:
                pass  # only the watching ends; the run continues
            finally:
                task.cancel()
        return await run_reader.status(run_id)
