"""`handrail serve`: MCP, the API and the console on one port. Prints its address, and how to connect.

Secrets are printed only at a terminal: output that goes elsewhere ends up in logs. One server serves a home; a second
start says where the first one is, and with --open opens its project there (words/running_server.py)."""

from __future__ import annotations

import shlex
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import click
import msgspec
from click.core import ParameterSource

from handrail.assembly.backups.schedule import keeping_schedule
from handrail.assembly.notify.keeping import keeping_notices
from handrail.assembly.retention.schedule import keeping_retention
from handrail.assembly.sole_server import Announce, running_server, sole_server
from handrail.engine.clock import system_clock
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.run.execution import Stopped, stoppable
from handrail.interfaces.cli.words.browser import show_in_browser, to_page
from handrail.interfaces.cli.words.own_command import own_command
from handrail.interfaces.cli.words.running_server import show_running
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.health.health_part import HealthPart
from handrail.interfaces.health.live_checks import ProgramHealth
from handrail.interfaces.http.api.call import Connected
from handrail.interfaces.http.opening import OpenedConsole, Programs, open_console
from handrail.interfaces.mcp.http.app import MCP_PATH, McpPart
from handrail.interfaces.mcp.serving import open_server_and_program
from handrail.interfaces.mcp.surface.offer import Toolset
from handrail.interfaces.metrics.metrics_part import MetricsPart, metrics_guard
from handrail.interfaces.metrics.process_figures import ProcessFigures
from handrail.interfaces.metrics.store_gauges import ServerCounts
from handrail.interfaces.web.http_server import Endpoint, ServeOptions, serve
from handrail.interfaces.web.limits import HttpLimits
from handrail.interfaces.web.site import Ready, SitePart
from handrail.settings import Settings

TOOLSETS: Final = tuple(one.value for one in Toolset)
PORT: Final = 7420


def _toolsets(_: click.Context, __: click.Parameter, listed: str | None) -> tuple[str, ...]:
    names = {name.strip() for name in (listed or "").split(",") if name.strip()}
    if unknown := sorted(names - set(TOOLSETS)):
        raise click.BadParameter(f"no such toolset: {', '.join(unknown)}; there are {', '.join(TOOLSETS)}")
    return tuple(name for name in TOOLSETS if not names or name in names)


@click.command()
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    help=f"0: any free port. Default: {PORT}, or any free port if that is in use.",
)
@click.option("--allow-host", "allowed", metavar="NAME", multiple=True, help="Accept this host name, too.")
@click.option(
    "--toolsets",
    metavar="LIST",
    envvar="HANDRAIL_TOOLSETS",
    callback=_toolsets,
    help=f"Which tools to offer: {', '.join(TOOLSETS)}, separated by commas (HANDRAIL_TOOLSETS; default: all).",
)
@click.option("--no-token", is_flag=True, help="Accept MCP requests without a token; only on loopback.")
@click.option("--open", "opens", is_flag=True, help="Open the console in a browser.")
@json_option
@click.pass_context
@reports_errors
async def command(
    ctx: click.Context,
    host: str,
    port: int | None,
    allowed: tuple[str, ...],
    toolsets: tuple[str, ...],
    no_token: bool,
    opens: bool,
    as_json: bool,
) -> None:
    """Serve MCP, the API and the console over HTTP until stopped.

    The console and the API are only on loopback, for the user who started the server."""
    settings = settings_of(ctx)
    options = ServeOptions(
        home=settings.home,
        host=host,
        port=PORT if port is None else port,
        allowed=allowed,
        needs_token=not no_token,
        takes_any=port is None,
    )
    if (running := running_server(settings)) is not None:
        await show_running(settings, running, unused=_unused(ctx), opens=opens, as_json=as_json)
        return
    await serve_here(settings, options, toolsets, opens=opens, as_json=as_json)


def _unused(ctx: click.Context) -> list[str]:
    """The options that were given, and that only a server which starts can use."""
    of_a_start = [one for one in ctx.command.params if one.name in {"host", "port", "allowed", "toolsets", "no_token"}]
    return [one.opts[0] for one in of_a_start if ctx.get_parameter_source(str(one.name)) is ParameterSource.COMMANDLINE]


