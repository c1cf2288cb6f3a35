"""`handrail db prune|size`: apply the rules of retention now, and show what takes how much space."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from handrail.assembly.retention.pruning import Pruned, PrunePlan, prune_plan
from handrail.assembly.retention.pruning import prune as pruned_now
from handrail.assembly.retention.sizes import HomeSize, home_size
from handrail.domain.plural import plural
from handrail.engine.retention.abandoned import AbandonedRun
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say

SHOWN_MAX = 20


@click.command()
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@json_option
@click.pass_context
@reports_errors
async def prune(ctx: click.Context, dry_run: bool, as_json: bool) -> None:
    """Do now what [retention] in config.toml of HANDRAIL_HOME says.

    Ended runs are archived; about abandoned runs somebody is asked, or they are ended as their plan says; archives and
    kept contents that no run needs are removed. No run is deleted: that is `handrail db archive --delete`."""
    settings = settings_of(ctx)
    if dry_run:
        plan = await prune_plan(settings)
        answer(msgspec.to_builtins(plan), as_json=as_json, as_text=lambda: _print_plan(plan))
        return
    done = await pruned_now(settings, actor=person())
    answer(_data(done), as_json=as_json, as_text=lambda: _print_done(done))


@click.command()
@json_option
@click.pass_context
@reports_errors
async def size(ctx: click.Context, as_json: bool) -> None:
    """Show what this home takes on the disk, part by part, and what bounds each."""
    found = await home_size(settings_of(ctx))
    answer(msgspec.to_builtins(found), as_json=as_json, as_text=lambda: _print_size(found))


def _data(done: Pruned) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(done)
    return data | {"runs": done.archived.runs, "events": done.archived.events}


def _print_plan(plan: PrunePlan) -> None:
    say(f"archive: {plural(len(plan.archive), 'run')}")
    for run in plan.archive[:SHOWN_MAX]:
        say(f"  {run}")
    if len(plan.archive) > SHOWN_MAX:
        say(f"  and {len(plan.archive) - SHOWN_MAX:,} more: --json shows all of them")
    say(f"abandoned: {plural(len(plan.abandoned), 'run')}")
    _print_abandoned(plan.abandoned)
    say(f"archives that no run needs: {len(plan.archives):,}")
    say(f"kept contents of deleted or unknown runs: {len(plan.contents):,}")


def _print_done(done: Pruned) -> None:
    say(f"archived {plural(done.archived.runs, 'run')} with {plural(done.archived.events, 'event')}")
    for left in done.archived.left_alone[:SHOWN_MAX]:
        say(f"  left alone: {left.run}: {left.reason}", fg="yellow")
    say(f"abandoned: {plural(len(done.abandoned), 'run')}")
    _print_abandoned(done.abandoned)
    say(f"removed {plural(len(done.archives), 'superfluous archive')}")
    say(f"removed the kept contents of {plural(len(done.contents), 'deleted or unknown run')}")


def _print_abandoned(runs: tuple[AbandonedRun, ...]) -> None:
    for one in runs:
        failed = f", which failed: {one.reason}" if one.reason else ""
        say(f"  {one.run}  {one.workflow}: {one.how}{failed}")


def _print_size(found: HomeSize) -> None:
    head: list[str | Column] = ["what", "size", Column("files", 1), "bounded by"]
    rows = [(part.name, _megabytes(part.bytes), part.files, part.bound) for part in found.parts]
    print_table(head, [*rows, ("total", _megabytes(found.total), "", "")])
    store = found.store
    say(
        f"{plural(store.events, 'event')} in the journal, {plural(store.archived, 'event')} of "
        f"{plural(store.archived_runs, 'run')} archived; {_megabytes(store.free)} of the journal are free"
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
