"""`--reason`: why something is asked of a run or a plan. At a terminal it is asked for; scripts have to give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from handrail.interfaces.cli.asking import can_ask


def reason_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a `--reason` that it always gets."""
    text = "Why; kept in the journal. Asked for at a terminal."
    return click.option("--reason", metavar="TEXT", callback=_given_or_asked, help=text)(command)


def _given_or_asked(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None or ctx.resilient_parsing:
        return value
    if not can_ask():
        why = "It is kept in the journal, and there is no terminal to ask for it."
        raise click.MissingParameter(why, ctx, parameter)
    return str(click.prompt("Reason", err=True))
