"""Reads, adds, changes and removes one server's entry in the text of a client's settings.

Pure. Every change is verified: the new text must parse to the old data plus the entry. Otherwise it is refused, so that
no setting of the user is ever lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

from handrail.domain.errors import Conflict, HandrailError, Invalid
from handrail.interfaces.clients import jsonc_text, yaml_text
from handrail.interfaces.clients.client import Client, Format
from handrail.interfaces.clients.launch import LaunchCommand, merged_args

COMMAND_KEYS: Final = ("command", "cmd")
ENV_KEYS: Final = ("env", "environment", "envs")
OWN_KEYS: Final = ("type", "args", *COMMAND_KEYS, *ENV_KEYS)
"""The keys that handrail changes in an existing entry; all others stay as the user wrote them."""


@dataclass(frozen=True, slots=True)
class Syntax:
    """How one format is read and changed."""

    read: Callable[[str], dict[str, Any]]
    put: Callable[[str, Sequence[str], Any], str]
    drop: Callable[[str, Sequence[str]], str]


def syntax_of(client: Client) -> Syntax:
    """How a client's settings are read and changed."""
    match client.format:
        case Format.JSON:
            return Syntax(jsonc_text.read, jsonc_text.put, jsonc_text.drop)
        case Format.YAML:
            return Syntax(yaml_text.read, yaml_text.put, yaml_text.drop)
        case Format.TOML:
            # Late, because tomlkit takes 26 ms to import and only one client needs it.
            from handrail.interfaces.clients import toml_text

            return Syntax(toml_text.read, toml_text.put, toml_text.drop)


def entries(client: Client, text: str) -> dict[str, Any]:
    """All servers in a client's settings."""
    found = syntax_of(client).read(text).get(client.key)
    return found if isinstance(found, dict) else {}


def put(client: Client, text: str, name: str, entry: Mapping[str, Any]) -> str:
    """The settings with a new entry, not verified."""
    return syntax_of(client).put(text, (client.key, name), dict(entry))


def with_entry(client: Client, text: str, name: str, launch: LaunchCommand) -> str:
    """The settings with our entry; the same text if it is up to date."""
    syntax = syntax_of(client)
    before = syntax.read(text)
    existing = entries(client, text).get(name)
    wanted = _wanted(client, name, existing, launch)
    if wanted == existing:
        return text
    after = text
    for path, value in _steps(existing, wanted):
        after = syntax.put(after, (client.key, name, *path), value)
    expected = deepcopy(before)
    expected[client.key] = {**(expected.get(client.key) or {}), name: wanted}
    _require(syntax, after, expected, hint=f"add it by hand, under `{client.key}`: {json.dumps({name: wanted})}")
    return after


def without_entry(client: Client, text: str, name: str) -> str:
    """The settings without the entry; the same text if it is not there."""
    syntax = syntax_of(client)
    if name not in entries(client, text):
        return text
    after = syntax.drop(text, (client.key, name))
    expected = deepcopy(syntax.read(text))
    del expected[client.key][name]
    _require(syntax, after, expected, hint=f"remove `{name}` under `{client.key}` by hand")
    return after


def launch_of(entry: Any) -> LaunchCommand | None:
    """How a client starts the server of an entry; None if it has no command."""
    if not isinstance(entry, dict):
        return None
    command, env = _first(entry, COMMAND_KEYS), _first(entry, ENV_KEYS)
    words = [*_listed(command), *_listed(entry.get("args"))]
    if not command or not words:
        return None
    values = {str(name): str(value) for name, value in env.items()} if isinstance(env, dict) else {}
    return LaunchCommand(words[0], tuple(words[1:]), values, str(entry.get("cwd") or ""))


def _first(entry: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((entry[key] for key in keys if entry.get(key)), None)


def _listed(value: Any) -> list[str]:
    """A string or a list, as a list of strings."""
    words = value if isinstance(value, list) else [value] if isinstance(value, str) else []
    return [str(word) for word in words]


def is_off(entry: Mapping[str, Any]) -> bool:
    """Whether the user turned the server off."""
    return entry.get("enabled") is False or entry.get("disabled") is True


def _wanted(client: Client, name: str, existing: Any, launch: LaunchCommand) -> dict[str, Any]:
    if existing is None:
        return client.shape(name, launch)
    known = launch_of(existing)
    if known is None:
        raise Conflict(
            f"there is already an entry `{name}`, which has no command",
            hint="use another --name, or remove that entry by hand",
        )
    words = merged_args((known.command, *known.args), (launch.command, *launch.args))
    env = {**known.env, **launch.env}
    shaped = client.shape(name, LaunchCommand(words[0], tuple(words[1:]), env))
    ours = {key: value for key, value in shaped.items() if key in OWN_KEYS and (value != {} or key in existing)}
    return {**existing, **ours}


def _steps(existing: Any, wanted: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The smallest changes from one entry to the other; values are added or changed, never removed."""
    if existing is None:
        yield (), dict(wanted)
        return
    for key, value in wanted.items():
        known = existing.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            yield from (((key, name), part) for name, part in value.items() if known.get(name) != part)
        elif value != known:
            yield (key,), value


def _require(syntax: Syntax, text: str, expected: Mapping[str, Any], *, hint: str) -> None:
    message = "this file can't be changed safely"
    try:
        found = syntax.read(text)
    except HandrailError as error:
        raise Invalid(message, hint=hint) from error
    # A missing key and an empty one are the same: TOML keeps no empty tables.
    if {key: value for key, value in found.items() if value != {}} != {
        key: value for key, value in expected.items() if value != {}
    }:
        raise Invalid(message, hint=hint)
