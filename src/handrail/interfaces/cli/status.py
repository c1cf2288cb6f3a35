"""`handrail status`: how everything is here, on one screen.

Health is what `/healthz` reports, and decides the exit code."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import click
from msgspec import Struct

from handrail.assembly.opening import open_reader
from handrail.assembly.sole_server import running_server
from handrail.domain.errors import Conflict, HandrailError
from handrail.domain.health.check import CheckLevel, HealthCheck, HealthStatus, overall
from handrail.domain.plural import plural
from handrail.domain.run.status import RUN_SHOWN_OPEN
from handrail.engine.reading.run_view import RunSummary, WaitingKind
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.server_health import server_report
from handrail.interfaces.cli.words.table import print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.health.home_checks import clocks, home_health
from handrail.settings import Settings

RUNS_READ: Final = 1_000
COLOUR_OF: Final = {HealthStatus.OK: "green", HealthStatus.DEGRADED: "yellow", HealthStatus.FAILED: "red"}


class HomeStatus(Struct, frozen=True, kw_only=True):
    """How a home is."""

    status: HealthStatus
    server: str
    """The address of the server that runs here; empty if none does."""
    checks: tuple[HealthCheck, ...]
    runs: Mapping[str, int]
    """Open runs of all projects, by shown state; of the latest 1,000."""
    approvals: int
    """How many of them wait for a person's approval."""


@click.command()
@json_option
@click.pass_context
@reports_errors
async def command(ctx: click.Context, as_json: bool) -> None:
    """Show health, open runs and pending approvals of this home. Exit code 1 if something failed."""
    found = await _status(settings_of(ctx))
    answer(found, as_json=as_json, as_text=lambda: _print(found))
    sys.exit(Exit.FAILED if found.status is HealthStatus.FAILED else Exit.OK)


async def _status(settings: Settings) -> HomeStatus:
    started, url = clocks(), _server(settings)
    report = await asyncio.to_thread(server_report, settings.home, url) if url else None
    if isinstance(report, HealthCheck):
        checks: Sequence[HealthCheck] = (report, *await home_health(settings, started=started))
    else:
        checks = report.checks if report is not None else await home_health(settings, started=started)
    runs = await _open_runs(settings)
    approvals = sum(waiting.kind is WaitingKind.APPROVAL for run in runs for waiting in run.waiting_for)
    return HomeStatus(
        status=overall(checks),
        server=url,
        checks=tuple(checks),
        runs=Counter(run.status.value for run in runs),
        approvals=approvals,
    )


def _server(settings: Settings) -> str:
    try:
        running = running_server(settings)
    except Conflict:
        return ""  # it is just starting
    return running.url if running is not None else ""


async def _open_runs(settings: Settings) -> Sequence[RunSummary]:
    """The open runs; none if they can't be read, which the checks say."""
    try:
        async with open_reader(settings) as look:
            return await look.run_reader().runs(status=RUN_SHOWN_OPEN, limit=RUNS_READ, all_projects=True)
    except HandrailError:
        return ()


def _print(found: HomeStatus) -> None:
    server = f"the server at {found.server}" if found.server else "no server runs"
    say(f"{found.status.value}: {server}", fg=COLOUR_OF[found.status])
    print_table(("", "check", "result"), [(one.level.value, one.name, one.message) for one in found.checks])
    states = ", ".join(f"{count} {state}" for state, count in sorted(found.runs.items()))
    approvals = plural(found.approvals, "pending approval") if found.approvals else "no pending approvals"
    say(f"open runs: {states or 'none'}; {approvals}")
    for one in found.checks:
        if one.level is not CheckLevel.OK:
            say(f"{one.level.value}: {one.name}: what to do: {one.fix}", err=True)
