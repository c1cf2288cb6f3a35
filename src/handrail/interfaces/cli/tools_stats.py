"""`handrail tools stats`: how tools and their servers did, from the journal.

Adding up is the engine's work (engine/tool_figures.py); here it is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import msgspec

from handrail.assembly import reading
from handrail.domain.duration import duration_ms
from handrail.domain.suggestion import did_you_mean
from handrail.engine.clock import instant_text, system_clock
from handrail.engine.tool_figures import Report, tool_figures
from handrail.engine.tool_tally import Outage, ToolFigures
from handrail.interfaces.cli.answer import answer, tell_table
from handrail.interfaces.cli.program import json_option, settings_of, told
from handrail.interfaces.cli.run_view import duration_words
from handrail.interfaces.pictures.caption import plain


@click.command()
@click.argument("name", required=False, default="")
@click.option("--since", metavar="DURATION", help="Only the last 30m, 12h, 7d ...; default: all that is kept.")
@json_option
@click.pass_context
@told
async def stats(ctx: click.Context, name: str, since: str | None, as_json: bool) -> None:
    """Calls, times, failures and retries of each tool, and when servers were left alone. NAME is a tool or a server."""
    now = system_clock()
    begin = max(1, now - duration_ms(since)) if since else 0
    async with reading(settings_of(ctx)) as look:
        whole = await tool_figures(look.store, since=begin)
    report = only(whole, name) if name else whole
    answer(_as_data(report, now), as_json=as_json, words=lambda: _tell(report, now))
    if name and not report.tools and not report.servers:
        called = sorted({one.tool for one in whole.tools})
        click.echo(f"nothing is known of calls of {name}; {did_you_mean(name, called)}".rstrip("; "), err=True)


def only(report: Report, name: str) -> Report:
    """What a report says of one tool, or of all tools of one server."""
    tools = tuple(one for one in report.tools if name in (one.tool, one.tool.partition(".")[0]))
    server = name.partition(".")[0]
    return msgspec.structs.replace(
        report, tools=tools, servers=tuple(one for one in report.servers if one.server in (name, server))
    )


# --- as data ------------------------------------------------------------------------------------------


def _as_data(report: Report, now: int) -> dict[str, Any]:
    return {
        "tools": [_figures_data(one) for one in report.tools],
        "servers": [
            {"server": one.server, "outages": [_outage_data(outage, now) for outage in one.outages]}
            for one in report.servers
        ],
        "events": report.events,
        "is_cut": report.is_cut,
        "unread": report.unread,
        "untold": report.untold,
    }


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


# --- in words -----------------------------------------------------------------------------------------


def _tell(report: Report, now: int) -> None:
    calls = [_row(one) for one in report.tools]
    if calls:
        tell_table(("tool", "calls", "p50", "p95", "p99", "retries", "last call", "failures"), calls)
    outages = [_outage_row(one.server, outage, now) for one in report.servers for outage in one.outages]
    if outages:
        tell_table(("server", "left alone since", "for", "openings", "now", "why"), outages)
    if not calls and not outages:
        click.echo("no tool was called in that time", err=True)
    for note in _notes(report):
        click.echo(note, err=True)


def _row(one: ToolFigures) -> tuple[object, ...]:
    failures = ", ".join(f"{count} {category}" for category, count in one.failures.items())
    name = f"{one.tool} (undo)" if one.is_undo else one.tool
    times = [_took(took) for took in (one.p50_ms, one.p95_ms, one.p99_ms)]
    return (plain(name), one.calls, *times, one.retries, instant_text(one.last) if one.last else "-", failures or "-")


def _took(milliseconds: int | None) -> str:
    if milliseconds is None:
        return "-"
    return f"{milliseconds} ms" if milliseconds < 1_000 else duration_words(milliseconds / 1_000)


def _outage_row(server: str, one: Outage, now: int) -> tuple[object, ...]:
    lasted = _took(max(0, (one.closed or now) - one.opened))
    state = "closed" if one.closed else f"open until {instant_text(one.until)}" if now < one.until else "may be tried"
    return (plain(server), instant_text(one.opened), lasted, one.openings, state, plain(one.reason))


def _notes(report: Report) -> Iterator[str]:
    if report.is_cut:
        yield f"only the latest {report.events:,} events were looked at: --since names a shorter time"
    if report.unread:
        yield f"{report.unread:,} events could not be read: `handrail journal verify` says more"
    if report.untold:
        yield f"{report.untold:,} calls were of more tools than are told apart"
