"""`handrail serve`: MCP over HTTP, for clients that don't start a server themselves. Prints the URL and the token."""

from __future__ import annotations

from functools import partial
from typing import Final

import click
import msgspec

from handrail.interfaces.cli.execution import Stopped, stoppable
from handrail.interfaces.cli.program import json_option, settings_of, told
from handrail.interfaces.mcp.http.entrance import Doorplate, Wish, serve
from handrail.interfaces.mcp.serving import attended
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
@told
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
    wish = Wish(home=settings.home, host=host, port=port, allowed=allowed, needs_token=not no_token)
    with stoppable() as stop:
        tell = _tell_json if as_json else _tell
        await serve(wish, partial(attended, settings, toolsets), stop=stop, tell=tell)
        if stop.done() and isinstance(stop.exception(), Stopped):
            click.echo("server stopped", err=True)


def _tell(plate: Doorplate) -> None:
    click.echo(f"serving MCP at {plate.url}; Ctrl-C stops it", err=True)
    header = ""
    if plate.token is not None:
        header = f' --header "Authorization: Bearer {plate.token}"'
        click.echo(f"  clients need the token in {plate.token_file}", err=True)
    click.echo(f"  claude mcp add --transport http handrail {plate.url}{header}", err=True)


def _tell_json(plate: Doorplate) -> None:
    """One line: the program that started this reads it while the server runs."""
    known = {"url": plate.url, "token_file": plate.token_file and str(plate.token_file), "token": plate.token}
    click.echo(msgspec.json.encode({name: value for name, value in known.items() if value}).decode())
