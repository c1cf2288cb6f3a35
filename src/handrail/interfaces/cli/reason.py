"""`--reason`: why something is asked of a run or a plan. At a terminal it is asked for; scripts have to give it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from handrail.interfaces.cli.asking import required_reason


def reason_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command a `--reason` that it always gets."""
    text = "Why; kept in the journal. Asked for at a terminal."
    return click.option("--reason", metavar="TEXT", callback=_given_or_asked, help=text)(command)


def _given_or_asked(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    return value if ctx.resilient_parsing else required_reason(value or "")
