"""`handrail serve`: MCP over HTTP, for clients that don't start a server themselves. Prints its URL and token file.

The token itself is printed only at a terminal: output that goes elsewhere ends up in logs."""

from __future__ import annotations

import shlex
import sys
from functools import partial
from typing import Final

import click
import msgspec

from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.run.execution import Stopped, stoppable
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.mcp.http.http_server import Endpoint, ServeOptions, serve
from handrail.interfaces.mcp.serving import open_server_and_readiness
from handrail.interfaces.mcp.surface.offer import Toolset

TOOLSETS: Final = tuple(one.value for one in Toolset)


def _toolsets(_: click.Context, __: click.Parameter, listed: str | None) -> tuple[str, ...]:
    names = {name.strip() for name in (listed or "").split(",") if name.strip()}
    if unknown := sorted(names - set(TOOLSETS)):
        raise click.BadParameter(f"no such toolset: {', '.join(unknown)}; there are {', '.join(TOOLSETS)}")
    return tuple(name for name in TOOLSETS if not names or name in names)


@click.command()
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65_535), default=7420, show_default=True, help="0: any free port.")
@click.option("--allow-host", "allowed", metavar="NAME", multiple=True, help="Accept this host name, too.")
@click.option(
    "--toolsets",
    metavar="LIST",
    envvar="HANDRAIL_TOOLSETS",
    callback=_toolsets,
    help=f"Which tools to offer: {', '.join(TOOLSETS)}, separated by commas (HANDRAIL_TOOLSETS; default: all).",
)
@click.option("--no-token", is_flag=True, help="Accept requests without a token; only on loopback.")
@json_option
@click.pass_context
@reports_errors
async def command(
    ctx: click.Context,
    host: str,
    port: int,
    allowed: tuple[str, ...],
    toolsets: tuple[str, ...],
    no_token: bool,
    as_json: bool,
) -> None:
    """Serve MCP over HTTP until stopped."""
    settings = settings_of(ctx)
    options = ServeOptions(home=settings.home, host=host, port=port, allowed=allowed, needs_token=not no_token)
    with stoppable() as stop:
        show = _show_json if as_json else _show
        await serve(options, partial(open_server_and_readiness, settings, toolsets), stop=stop, on_ready=show)
        if stop.done() and isinstance(stop.exception(), Stopped):
            say("server stopped", err=True)


def _show(endpoint: Endpoint) -> None:
    say(f"serving MCP at {endpoint.url}; Ctrl-C stops it", err=True)
    header = ""
    if endpoint.token is not None:
        shown = endpoint.token if sys.stderr.isatty() else f"$(cat {shlex.quote(str(endpoint.token_file))})"
        header = f' --header "Authorization: Bearer {shown}"'
        say(f"  clients need the token in {endpoint.token_file}, which only you can read", err=True)
    say(f"  claude mcp add --transport http handrail {endpoint.url}{header}", err=True)


def _show_json(endpoint: Endpoint) -> None:
    """Print one line of JSON: a program that started the server reads it while it runs, and the token from its file."""
    known = {
        "url": endpoint.url,
        "token_file": endpoint.token_file and str(endpoint.token_file),
        "token": endpoint.token if sys.stdout.isatty() else None,
    }
    say(msgspec.json.encode({name: value for name, value in known.items() if value}).decode())
