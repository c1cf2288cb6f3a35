"""`handrail plan`: check, save, list, show and retire plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from handrail.assembly.opening import open_reader, open_writer, projects_of
from handrail.domain.definition.authoring import definition_data
from handrail.domain.definition.graph import waves
from handrail.domain.errors import NotFound
from handrail.domain.instant import instant_text
from handrail.domain.plan import Plan
from handrail.domain.project import scoped
from handrail.domain.suggestion import did_you_mean
from handrail.engine.plans import version_of
from handrail.engine.reading.run_view import plan_project_view
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.all_projects import all_projects_option, with_project_column
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.completion import complete_plan, complete_workflow
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.reason import reason_option
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import put, say
from handrail.interfaces.cli.words.times import time_format, utc_option
from handrail.interfaces.cli.workflow.definitions import check_files, load_valid, local_survey
from handrail.interfaces.cli.workflow.lookup import files_of
from handrail.library.documents.printing import yaml_text


@click.group()
def command() -> None:
    """Check, save, list, show and retire plans."""


@command.command()
@click.argument("target", metavar="FILE|ID", shell_complete=complete_workflow)
@json_option
@click.pass_context
@reports_errors
async def check(ctx: click.Context, target: str, as_json: bool) -> None:
    """Check whether FILE (`-`: stdin) is a valid plan, and show all findings at once; nothing is saved.

    The same check as `handrail workflow validate`, which takes several files."""
    settings = settings_of(ctx)
    check_files(files_of([target], settings), settings, as_json=as_json)


@command.command()
@click.argument("file")
@click.option("--note", default="", help="Why this version; kept in the journal.")
@json_option
@click.pass_context
@reports_errors
async def save(ctx: click.Context, file: str, note: str, as_json: bool) -> None:
    """Save the plan in FILE as a new version; the same text twice in a row is one version.

    It is checked like `handrail plan check`: a plan with errors is not saved."""
    settings = settings_of(ctx)
    definition, findings = load_valid(file, settings, survey=local_survey(settings))
    async with open_writer(settings) as handrail:
        plan = await handrail.plans.save(definition, actor=person(), note=note)
    newest = plan.newest
    data = {
        "plan": plan.id,
        "version": newest.number,
        "hash": newest.definition,
        "waves": waves(definition.steps),
        "findings": findings,
        "receipt": plan.receipt,
    }

    def print_text() -> None:
        print_findings(findings, err=True)
        say(f"saved {plan.id} as version {newest.number}  {newest.definition[:19]}  receipt {plan.receipt}")

    answer(data, as_json=as_json, as_text=print_text)


@command.command("list")
@click.option("--limit", default=50, type=click.IntRange(1, 1000), help="Show at most this many.")
@click.option("--after", default="", help="Only plans that come after this one: the cursor of the page before.")
@all_projects_option
@utc_option
@json_option
@click.pass_context
@reports_errors
async def list_(ctx: click.Context, limit: int, after: str, all_projects: bool, is_utc: bool, as_json: bool) -> None:
    """List the saved plans of this project, including retired ones, and those from before there were projects."""
    async with open_reader(settings_of(ctx)) as look:
        project = None if all_projects else look.project.id
        rows = await look.store.plans(after=after, limit=limit, project=project)
        find = projects_of(look.settings).find
    projects = [plan_project_view(row.project, find) if all_projects else None for row in rows]
    data = [
        {
            "plan": row.id,
            "name": row.name,
            "version": row.version,
            "steps": row.steps,
            "saved": instant_text(row.saved),
            "retired": instant_text(row.retired) if row.retired is not None else None,
            **({"project": owner} if owner is not None else {}),
        }
        for row, owner in zip(rows, projects, strict=True)
    ]

    def print_text() -> None:
        if not data:
            advise("no saved plans: save one with `handrail plan save FILE`")
            return
        shown = time_format(is_utc=is_utc)
        cells: list[Sequence[object]] = [
            (row.id, row.version, row.steps, shown.at(row.saved), "retired" if row.retired else "active", row.name)
            for row in rows
        ]
        head: list[str | Column] = ["plan", "version", Column("steps", 2), Column("saved", 1), "state", "name"]
        if all_projects:
            head, cells = with_project_column(head, cells, projects)
        print_table(head, cells)

    last = rows[-1] if len(rows) == limit else None
    cursor = (scoped(last.project, last.id) if all_projects else last.id) if last else ""
    answer(listing("plans", data, cursor=cursor), as_json=as_json, as_text=print_text)


@command.command()
@click.argument("plan_id", metavar="PLAN", shell_complete=complete_plan)
@click.option("--version", "number", type=int, help="Which version; default: the newest.")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def show(ctx: click.Context, plan_id: str, number: int | None, is_utc: bool, as_json: bool) -> None:
    """Show the versions of a plan, and the text of one of them."""
    async with open_reader(settings_of(ctx)) as look:
        plan = await look.plans.get(plan_id)
        if not plan.versions:
            known = [row.id for row in await look.store.plans(limit=1_000, project=look.project.id)]
            raise NotFound(f"there is no plan {plan_id!r}", hint=did_you_mean(plan_id, known) or "no plan is saved yet")
        version = version_of(plan, number)
        definition = await look.plans.definition(version)
    data = {**_versions(plan), "definition": definition_data(definition)}

    def print_text() -> None:
        shown = time_format(is_utc=is_utc)
        rows = [(one.number, shown.at(one.saved), one.actor, one.note) for one in plan.versions]
        print_table(("version", "saved", "by", "note"), rows)
        put(yaml_text(data["definition"]), nl=False)

    answer(data, as_json=as_json, as_text=print_text)


@command.command()
@click.argument("plan_id", metavar="PLAN", shell_complete=complete_plan)
@reason_option
@json_option
@click.pass_context
@reports_errors
async def retire(ctx: click.Context, plan_id: str, reason: str, as_json: bool) -> None:
    """Stop offering a plan. Nothing is erased: its versions and the reason stay in the journal."""
    async with open_writer(settings_of(ctx)) as handrail:
        plan = await handrail.plans.retire(plan_id, reason=reason, actor=person())
    data = {"plan": plan.id, "retired": instant_text(plan.retired or 0), "receipt": plan.receipt}
    answer(data, as_json=as_json, as_text=lambda: say(f"retired {plan.id}  receipt {plan.receipt}"))


def _versions(plan: Plan) -> dict[str, Any]:
    versions = [
        {
            "version": version.number,
            "hash": version.definition,
            "saved": instant_text(version.saved),
            "by": version.actor,
            "note": version.note,
        }
        for version in plan.versions
    ]
    return {"plan": plan.id, "versions": versions, "retired": plan.retired is not None, "receipt": plan.receipt}
