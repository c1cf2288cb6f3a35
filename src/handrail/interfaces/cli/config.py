"""`handrail config`: the settings in effect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click
import msgspec

from handrail.domain.trust.decision import COMMAND, off_words
from handrail.domain.trust.reach import UNSET, SettingPath, setting_name
from handrail.interfaces.cli.program import json_option, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.excerpt import printable
from handrail.interfaces.cli.words.table import print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.settings import CONFIG_NAME, PROJECT_FOLDER, Settings


def _keys_of(table: Mapping[str, Any], above: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """Every key of the tables, with its value."""
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _keys_of(value, (*above, name))
        else:
            yield (*above, name), value


def _origin(settings: Settings, path: SettingPath, value: Any) -> str:
    """The file that a key of a table comes from: the home's, unless only the project's has this value."""
    if dict(_keys_of(settings.home_tables)).get(path, UNSET) == value:
        return str(settings.home / CONFIG_NAME)
    return _project_file(settings)


def _project_file(settings: Settings) -> str:
    return str(settings.project / PROJECT_FOLDER / CONFIG_NAME)


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

    What loosens a guard in a project's own file is off until a person has trusted it."""
    settings = settings_of(ctx)
    values = {"home": str(settings.home), "project": str(settings.project), **msgspec.to_builtins(settings.choices)}
    rows = [{"setting": name, "value": value, "from": settings.origins[name]} for name, value in values.items()]
    rows += [
        {"setting": setting_name(path), "value": value, "from": _origin(settings, path, value)}
        for path, value in _keys_of(settings.tables)
    ]
    cells = [(row["setting"], _shown(row["value"]), row["from"]) for row in rows]
    trust = settings.trust
    cells += [
        (one.name, one.text, f"{_project_file(settings)}, OFF until trusted") for one in trust.settings if trust.is_off
    ]
    off = list(trust.settings) if trust.is_off else []
    data = listing("settings", rows, trust=trust.state.value, off=off)

    def print_text() -> None:
        print_table(("setting", "value", "from"), cells)
        if trust.is_off:
            say(printable(off_words(trust)), fg="yellow", err=True)
            say(f"  what to do: look at it, then run `{COMMAND}`", err=True)

    answer(data, as_json=as_json, as_text=print_text)
