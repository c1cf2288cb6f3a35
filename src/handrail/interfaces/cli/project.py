"""`handrail project`: list the projects of this home, move or forget one, and adopt runs that have none.

storage/project_registry.py keeps the projects; engine/dispatch.py decides which runs may be adopted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from handrail.assembly.joining import join_project, served_projects
from handrail.assembly.opening import StoreReader, StoreWriter, open_reader, open_writer, projects_of
from handrail.assembly.stores import is_shared
from handrail.domain.errors import Conflict, HandrailError, Invalid
from handrail.domain.journal.projection import RunRow
from handrail.domain.plural import plural
from handrail.domain.project import refusal
from handrail.domain.run.status import RUN_ENDED
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.asking import require_yes
from handrail.interfaces.cli.words.completion import complete_run
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain
from handrail.interfaces.project_rows import ProjectRow, project_rows

PAGE: Final = 500
ADOPTED_MAX: Final = 100_000
SHOWN_MAX: Final = 20
REASON: Final = "adopted by hand"


@click.group()
def command() -> None:
    """List projects, join, move or forget one, and adopt runs."""


@command.command("list")
@json_option
@click.pass_context
@reports_errors
async def list_(ctx: click.Context, as_json: bool) -> None:
    """List the projects of this home, with how many runs each has."""
    async with open_reader(settings_of(ctx)) as look:
        rows = await project_rows(look)
    data = [
        {name: value for name, value in msgspec.to_builtins(row).items() if name != "folder" or value} for row in rows
    ]

    def print_text() -> None:
        if not rows:
            say("no projects yet; a folder becomes one when something is run or saved in it", err=True)
            return
        cells = [
            ("*" if row.is_here else "", row.id or "-", plain(row.name), row.open, row.runs, row.nodes, _where(row))
            for row in rows
        ]
        head = (Column("", 3), "project", "name", "open", Column("runs", 2), Column("nodes", 1), "folder")
        print_table(head, cells)
        strays = [row.id for row in rows if row.open and not row.folder]
        others = [stray for stray in strays if stray and is_shared(settings_of(ctx))]
        if others:  # of another machine, as far as is known here: they are not to be adopted
            advise(f"to serve {others[0]} in this folder, too: `handrail project join {others[0]}`")
        elif strays:
            advise("runs without a project wait: `handrail project adopt --all` gives them this one")

    answer(listing("projects", data), as_json=as_json, as_text=print_text)


def _where(row: ProjectRow) -> str:
    if not row.folder:
        return ""
    return plain(row.folder) if row.exists else f"{plain(row.folder)}  GONE"


@command.command()
@click.argument("project_id", metavar="ID")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@click.pass_context
@reports_errors
async def move(ctx: click.Context, project_id: str, folder: Path, as_json: bool) -> None:
    """Say that the folder of project ID is FOLDER now. Nothing on disk is moved."""
    settings = settings_of(ctx)
    registry = projects_of(settings)
    async with open_reader(settings) as look:
        there = registry.at(folder)
        _, runs = await _counts(look, there.id)
        if there.id != project_id and runs:
            raise Conflict(
                f"{there.folder} is a project of its own, {there.id}, with {plural(runs, 'run')}",
                hint=f"forget it first: `handrail project forget {there.id}`; then adopt its runs with --from",
            )
    moved = registry.move(project_id, folder, replaces=True)
    answer(moved, as_json=as_json, as_text=lambda: say(f"{moved.id} is in {plain(moved.folder)} now"))


@command.command()
@click.argument("project_id", metavar="ID")
@json_option
@click.pass_context
@reports_errors
async def join(ctx: click.Context, project_id: str, as_json: bool) -> None:
    """Serve project ID of the shared store in this folder, beside the machines that serve it already.

    The folder, its trust and its tools are this machine's own; only the id is shared."""
    joined = await join_project(settings_of(ctx), project_id)

    def print_text() -> None:
        say(f"{joined.id} is served in {plain(joined.folder)}, too")
        advise("to execute its runs: `handrail worker`; to use its own settings here: `handrail trust`")

    answer(joined, as_json=as_json, as_text=print_text)


@command.command()
@click.argument("project_id", metavar="ID")
@click.option("--force", is_flag=True, help="Even if it has open runs; they wait until they are adopted.")
@click.option("--yes", is_flag=True, help="With --force: don't ask.")
@json_option
@click.pass_context
@reports_errors
async def forget(ctx: click.Context, project_id: str, force: bool, yes: bool, as_json: bool) -> None:
    """Forget project ID: its folder gets a new id when it is used again. Its runs stay in the journal."""
    settings = settings_of(ctx)
    registry = projects_of(settings)
    project = registry.require(project_id)
    async with open_reader(settings) as look:
        opened, runs = await _counts(look, project_id)
    if opened and not force:
        raise Conflict(
            f"{project_id} has {plural(opened, 'open run')}",
            hint="end them first, or add --force: they then wait until a project adopts them",
        )
    if opened and not yes:
        what = f"{plural(opened, 'open run')} of {project_id} would wait until a project adopts them"
        require_yes(what, f"Forget {project_id} with {plural(opened, 'open run')}?")
    registry.forget(project_id)
    data = {**msgspec.to_builtins(project), "open": opened, "runs": runs}

    def print_text() -> None:
        say(f"forgot {project_id}, in {plain(project.folder)}")
        if runs:
            advise(f"its {plural(runs, 'run')} can be adopted: `handrail project adopt --from {project_id}`")

    answer(data, as_json=as_json, as_text=print_text)


