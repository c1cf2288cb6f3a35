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
from handrail.interfaces.cli.answer import EXIT_OF, answer
from handrail.interfaces.cli.program import json_option, settings_of, told
from handrail.interfaces.clients.client import CLIENTS, Client, Ground, Scope
from handrail.interfaces.clients.enrolment import NONE, REMOVED, Change, carry_out, found_clients, joined, left
from handrail.interfaces.clients.launch import NAME, Launch, own_launch
from handrail.settings import Settings

Place = tuple[Client, Scope]

NAME_RULE: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
COLOUR_OF: Final = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks for."""

    clients: Sequence[Client]
    """Empty: all that are installed."""
    scope: Scope | None
    name: str
    is_undo: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result for one client's settings."""

    client: Client
    scope: Scope
    change: Change | None = None
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
@told
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
    ground = ground_of(settings)
    wish = Wish([CLIENTS[one] for one in names], Scope(scope) if scope else None, _checked(name), undo)
    outcomes = _looked_at(wish, ground, settings)
    if not as_json:
        _tell_changes(outcomes)
    if not dry_run:
        outcomes = _carried_out(outcomes, ground, asks=not yes)
    data = {"dry_run": dry_run, "clients": [_as_data(outcome) for outcome in outcomes]}
    answer(data, as_json=as_json, words=lambda: _tell_outcomes(outcomes, is_dry=dry_run))
    _end(outcomes)


def ground_of(settings: Settings) -> Ground:
    """Where the user's folders and the project are."""
    return Ground(Path.home(), settings.project, os.environ)


def _checked(name: str) -> str:
    if not NAME_RULE.fullmatch(name):
        raise Invalid(f"{name!r} is not a valid server name", hint="use up to 40 letters, digits, - and _")
    return name


def _looked_at(wish: Wish, ground: Ground, settings: Settings) -> list[Outcome]:
    """What would change, client by client; errors are part of the result."""
    places = _everywhere(wish, ground) if wish.is_undo else _here(wish, ground)
    if not places:
        hint = f"name one with --client: {', '.join(CLIENTS)}"
        raise NotFound("no supported client is installed", hint=hint)
    outcomes = [_outcome(wish, place, ground, settings) for place in places]
    if len(outcomes) == 1 and outcomes[0].error:
        raise outcomes[0].error
    if wish.is_undo and not wish.clients:  # it looked everywhere: show only where it found something
        return [outcome for outcome in outcomes if outcome.error or _has_work(outcome)]
    return outcomes


def _everywhere(wish: Wish, ground: Ground) -> list[Place]:
    """Removing looks into all settings, unless a client or scope is given."""
    clients = wish.clients or CLIENTS.values()
    scopes = [wish.scope] if wish.scope else list(Scope)
    return [(client, scope) for client in clients for scope in scopes if client.files(ground, scope)]


def _here(wish: Wish, ground: Ground) -> list[Place]:
    """The clients that were named; else those that are installed and have this scope."""
    if wish.clients:
        return [(client, wish.scope or client.scope) for client in wish.clients]
    found = [(client, wish.scope or client.scope) for client in found_clients(ground)]
    return [(client, scope) for client, scope in found if client.files(ground, scope)]


def _outcome(wish: Wish, place: Place, ground: Ground, settings: Settings) -> Outcome:
    client, scope = place
    try:
        return Outcome(client, scope, _change(wish, place, ground, settings))
    except HandrailError as error:
        return Outcome(client, scope, error=error)


def _change(wish: Wish, place: Place, ground: Ground, settings: Settings) -> Change:
    client, scope = place
    if wish.is_undo:
        return left(client, scope, ground, wish.name)
    return joined(client, scope, ground, wish.name, _launch(client, scope, settings))


def _launch(client: Client, scope: Scope, settings: Settings) -> Launch:
    """What this client starts; a client that starts servers elsewhere needs the project's folder."""
    if scope is Scope.PROJECT:
        return own_launch(settings, project=client.project_word)
    is_chosen = settings.origins.get("project") in ("--project", "HANDRAIL_PROJECT")
    return own_launch(settings, project=str(settings.project) if is_chosen else "")


def _has_work(outcome: Outcome) -> bool:
    return outcome.change is not None and outcome.change.kind != NONE


def _carried_out(outcomes: list[Outcome], ground: Ground, *, asks: bool) -> list[Outcome]:
    if not any(map(_has_work, outcomes)) or (asks and not _is_agreed()):
        return outcomes
    return [_written(outcome, ground) for outcome in outcomes]


def _is_agreed() -> bool:
    """A person at a terminal is asked; a script is not: it has --dry-run."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return True
    return click.confirm("Write this?", err=True)


def _written(outcome: Outcome, ground: Ground) -> Outcome:
    if outcome.change is None or outcome.change.kind == NONE:
        return outcome
    try:
        backup = carry_out(outcome.change, ground)
    except HandrailError as error:
        return Outcome(outcome.client, outcome.scope, outcome.change, error)
    return Outcome(outcome.client, outcome.scope, outcome.change, backup=backup, is_written=True)


def _as_data(outcome: Outcome) -> Mapping[str, Any]:
    change, error = outcome.change, outcome.error
    data: dict[str, Any] = {"client": outcome.client.name, "scope": outcome.scope.value, "written": outcome.is_written}
    if change is not None:
        data |= {"file": str(change.file.path), "change": change.kind, "diff": change.diff}
    if outcome.backup is not None:
        data["backup"] = str(outcome.backup)
    if error is not None:
        data["error"] = {"code": error.code, "name": error.name, "message": str(error), "hint": error.hint}
    return data


def _tell_changes(outcomes: Sequence[Outcome]) -> None:
    """Every change as a diff."""
    for change in (outcome.change for outcome in outcomes if outcome.change):
        for line in change.diff.splitlines():
            click.secho(line, fg=COLOUR_OF.get(line[:1]))


def _tell_outcomes(outcomes: Sequence[Outcome], *, is_dry: bool) -> None:
    """The result for each client, and what to do next."""
    if not outcomes:
        click.echo("no client's settings contain it: nothing to remove", err=True)
    for outcome in outcomes:
        title = f"{outcome.client.title} ({outcome.scope.value})"
        if outcome.error:
            click.secho(f"{title}: {outcome.error.name}: {outcome.error}", fg="red", err=True)
            click.echo(f"  what to do: {outcome.error.hint}", err=True)
        elif outcome.change:
            click.echo(f"{title}: {_words_of(outcome, outcome.change, is_dry=is_dry)}", err=True)


def _words_of(outcome: Outcome, change: Change, *, is_dry: bool) -> str:
    if change.kind == NONE:
        return f"nothing to change in {change.file.path}"
    if not outcome.is_written:
        return f"would be {change.kind}" if is_dry else "not changed"
    backup = f"; backup: {outcome.backup}" if outcome.backup else ""
    following = "" if change.kind == REMOVED else f". Next: {outcome.client.next}"
    return f"{change.kind} in {change.file.path}{backup}{following}"


def _end(outcomes: Sequence[Outcome]) -> None:
    """With the exit code of the first error."""
    for error in (outcome.error for outcome in outcomes if outcome.error):
        sys.exit(next(code for kind, code in EXIT_OF if isinstance(error, kind)))
