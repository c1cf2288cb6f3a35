"""The option `--reason`. A terminal asks for a missing one; scripts must give it, except with `--dry-run`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from handrail.interfaces.cli.words.asking import required_reason


def reason_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add a required `--reason` to a command."""
    text = "Why; kept in the journal. Asked for at a terminal."
    return click.option("--reason", metavar="TEXT", callback=_given_or_asked, help=text)(command)


def _given_or_asked(ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    is_free = ctx.resilient_parsing or ctx.params.get("dry_run")
    return value if is_free else required_reason(value or "")
