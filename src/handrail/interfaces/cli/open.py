"""`handrail open`: the console in a browser; starts the server if none is running."""

from __future__ import annotations

import asyncio

import click
import msgspec

from handrail.assembly.sole_server import running_server
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.serve import PORT, TOOLSETS, serve_here
from handrail.interfaces.cli.words.browser import fresh_link, show_in_browser
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.web.http_server import ServeOptions


@click.command()
@click.argument("page", default="", metavar="[RUN|PAGE]")
@json_option
@click.pass_context
@reports_errors
async def command(ctx: click.Context, page: str, as_json: bool) -> None:
    """Open the console in a browser; starts the server if none is running, and serves until stopped.

    RUN opens the page of a run; PAGE is one as /approvals. The link works once, within two minutes."""
    settings = settings_of(ctx)
    running = running_server(settings)
    if running is None:
        options = ServeOptions(home=settings.home, port=PORT, takes_any=True)
        await serve_here(settings, options, TOOLSETS, opens=True, as_json=as_json)
        return
    link = await asyncio.to_thread(fresh_link, settings.home, running.url)
    if page:
        link += f"&to={page if page.startswith('/') else f'/runs/{page}'}"
    if as_json:
        say(msgspec.json.encode({"url": link}).decode())
    else:
        show_in_browser(link)
