"""`handrail config`: the settings in effect."""

from __future__ import annotations

import click
import msgspec

from handrail.interfaces.cli.program import json_option, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.table import print_table


@click.group()
def command() -> None:
    """Show the settings in effect."""


@command.command()
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Show every setting, its value, and where it comes from."""
    settings = settings_of(ctx)
    values = {"home": str(settings.home), "project": str(settings.project), **msgspec.to_builtins(settings.choices)}
    rows = [{"setting": name, "value": value, "from": settings.origins[name]} for name, value in values.items()]
    cells = [(row["setting"], row["value"], row["from"]) for row in rows]
    data = listing("settings", rows)
    answer(data, as_json=as_json, as_text=lambda: print_table(("setting", "value", "from"), cells))
