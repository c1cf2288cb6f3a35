"""`handrail config`: the settings in effect."""

from __future__ import annotations

import sys
from typing import Any

import click
import msgspec

from handrail.assembly.table_flaws import table_flaws
from handrail.domain.trust.decision import COMMAND, off_words
from handrail.interfaces.cli.program import json_option, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer, listing
from handrail.interfaces.cli.words.excerpt import printable
from handrail.interfaces.cli.words.own_command import localized
from handrail.interfaces.cli.words.table import print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.setting_rows import project_file, setting_rows


def _shown(value: Any) -> Any:
    return value if isinstance(value, str | int) else msgspec.json.encode(value, enc_hook=str).decode()


@click.group()
def command() -> None:
    """Show the settings in effect."""


@command.command()
@json_option
@click.pass_context
def show(ctx: click.Context, as_json: bool) -> None:
    """Show every setting and every key of a table, its value, and where it comes from.

    What loosens a guard in a project's own file is off until a person has trusted it. Exit 5 if a table has a key or a
    value that the part which reads it would refuse."""
    settings = settings_of(ctx)
    rows = [{"setting": one.setting, "value": one.value, "from": one.origin} for one in setting_rows(settings)]
    cells = [(row["setting"], _shown(row["value"]), row["from"]) for row in rows]
    trust = settings.trust
    cells += [
        (one.name, one.text, f"{project_file(settings)}, OFF until trusted") for one in trust.settings if trust.is_off
    ]
    off = list(trust.settings) if trust.is_off else []
    flaws = table_flaws(settings)
    wrong = [{"message": str(flaw), "hint": flaw.hint} for flaw in flaws]
    data = listing("settings", rows, trust=trust.state.value, off=off, wrong=wrong)

    def print_text() -> None:
        print_table(("setting", "value", "from"), cells)
        if trust.is_off:
            say(printable(localized(off_words(trust))), fg="yellow", err=True)
            say(f"  what to do: look at it, then run `{COMMAND}`", err=True)
        for flaw in flaws:
            say(printable(f"invalid: {flaw}"), fg="red", err=True)
            say(printable(f"  what to do: {flaw.hint}"), err=True)

    answer(data, as_json=as_json, as_text=print_text)
    if flaws:
        sys.exit(Exit.INVALID)
