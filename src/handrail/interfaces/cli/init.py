"""`handrail init`: add handrail to the settings of the installed clients, or remove it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from handrail.domain.errors import HandrailError, Invalid, NotFound
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import EXIT_OF, answer
from handrail.interfaces.cli.words.terminal_edge import ask_yes, say
from handrail.interfaces.clients.client import CLIENTS, Client, HostPaths, Scope
from handrail.interfaces.clients.enrolment import (
    NONE,
    REMOVED,
    SettingsChange,
    apply_change,
    entry_added,
    entry_removed,
    installed_clients,
)
from handrail.interfaces.clients.launch import NAME, LaunchCommand, own_launch, require_lasting
from handrail.settings import Settings

Place = tuple[Client, Scope]

NAME_RULE: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
COLOUR_OF: Final = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class InitOptions:
    """The options of one call."""

    clients: Sequence[Client]
    """Empty: all that are installed."""
    scope: Scope | None
    name: str
    is_undo: bool


@dataclass(frozen=True, slots=True)
class ClientResult:
    """The result for one client's settings."""

    client: Client
    scope: Scope
    change: SettingsChange | None = None
    error: HandrailError | None = None
    backup: Path | None = None
    is_written: bool = False


@click.command()
@click.option("--client", "names", multiple=True, type=click.Choice(list(CLIENTS)), help="Only this client.")
@click.option("--scope", type=click.Choice([scope.value for scope in Scope]), help="Which settings to change.")
@click.option("--name", default=NAME, show_default=True, help="The server's name in the settings.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--undo", is_flag=True, help="Remove it again.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_context
@reports_errors
async def command(
    ctx: click.Context,
    names: tuple[str, ...],
    scope: str | None,
    name: str,
    dry_run: bool,
    undo: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Add handrail to the settings of the installed clients. Other servers, unknown keys and comments stay; a backup
    is left beside each changed file. Without --scope: the project's settings where a client has them."""
    settings = settings_of(ctx)
    host = host_paths(settings)
    options = InitOptions([CLIENTS[one] for one in names], Scope(scope) if scope else None, _checked(name), undo)
    results = _planned(options, host, settings)
    if not as_json:
        _print_changes(results)
    if not dry_run:
        results = _write_all(results, host, asks=not yes)
    data = {"dry_run": dry_run, "clients": [_result_data(result) for result in results]}
    answer(data, as_json=as_json, as_text=lambda: _print_results(results, is_dry=dry_run))
    _end(results)


def host_paths(settings: Settings) -> HostPaths:
    """Where the user's folders and the project are."""
    return HostPaths(Path.home(), settings.project, os.environ)


def _checked(name: str) -> str:
    if not NAME_RULE.fullmatch(name):
        raise Invalid(f"{name!r} is not a valid server name", hint="use up to 40 letters, digits, - and _")
    return name


def _planned(options: InitOptions, host: HostPaths, settings: Settings) -> list[ClientResult]:
    """The change for each client; an error is part of the result, so that one broken file does not stop the others."""
    if not options.is_undo:
        require_lasting()
    places = _removal_places(options, host) if options.is_undo else _install_places(options, host)
    if not places:
        hint = f"name one with --client: {', '.join(CLIENTS)}"
        raise NotFound("no supported client is installed", hint=hint)
    results = [_result(options, place, host, settings) for place in places]
    if len(results) == 1 and results[0].error:
        raise results[0].error
    if options.is_undo and not options.clients:  # all settings were searched: show only those that have an entry
        return [result for result in results if result.error or _has_change(result)]
    return results


def _removal_places(options: InitOptions, host: HostPaths) -> list[Place]:
    """Removing searches all settings, unless a client or scope is given."""
    clients = options.clients or CLIENTS.values()
    scopes = [options.scope] if options.scope else list(Scope)
    return [(client, scope) for client in clients for scope in scopes if client.files(host, scope)]


def _install_places(options: InitOptions, host: HostPaths) -> list[Place]:
    """The clients that were named; else those that are installed and have this scope."""
    if options.clients:
        return [(client, options.scope or client.scope) for client in options.clients]
    found = [(client, options.scope or client.scope) for client in installed_clients(host)]
    return [(client, scope) for client, scope in found if client.files(host, scope)]


def _result(options: InitOptions, place: Place, host: HostPaths, settings: Settings) -> ClientResult:
    client, scope = place
    try:
        return ClientResult(client, scope, _change(options, place, host, settings))
    except HandrailError as error:
        return ClientResult(client, scope, error=error)


def _change(options: InitOptions, place: Place, host: HostPaths, settings: Settings) -> SettingsChange:
    client, scope = place
    if options.is_undo:
        return entry_removed(client, scope, host, options.name)
    return entry_added(client, scope, host, options.name, _launch(client, scope, settings))


def _launch(client: Client, scope: Scope, settings: Settings) -> LaunchCommand:
    """The command for this client; one that starts servers in another folder needs the project's path."""
    if scope is Scope.PROJECT:
        return own_launch(settings, project=client.project_word)
    is_chosen = settings.origins.get("project") in ("--project", "HANDRAIL_PROJECT")
    return own_launch(settings, project=str(settings.project) if is_chosen else "")


def _has_change(result: ClientResult) -> bool:
    return result.change is not None and result.change.kind != NONE


def _write_all(results: list[ClientResult], host: HostPaths, *, asks: bool) -> list[ClientResult]:
    if not any(map(_has_change, results)) or (asks and not _is_confirmed()):
        return results
    return [_written(result, host) for result in results]


def _is_confirmed() -> bool:
    """Ask a person at a terminal; scripts are not asked, they can use --dry-run first."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    return ask_yes("Write this?")


def _written(result: ClientResult, host: HostPaths) -> ClientResult:
    if result.change is None or result.change.kind == NONE:
        return result
    try:
        backup = apply_change(result.change, host)
    except HandrailError as error:
        return ClientResult(result.client, result.scope, result.change, error)
    return ClientResult(result.client, result.scope, result.change, backup=backup, is_written=True)


def _result_data(result: ClientResult) -> Mapping[str, Any]:
    change, error = result.change, result.error
    data: dict[str, Any] = {"client": result.client.name, "scope": result.scope.value, "written": result.is_written}
    if change is not None:
        data |= {"file": str(change.file.path), "change": change.kind, "diff": change.diff}
    if result.backup is not None:
        data["backup"] = str(result.backup)
    if error is not None:
        data["error"] = {"code": error.code, "name": error.name, "message": str(error), "hint": error.hint}
    return data


def _print_changes(results: Sequence[ClientResult]) -> None:
    """Print every change as a diff."""
    for change in (result.change for result in results if result.change):
        for line in change.diff.splitlines():
            say(line, fg=COLOUR_OF.get(line[:1]))


def _print_results(results: Sequence[ClientResult], *, is_dry: bool) -> None:
    """Print the result for each client, and what to do next."""
    if not results:
        say("no client's settings contain it: nothing to remove", err=True)
    for result in results:
        title = f"{result.client.title} ({result.scope.value})"
        if result.error:
            say(f"{title}: {result.error.name}: {result.error}", fg="red", err=True)
            say(f"  what to do: {result.error.hint}", err=True)
        elif result.change:
            say(f"{title}: {_summary(result, result.change, is_dry=is_dry)}", err=True)


def _summary(result: ClientResult, change: SettingsChange, *, is_dry: bool) -> str:
    if change.kind == NONE:
        return f"nothing to change in {change.file.path}"
    if not result.is_written:
        return f"would be {change.kind}" if is_dry else "not changed"
    backup = f"; backup: {result.backup}" if result.backup else ""
    following = "" if change.kind == REMOVED else f". Next: {result.client.next}"
    return f"{change.kind} in {change.file.shown}{backup}{following}"


def _end(results: Sequence[ClientResult]) -> None:
    """Exit with the code of the first error, if there is one."""
    for error in (result.error for result in results if result.error):
        sys.exit(next(code for kind, code in EXIT_OF if isinstance(error, kind)))
