"""`handrail logs`: what all processes of this home logged, filtered by run, level and time; and what they log now."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import click
import msgspec

from handrail.domain.definition.duration import duration_ms
from handrail.domain.errors import HandrailError
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.log_lines import LEVELS, LogFilter, follow, latest
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain

COLOUR_OF: Final = {"warning": "yellow", "error": "red", "critical": "red"}
SHOWN: Final = ("run", "step", "attempt", "duration_ms")


def _instant(_: click.Context, __: click.Parameter, text: str | None) -> str:
    """A time as lines have it: RFC 3339 as it is, or so long ago."""
    if not text:
        return ""
    try:
        given = _ago(text) or datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        said = f"{text!r} is neither 30m, 12h, 7d ... nor a time like 2026-11-18T15:04:05Z"
        raise click.BadParameter(said) from error
    # With milliseconds, as lines have it: then the order of texts is the order of times.
    return given.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _ago(text: str) -> datetime | None:
    """The time so long ago; None if it is no duration."""
    try:
        return datetime.now(UTC) - timedelta(milliseconds=duration_ms(text))
    except HandrailError:
        return None


@click.command()
@click.option("--follow", "-f", "follows", is_flag=True, help="Go on with what is logged from now on, until stopped.")
@click.option("--run", default="", help="Only lines about this run.")
@click.option("--level", type=click.Choice(LEVELS), default="debug", help="Only this level and above.")
@click.option("--since", metavar="TIME", callback=_instant, help="Since a time, or the last 30m, 12h, 7d ...")
@click.option("--until", metavar="TIME", callback=_instant, help="Until a time, or so long ago.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=200, show_default=True, help="At most so many lines.")
@json_option
@click.pass_context
@reports_errors
async def command(
    ctx: click.Context, follows: bool, run: str, level: str, since: str, until: str, limit: int, as_json: bool
) -> None:
    """Show what handrail logged here: all processes of this home, oldest line first.

    With --json each line is one JSON object, as it is in the file."""
    wanted = LogFilter(run=run, level=level, since=since, until=until)
    folder = settings_of(ctx).home / "logs"
    for line in latest(folder, wanted, limit=limit):
        _show(line, as_json=as_json)
    if follows:
        with suppress(KeyboardInterrupt):
            for line in follow(folder, wanted):
                _show(line, as_json=as_json)


def _show(line: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        say(msgspec.json.encode(line).decode())
        return
    level = str(line.get("level", ""))
    ids = " ".join(f"{name}={plain(str(line[name]))}" for name in SHOWN if name in line)
    # Lines after the first are indented: a message with a line end can't pass for two lines.
    text = "\n    ".join([str(line.get("message", "")), *str(line.get("trace", "")).splitlines()])
    say(f"{line.get('at', '')} {level:<7} {text}{f'  ({ids})' if ids else ''}", fg=COLOUR_OF.get(level))
