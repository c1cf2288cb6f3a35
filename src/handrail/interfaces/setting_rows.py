"""The settings in effect, one row each with where it comes from, as every interface lists them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from handrail.domain.trust.reach import UNSET, SettingPath, setting_name
from handrail.foundation.address_text import without_password
from handrail.settings import CONFIG_NAME, PROJECT_FOLDER, Settings


class SettingRow(Struct, frozen=True, kw_only=True):
    """One setting or key of a table."""

    setting: str
    value: Any
    origin: str


def setting_rows(settings: Settings) -> list[SettingRow]:
    """Every setting and every key of a table that counts."""
    values = {"home": str(settings.home), "project": str(settings.project), **msgspec.to_builtins(settings.choices)}
    rows = [
        SettingRow(setting=name, value=_shown(value), origin=settings.origins[name]) for name, value in values.items()
    ]
    return rows + [
        SettingRow(setting=setting_name(path), value=_shown(value), origin=_origin(settings, path, value))
        for path, value in _keys_of(settings.tables)
    ]


def _shown(value: Any) -> Any:
    """A value without passwords: any setting may be an address, or a list of some."""
    if isinstance(value, str):
        return without_password(value)
    return [_shown(one) for one in value] if isinstance(value, list | tuple) else value


def project_file(settings: Settings) -> str:
    """The project's own configuration file."""
    return str(settings.project / PROJECT_FOLDER / CONFIG_NAME)


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
    return project_file(settings)
