"""`handrail doctor`: start the server as each client would, check everything it needs, and say how to fix it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from handrail.assembly.sole_server import running_server
from handrail.domain.errors import Conflict
from handrail.domain.health.check import CheckLevel, HealthCheck, fail
from handrail.interfaces.cli.init import host_paths
from handrail.interfaces.cli.program import flaw_of, json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.server_health import server_health
from handrail.interfaces.cli.words.table import print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.clients.client import CLIENTS, Client, HostPaths
from handrail.interfaces.clients.configured import ConfiguredEntry, configured, host_environment
from handrail.interfaces.clients.launch import LaunchCommand, is_own, own_launch
from handrail.interfaces.clients.server_checks import Server, check_server, entry_checks, may_start, name_of
from handrail.interfaces.health.home_checks import clocks, home_checks
from handrail.settings import Settings

THIS: Final = "this handrail"
PROJECT_VARIABLE: Final = "HANDRAIL_PROJECT"
COLOUR_OF: Final = {CheckLevel.OK: "green", CheckLevel.WARN: "yellow", CheckLevel.FAIL: "red"}


@click.command()
@click.option(
    "--client",
    "names",
    multiple=True,
    type=click.Choice(list(CLIENTS)),
    help="Only this client.",
)
@json_option
@click.pass_context
@reports_errors
async def command(ctx: click.Context, names: tuple[str, ...], as_json: bool) -> None:
    """Start the server as each configured client would, then check store, keys, clock, disk, tools and sandbox.

    If `handrail serve` runs, what it reports of itself is shown, too. Says what is wrong and how to fix it.
    Exit code 1 if anything fails."""
    settings = settings_of(ctx)
    started = clocks()
    clients = [CLIENTS[name] for name in names] or list(CLIENTS.values())
    servers, checks = await _servers_of(clients, settings)
    if (flaw := flaw_of(ctx)) is not None:
        checks.append(fail("project settings", f"{flaw}; everything else was checked without them", flaw.hint))
    checks += [check async for check in home_checks(settings, started=started)]
    checks += await _running(settings)
    is_ok = not any(check.level is CheckLevel.FAIL for check in checks)
    data = {"ok": is_ok, "servers": [_as_data(server) for server in servers], "checks": checks}
    answer(data, as_json=as_json, as_text=lambda: _print(checks))
    sys.exit(Exit.OK if is_ok else Exit.FAILED)


async def _running(settings: Settings) -> list[HealthCheck]:
    """How the server of this home is, if one runs."""
    try:
        running = running_server(settings)
    except Conflict:
        return []  # it is just starting
    return await asyncio.to_thread(server_health, settings.home, running.url) if running is not None else []


async def _servers_of(clients: Sequence[Client], settings: Settings) -> tuple[list[Server], list[HealthCheck]]:
    """The servers configured in these clients, and their checks."""
    host = host_paths(settings)
    entries = configured(clients, host)
    servers = await _servers(entries, settings, host)
    checks = [check for entry in entries for check in entry_checks(entry, settings.home)]
    return servers, checks + [check for server in servers for check in server.checks]


async def _servers(entries: Sequence[ConfiguredEntry], settings: Settings, host: HostPaths) -> list[Server]:
    """Start all configured servers, one after the other; if there are none, this handrail."""
    environment = host_environment(host)
    usable = [entry for entry in entries if not entry.is_off and may_start(entry, settings.home)]
    startable = [(name_of(entry), _outside(entry.launch, settings)) for entry in usable if entry.launch]
    if not startable:
        startable = [(THIS, replace(own_launch(settings), cwd=str(settings.project)))]
    return [await check_server(name, launch, environment) for name, launch in startable]


def _outside(launch: LaunchCommand, settings: Settings) -> LaunchCommand:
    """How an entry is started here. `python -m handrail` or `npx` in a project would run what a stranger put there, so
    only this handrail itself is started in it; any other learns from a variable which project is meant."""
    is_inside = Path(os.path.realpath(launch.cwd)).is_relative_to(os.path.realpath(settings.project))
    if not is_inside or is_own(launch, settings.home):
        return launch
    return replace(launch, cwd=settings.home.anchor, env={PROJECT_VARIABLE: str(settings.project), **launch.env})


def _as_data(server: Server) -> dict[str, Any]:
    launch = server.launch
    return {
        "name": server.name,
        "command": [launch.command, *launch.args],
        "env": sorted(launch.env),
        "eras": {era: msgspec.to_builtins(one) for era, one in server.answers.items()},
    }


def _print(checks: Sequence[HealthCheck]) -> None:
    print_table(("", "check", "result"), [(check.level.value, check.name, check.message) for check in checks])
    wrong = [check for check in checks if check.level is not CheckLevel.OK]
    for check in wrong:
        say(f"{check.level.value}: {check.name}: {check.message}", fg=COLOUR_OF[check.level], err=True)
        say(f"  what to do: {check.fix}", err=True)
    if not wrong:
        say("all checks passed", fg="green", err=True)
