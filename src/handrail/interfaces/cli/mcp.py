"""`handrail mcp` as a click command, for `--help`. Usually `__main__` starts the server without importing click."""

from __future__ import annotations

import sys

import click

from handrail.interfaces.cli.program import settings_of
from handrail.interfaces.mcp.stdio.program import run


@click.command()
@click.option("--toolsets", metavar="LIST", help="guide, run, journal, separated by commas (HANDRAIL_TOOLSETS).")
@click.pass_context
def command(ctx: click.Context, toolsets: str | None) -> None:
    """The MCP server that clients start: it reads stdin, answers on stdout, and ends when stdin does."""
    settings = settings_of(ctx)
    words = ["--home", str(settings.home), "--project", str(settings.project)]
    sys.exit(run([*words, *(["--toolsets", toolsets] if toolsets else [])]))