async def _counts(look: StoreReader, project_id: str) -> tuple[int, int]:
    """How many open runs a project has, and how many in all."""
    counts = [count for count in await look.store.run_counts() if count.project == project_id]
    return sum(one.runs for one in counts if one.status not in RUN_ENDED), sum(one.runs for one in counts)


@command.command()
@click.argument("run_ids", metavar="[RUN]...", nargs=-1, shell_complete=complete_run)
@click.option("--all", "is_all", is_flag=True, help="All open runs without a project, or whose project was forgotten.")
@click.option("--from", "source", metavar="ID", help="Only runs of this forgotten project; implies --all.")
@click.option("--ended", is_flag=True, help="With --all or --from: ended runs, too.")
@click.option("--reason", default=REASON, show_default=True, metavar="TEXT", help="Why; kept in the journal.")
@click.option("--yes", is_flag=True, help="Don't ask.")
@json_option
@click.pass_context
@reports_errors
async def adopt(ctx: click.Context, /, run_ids: tuple[str, ...], as_json: bool, **typed: Any) -> None:
    """Give runs that have no project, or a forgotten one, to this project: its processes then execute them here.

    These are runs that were started before runs had a project, or whose project was forgotten."""
    settings = settings_of(ctx)
    source, is_all = typed["source"], typed["is_all"] or typed["source"] is not None
    if is_all == bool(run_ids):
        raise click.UsageError("Name the runs to adopt, or give --all or --from.")
    async with open_reader(settings) as look:
        rows = await _named(look, run_ids) if run_ids else await _homeless(look, source, ended=typed["ended"])
        here = look.project
        statuses = await _shown_statuses(look, rows)
    if not rows:
        answer(listing("adopted", []), as_json=as_json, as_text=lambda: say("no runs to adopt", err=True))
        return
    if not typed["yes"]:
        _print_rows(rows, statuses)
        what = f"{plural(len(rows), 'run')} would be executed in {here.folder}"
        require_yes(what, f"Adopt {plural(len(rows), 'run')} into {plain(here.folder)}?")
    async with open_writer(settings) as writer:
        adopted = [await _adopted(writer, row, typed["reason"]) for row in rows]
        here = writer.reader.project

    def print_text() -> None:
        for one in adopted:
            say(f"{one['run']} belongs to {here.id} now  receipt {one['receipt']}")
        advise("a worker continues them, or `handrail run resume RUN`")

    answer(listing("adopted", adopted, project=here), as_json=as_json, as_text=print_text)


async def _adopted(writer: StoreWriter, row: RunRow, reason: str) -> dict[str, str]:
    run = await writer.dispatch.adopt(row.id, reason=reason, actor=person())
    return {"run": run.id, "receipt": run.receipt}


async def _named(look: StoreReader, run_ids: Sequence[str]) -> list[RunRow]:
    """The rows of these runs; refused if one belongs to a project that is known."""
    find = projects_of(look.settings).find
    rows, served = [], await served_projects(look.store)
    for run_id in dict.fromkeys(run_ids):
        run = await look.run_reader().run(run_id)
        if run.project and find(run.project) is not None:
            if run.project == look.project.id:
                raise Conflict(f"{run_id} belongs to this project already", hint="leave it out")
            raise refusal(run_id, run.project, find)
        if run.project in served:
            raise _served_elsewhere(run.project)
        if row := await look.store.run(run_id):
            rows.append(row)
    return rows


async def _homeless(look: StoreReader, source: str | None, *, ended: bool) -> list[RunRow]:
    """The runs without a project, and of projects that were forgotten; or of that one only."""
    known: set[str] = {project.id for project in projects_of(look.settings).all()}
    if source in known:
        raise Conflict(f"{source} is a registered project", hint=f"forget it first: `handrail project forget {source}`")
    served = await served_projects(look.store)
    if source in served:
        raise _served_elsewhere(source)
    counts = await look.store.run_counts()
    projects = {count.project for count in counts} - known - served
    wanted = sorted(projects if source is None else projects & {source})
    statuses = {count.status for count in counts if ended or count.status not in RUN_ENDED}
    rows: list[RunRow] = []
    for project in wanted if statuses else ():
        after = ""
        while page := await look.store.runs(status=tuple(statuses), after=after, limit=PAGE, project=project):
            rows += page
            after = page[-1].id
            if len(rows) > ADOPTED_MAX:
                raise Invalid(f"more than {ADOPTED_MAX} runs at once", hint="adopt one project at a time: --from ID")
    return rows


def _served_elsewhere(project_id: str) -> Conflict:
    return Conflict(
        f"{project_id} is served by other nodes: its runs are at home there",
        hint=f"to serve it here, too: `handrail project join {project_id}`",
    )


async def _shown_statuses(look: StoreReader, rows: Sequence[RunRow]) -> list[str]:
    """What readers see of the first runs: one that waits for somebody is not running."""
    reader = look.run_reader()
    seen = []
    for row in rows[:SHOWN_MAX]:
        try:
            seen.append((await reader.status(row.id)).status.value)
        except HandrailError:  # a run that can't be read can be adopted all the same
            seen.append(row.status)
    return seen


def _print_rows(rows: Sequence[RunRow], statuses: Sequence[str]) -> None:
    for row, status in zip(rows, statuses, strict=False):  # on stderr, because stdout has the answer
        say(f"  {row.id}  {status}  {plain(row.workflow)}  {plain(row.goal)}".rstrip(), err=True)
    if len(rows) > SHOWN_MAX:
        say(f"and {len(rows) - SHOWN_MAX} more", err=True)
