"""`handrail db archive|unarchive|list`: ended runs leave the journal for archive files, and come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import click
import msgspec

from handrail.assembly.opening import open_reader
from handrail.assembly.retention.archives import ArchivedLine, archived_lines, due_runs, open_archives, rules_of
from handrail.domain.errors import Conflict, Invalid
from handrail.domain.instant import instant_text
from handrail.domain.journal.projection import RunRow
from handrail.domain.plural import plural
from handrail.domain.retention.rules import RetentionRule, RetentionRules, is_due, outcomes, require_sensible
from handrail.engine.clock import system_clock
from handrail.engine.retention.archiving import Archived
from handrail.interfaces.cli.program import json_option, person, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.asking import require_yes, required_reason
from handrail.interfaces.cli.words.own_command import localized
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import time_format, utc_option
from handrail.settings import Settings

SHOWN_MAX: Final = 20
RUNS_AT_ONCE_MAX: Final = 100_000


@click.command()
@click.argument("runs", nargs=-1)
@click.option("--older-than", metavar="TIME", help="Runs that ended longer ago than this: 90d.")
@click.option("--workflow", metavar="PATTERN", help="With --older-than: only runs of these workflows: nightly-*.")
@click.option("--outcome", "outcomes_", multiple=True, type=click.Choice([str(one) for one in outcomes()]))
@click.option("--delete", is_flag=True, help="Delete the events of these archived runs permanently. Needs a reason.")
@click.option("--reason", default="", help="Why; recorded in the journal.")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and change nothing.")
@click.option("--yes", is_flag=True, help="Delete without asking.")
@json_option
@click.pass_context
@reports_errors
async def archive(ctx: click.Context, /, runs: tuple[str, ...], as_json: bool, **typed: Any) -> None:
    """Move ended runs into archive files: RUNS, or those of --older-than, or what [retention] in config.toml says.

    What proves the whole journal stays in it, and archived runs can still be shown. An archive is read and compared
    before its events leave the journal. With --delete the events of runs that are archived are deleted permanently:
    their places and hashes stay, and who did it and why."""
    settings = settings_of(ctx)
    rules = _rules(settings, runs, typed)
    if typed["delete"]:
        await _delete(settings, runs, rules, as_json=as_json, typed=typed)
        return
    wanted = runs or tuple(row.id for row in await _due(settings, rules))
    if typed["dry_run"]:
        answer(listing("runs", list(wanted)), as_json=as_json, as_text=lambda: _print_planned(wanted, "archive"))
        return
    reason = typed["reason"] or _by_rules(rules, is_typed=bool(typed["older_than"]))
    async with open_archives(settings) as open_:
        done = await open_.archiver.archive(wanted, reason=reason, actor=person())
        await open_.archiver.give_back()
    answer(_data(done), as_json=as_json, as_text=lambda: _print_done(done))
    if runs and done.left_alone:
        raise Conflict(f"{plural(len(done.left_alone), 'run')} not archived", hint="see above for the reasons")


@click.command()
@click.argument("runs", nargs=-1, required=True)
@click.option("--reason", default="", help="Why; recorded in the journal.")
@json_option
@click.pass_context
@reports_errors
async def unarchive(ctx: click.Context, runs: tuple[str, ...], reason: str, as_json: bool) -> None:
    """Bring archived RUNS back into the journal, byte for byte."""
    async with open_archives(settings_of(ctx)) as open_:
        events = await open_.archiver.unarchive(list(dict.fromkeys(runs)), reason=reason, actor=person())
    data = {"runs": list(runs), "events": events}
    words = f"{plural(len(runs), 'run')} back in the journal, with {plural(events, 'event')}"
    answer(data, as_json=as_json, as_text=lambda: say(words))


@click.command(name="list")
@click.option("--deleted", is_flag=True, help="Only runs whose events were deleted, by which person and why.")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def list_(ctx: click.Context, deleted: bool, is_utc: bool, as_json: bool) -> None:
    """List the archived runs of all projects, the latest first, and where their events are."""
    async with open_reader(settings_of(ctx)) as look:
        lines = [line for line in await archived_lines(look) if line.deleted or not deleted]
    answer(
        listing("runs", [_line(line) for line in lines]), as_json=as_json, as_text=lambda: _print_list(lines, is_utc)
    )


def _rules(settings: Settings, runs: Sequence[str], typed: dict[str, Any]) -> RetentionRules | None:
    """What says which runs are meant: none if they are named."""
    selects = typed["older_than"] or typed["workflow"] or typed["outcomes_"]
    if runs and selects:
        raise click.UsageError("name the runs, or select them by --older-than, not both")
    if runs:
        return None
    if typed["older_than"]:
        return _typed_rules(typed)
    if selects or typed["delete"]:
        raise click.UsageError("name the runs, or add --older-than TIME")
    rules = rules_of(settings)
    if rules is None:
        hint = "name them, add --older-than 90d, or write [retention] in config.toml"
        raise Invalid("nothing says which runs are old", hint=hint)
    return rules


def _typed_rules(typed: dict[str, Any]) -> RetentionRules:
    workflow, outcome = typed["workflow"] or "*", tuple(typed["outcomes_"])
    rule = RetentionRule(archive_after=typed["older_than"], workflow=workflow, outcome=outcome)
    rules = RetentionRules(rules=(rule,))
    require_sensible(rules)
    return rules


async def _due(settings: Settings, rules: RetentionRules | None) -> list[RunRow]:
    if rules is None:
        return []
    async with open_reader(settings) as look:
        return (await due_runs(look.store, rules, now=system_clock()))[:RUNS_AT_ONCE_MAX]


async def _delete(
    settings: Settings, runs: Sequence[str], rules: RetentionRules | None, *, as_json: bool, typed: dict[str, Any]
) -> None:
    async with open_reader(settings) as look:
        lines = {line.run: line for line in await archived_lines(look) if not line.deleted}
        wanted = list(dict.fromkeys(runs)) or [run for run in lines if await _is_old(look.store, run, rules)]
    for run in wanted:
        if run not in lines:
            raise Conflict(f"{run} is not archived, or deleted already", hint=f"first: `handrail db archive {run}`")
    if typed["dry_run"] or not wanted:
        answer(listing("runs", wanted), as_json=as_json, as_text=lambda: _print_planned(wanted, "delete"))
        return
    reason = required_reason(typed["reason"])
    if not typed["yes"]:
        what = f"the events of {plural(len(wanted), 'run')} would be deleted permanently"
        require_yes(what, f"Delete the events of {plural(len(wanted), 'run')} permanently?")
    async with open_archives(settings) as open_:
        events = await open_.archiver.delete(wanted, reason=reason, actor=person())
    words = f"{plural(events, 'event')} of {plural(len(wanted), 'run')} deleted; their hashes stay in the journal"
    answer({"deleted": wanted, "events": events}, as_json=as_json, as_text=lambda: say(words))


async def _is_old(store: Any, run: str, rules: RetentionRules | None) -> bool:
    row = await store.run(run)
    return row is not None and rules is not None and is_due(rules, row, now=system_clock())


def _by_rules(rules: RetentionRules | None, *, is_typed: bool) -> str:
    if rules is None:
        return "asked for"
    return f"ended longer ago than {rules.rules[0].archive_after}" if is_typed else "[retention]"


def _data(done: Archived) -> dict[str, Any]:
    return {
        "runs": done.runs,
        "events": done.events,
        "archives": [msgspec.to_builtins(one) for one in done.archives],
        "left_alone": [msgspec.to_builtins(one) for one in done.left_alone],
    }


def _line(line: ArchivedLine) -> dict[str, Any]:
    times = ("started", "ended", "archived", "deleted")
    data: dict[str, Any] = msgspec.to_builtins(line)
    return data | {name: instant_text(data[name]) if data[name] else "" for name in times}


def _print_planned(runs: Sequence[str], verb: str) -> None:
    say(f"{plural(len(runs), 'run')} to {verb}" if runs else f"nothing to {verb}")
    for run in runs[:SHOWN_MAX]:
        say(f"  {run}")
    if len(runs) > SHOWN_MAX:
        say(f"  and {len(runs) - SHOWN_MAX:,} more: --json shows all of them")


def _print_done(done: Archived) -> None:
    for one in done.left_alone[:SHOWN_MAX]:
        say(f"left alone: {one.run}: {one.reason}", fg="yellow")
    if not done.runs:
        say("nothing was archived")
        return
    size = sum(one.bytes for one in done.archives)
    files = plural(len(done.archives), "file")
    say(f"archived {plural(done.runs, 'run')} with {plural(done.events, 'event')} in {files} ({size / 1e6:.1f} MB)")


def _print_list(lines: Sequence[ArchivedLine], is_utc: bool) -> None:
    if not lines:
        say("no archived runs")
        return
    shown = time_format(is_utc=is_utc)
    head: list[str | Column] = ["run", Column("workflow", 2), Column("outcome", 1), "ended"]
    head += [Column("events", 3), "where"]
    rows = [
        (line.run, line.workflow, line.status, shown.at(line.ended or 0), line.events, _where(line)) for line in lines
    ]
    print_table(head, rows)
    say(
        localized(
            "  what to do: `handrail run show RUN` reads an archived run; `handrail db unarchive RUN` brings it back"
        )
    )


def _where(line: ArchivedLine) -> str:
    if line.deleted:
        return f"deleted by {line.deleted_by}: {line.deleted_because}"
    return line.archive