async def serve_here(
    settings: Settings, options: ServeOptions, toolsets: Sequence[str], *, opens: bool, page: str = "", as_json: bool
) -> None:
    """Serve until stopped; with `opens`, the console is opened on a page."""
    with sole_server(settings) as announce, stoppable() as stop:
        serving = Serving(settings, toolsets, announce, opens=opens, page=page, as_json=as_json)
        async with keeping_schedule(settings), keeping_retention(settings), keeping_notices(settings):
            await serve(options, serving.parts, stop=stop, on_ready=serving.show, answered=serving.process.answered)
        if stop.done() and isinstance(stop.exception(), Stopped):
            say("server stopped", err=True)


@dataclass
class Serving:
    """A server that starts, and what it says when it has."""

    settings: Settings
    toolsets: Sequence[str]
    announce: Announce
    opens: bool = field(default=False, kw_only=True)
    page: str = field(default="", kw_only=True)
    as_json: bool = field(default=False, kw_only=True)
    console: OpenedConsole | None = None
    process: ProcessFigures = field(default_factory=ProcessFigures)

    @asynccontextmanager
    async def parts(self, endpoint: Endpoint, limits: HttpLimits) -> AsyncIterator[tuple[Sequence[SitePart], Ready]]:
        """MCP; and on loopback the API and the console."""
        process = self.process
        async with open_server_and_program(
            self.settings, self.toolsets, measures=process, called=process.called
        ) as opened:
            mcp = McpPart(opened.server, guard=endpoint.guard, limits=limits)
            health = ProgramHealth(self.settings, opened.open_program, opened.opened)
            # First: the site itself has a plainer answer for the same path, after those of all parts.
            guards = [endpoint.guard, metrics_guard(endpoint.guard, self.settings.home)]
            counts = ServerCounts(self._readers, lambda: len(mcp.sessions.book))
            parts: list[SitePart] = [
                HealthPart(health.report, guards),
                MetricsPart(
                    opened.open_program,
                    opened.opened,
                    report=health.report,
                    process=process,
                    guards=guards,
                    counts=counts,
                ),
                mcp,
            ]
            if endpoint.is_loopback:
                programs = Programs(opened.open_program, opened.open_other)
                self.console = open_console(self.settings, endpoint, limits, programs, lambda: _connected(mcp))
                parts += [self.console.api, self.console.console]
            yield parts, opened.ready

    def _readers(self) -> int:
        return self.console.api.server.feed.readers if self.console is not None else 0

    def show(self, endpoint: Endpoint) -> None:
        """Say where the server is, and how to connect."""
        self.be_found(endpoint)
        if self.as_json:
            say(msgspec.json.encode(_data(endpoint, has_console=self.console is not None)).decode())
        else:
            self._print(endpoint)
        if self.console is not None and self.opens:
            show_in_browser(to_page(self.console.link(), self.page))

    def be_found(self, endpoint: Endpoint) -> None:
        """Let other processes of this home find the server and its console."""
        self.announce(endpoint.url, endpoint.url if self.console is not None else "")

    def _print(self, endpoint: Endpoint) -> None:
        say(f"serving MCP at {endpoint.url}{MCP_PATH}; Ctrl-C stops it", err=True)
        header = ""
        if endpoint.guard.token is not None:
            is_shown = sys.stderr.isatty()
            shown = endpoint.guard.token if is_shown else f"$(cat {shlex.quote(str(endpoint.token_file))})"
            header = f' --header "Authorization: Bearer {shown}"'
            say(f"  clients need the token in {endpoint.token_file}, which only you can read", err=True)
        say(f"  claude mcp add --transport http handrail {endpoint.url}{MCP_PATH}{header}", err=True)
        if self.console is not None and not self.opens:
            link = self.console.link() if sys.stderr.isatty() else f"{endpoint.url}/ (`{own_command('open')}` opens it)"
            say(f"the console is at {link}", err=True)


def _connected(mcp: McpPart) -> list[Connected]:
    now = system_clock()
    return [Connected(name=name, heard=now - int(ago * 1_000)) for name, ago in mcp.clients()]


def _data(endpoint: Endpoint, *, has_console: bool) -> dict[str, Any]:
    """One line of JSON: a program that started the server reads it while it runs, and the token from its file."""
    known = {
        "url": endpoint.url + MCP_PATH,
        "token_file": endpoint.token_file and str(endpoint.token_file),
        "token": endpoint.guard.token if sys.stdout.isatty() else None,
        "console": f"{endpoint.url}/" if has_console else None,
    }
    return {name: value for name, value in known.items() if value}
