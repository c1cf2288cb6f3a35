"""`handrail config`: what is configured."""

from __future__ import annotations

import click
import msgspec

from handrail.interfaces.cli.answer import answer, tell_table
from handrail.interfaces.cli.program import json_option, settings_of


@click.group()
def command() -> None:
    """See what is configured."""


@command.command()
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Every setting, its value, and where it comes from."""
    settings = settings_of(ctx)
    values = {"home": str(settings.home), "project": str(settings.project), **msgspec.to_builtins(settings.choices)}
    rows = [{"setting": name, "value": value, "from": settings.origins[name]} for name, value in values.items()]
    answer(
        rows, as_json=as_json, words=lambda: tell_table(("setting", "value", "from"), [list(r.values()) for r in rows])
    )
