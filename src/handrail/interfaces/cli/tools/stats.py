"""`handrail tools stats`: calls, times and failures of tools and servers, from the journal.

engine/reading/tool_stats.py computes the figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click
import msgspec

from handrail.assembly.opening import open_reader
from handrail.domain.definition.duration import duration_ms
from handrail.domain.instant import instant_text
from handrail.domain.plural import plural
from handrail.domain.suggestion import did_you_mean
from handrail.engine.clock import system_clock
from handrail.engine.reading.tool_stats import ToolReport, tool_figures
from handrail.engine.reading.tool_tally import Outage, ToolFigures
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.run.view import duration_words
from handrail.interfaces.cli.words.all_projects import all_projects_option
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import TimeFormat, utc_option
from handrail.interfaces.pictures.caption import plain


@click.command()
@click.argument("name", required=False, default="")
@click.option("--since", metavar="DURATION", help="Only the last 30m, 12h, 7d ...; default: the whole journal.")
@all_projects_option
@utc_option
@json_option
@click.pass_context
@reports_errors
async def stats(
    ctx: click.Context, name: str, since: str | None, all_projects: bool, is_utc: bool, as_json: bool
) -> None:
    """Show calls, times, failures and retries of each tool, and outages of servers. NAME is a tool or a server."""
    now = system_clock()
    start = max(1, now - duration_ms(since)) if since else 0
    async with open_reader(settings_of(ctx)) as look:
        whole = await tool_figures(look.store, since=start, project=None if all_projects else look.project.id)
    report = only(whole, name) if name else whole
    answer(_as_data(report, now), as_json=as_json, as_text=lambda: _print(report, TimeFormat(now=now, is_utc=is_utc)))
    if name and not report.tools and not report.servers:
        called = sorted({one.tool for one in whole.tools})
        say(f"no calls of {name} recorded; {did_you_mean(name, called)}".rstrip("; "), err=True)


def only(report: ToolReport, name: str) -> ToolReport:
    """The part of a report about one tool, or about all tools of one server."""
    tools = tuple(one for one in report.tools if name in (one.tool, one.tool.partition(".")[0]))
    server = name.partition(".")[0]
    return msgspec.structs.replace(
        report, tools=tools, servers=tuple(one for one in report.servers if one.server in (name, server))
    )


# --- as data ------------------------------------------------------------------------------------------


def _as_data(report: ToolReport, now: int) -> dict[str, Any]:
    servers = [
        {"server": one.server, "outages": [_outage_data(outage, now) for outage in one.outages]}
        for one in report.servers
    ]
    return listing(
        "tools",
        [_figures_data(one) for one in report.tools],
        servers=servers,
        events=report.events,
        is_cut=report.is_cut,
        unread=report.unread,
        unlisted=report.unlisted,
    )


def _figures_data(one: ToolFigures) -> dict[str, Any]:
    data = {
        "tool": one.tool,
        "calls": one.calls,
        "failures": one.failures,
        "retries": one.retries,
        "p50_ms": one.p50_ms,
        "p95_ms": one.p95_ms,
        "p99_ms": one.p99_ms,
        "max_ms": one.max_ms,
        "last": instant_text(one.last) if one.last else None,
        "undo": True if one.is_undo else None,
    }
    return {key: value for key, value in data.items() if value is not None}


def _outage_data(one: Outage, now: int) -> dict[str, Any]:
    data = {
        "opened": instant_text(one.opened),
        "reason": one.reason,
        "failures": one.failures,
        "openings": one.openings,
        "probes": one.probes,
        "lasted_ms": (one.closed or now) - one.opened,
        "closed": instant_text(one.closed) if one.closed else None,
        "until": None if one.closed else instant_text(one.until),
    }
    return {key: value for key, value in data.items() if value is not None}


# --- for people -----------------------------------------------------------------------------------------


CALLS_HEAD: Final = (
    Column("tool"),
    Column("calls"),
    Column("p50", 5),
    Column("p95", 1),
    Column("p99", 4),
    Column("retries", 2),
    Column("last call", 3),
    Column("failures"),
)
OUTAGES_HEAD: Final = (
    Column("server"),
    Column("outage since"),
    Column("lasted", 1),
    Column("openings", 2),
    Column("state"),
    Column("reason"),
)


def _print(report: ToolReport, shown: TimeFormat) -> None:
    calls = [_row(one, shown) for one in report.tools]
    if calls:
        print_table(CALLS_HEAD, calls)
    outages = [_outage_row(one.server, outage, shown) for one in report.servers for outage in one.outages]
    if outages:
        print_table(OUTAGES_HEAD, outages)
    if not calls and not outages:
        say("no calls in that time", err=True)
    for note in _notes(report):
        say(note, err=True)


def _row(one: ToolFigures, shown: TimeFormat) -> tuple[object, ...]:
    failures = ", ".join(f"{count} {category}" for category, count in one.failures.items())
    name = f"{one.tool} (undo)" if one.is_undo else one.tool
    times = [_took(took) for took in (one.p50_ms, one.p95_ms, one.p99_ms)]
    return (plain(name), one.calls, *times, one.retries, shown.at(one.last or "") or "-", failures or "-")


def _took(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds} ms" if milliseconds < 1_000 else duration_words(milliseconds / 1_000)


def _outage_row(server: str, one: Outage, shown: TimeFormat) -> tuple[object, ...]:
    lasted = _took(max(0, (one.closed or shown.now) - one.opened))
    is_open = not one.closed and shown.now < one.until
    state = f"open until {shown.at(one.until)}" if is_open else "closed" if one.closed else "next call tries"
    return (plain(server), shown.at(one.opened), lasted, one.openings, state, plain(one.reason))


def _notes(report: ToolReport) -> Iterator[str]:
    if report.is_cut:
        yield f"only the latest {report.events:,} events were read; choose a shorter time with --since"
    if report.unread:
        yield f"{plural(report.unread, 'event')} could not be read; run `handrail journal verify`"
    if report.unlisted:
        yield f"{plural(report.unlisted, 'call')} of further tools are not listed"
