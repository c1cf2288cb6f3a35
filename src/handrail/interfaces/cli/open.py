"""`handrail open`: the console on this project, in a browser; starts the server if none is running."""

from __future__ import annotations

import click

from handrail.assembly.opening import open_reader
from handrail.assembly.sole_server import running_server
from handrail.domain.errors import NotFound
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.serve import PORT, TOOLSETS, serve_here
from handrail.interfaces.cli.words.running_server import open_in
from handrail.interfaces.http.contract.routes import is_page
from handrail.interfaces.web.http_server import ServeOptions
from handrail.settings import Settings


@click.command()
@click.argument("page", default="", metavar="[RUN|PAGE]")
@json_option
@click.pass_context
@reports_errors
async def command(ctx: click.Context, page: str, as_json: bool) -> None:
    """Open the console on this project in a browser; starts the server if none is running, and serves until stopped.

    A server that runs already for another project opens this one, too: one server has the console of all.
    RUN opens the page of a run; PAGE is one as /approvals. The link works once, within two minutes."""
    settings = settings_of(ctx)
    await require_page(settings, page)
    running = running_server(settings)
    if running is None:
        options = ServeOptions(home=settings.home, port=PORT, takes_any=True)
        await serve_here(settings, options, TOOLSETS, opens=True, page=page, as_json=as_json)
        return
    await open_in(settings, running, page=page, as_json=as_json)


async def require_page(settings: Settings, page: str) -> None:
    """Refuse a run or a page that is not there, before a browser shows that."""
    if not page:
        return
    if not page.startswith("/"):
        async with open_reader(settings) as look:
            await look.run_reader().run(page)
    elif not is_page(page):
        raise NotFound(f"there is no page {page!r}", hint="name a run, or a page as /runs, /approvals or /library")
