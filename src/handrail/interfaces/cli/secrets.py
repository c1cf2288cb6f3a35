"""`handrail secrets`: keep secrets, say which tools plans may give them to, and forget them. Values are never shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from handrail.assembly import secrets_of
from handrail.domain.errors import Invalid
from handrail.domain.scrubbing import is_scrubbed
from handrail.engine.clock import instant_text
from handrail.engine.secrets import SecretCard
from handrail.interfaces.cli.answer import answer, tell_table
from handrail.interfaces.cli.program import json_option, settings_of, told

READ_MAX: Final = 100_000
"""More than any secret may have; how long one may be is told where it is kept."""
HTTP: Final = "http.request"


@click.group()
def command() -> None:
    """Keep secrets for tools: in the platform's keyring, or in a file that only you can read."""


@command.command("set")
@click.argument("name")
@click.option(
    "--for",
    "given_to",
    multiple=True,
    metavar="TOOL",
    help="A tool that plans may give it to: git.push, 'git.*', http.request:api.example.com; instead of those before.",
)
@click.option("--keep", is_flag=True, help="Leave the value as it is, and change only --for.")
@json_option
@click.pass_context
@told
async def set_(ctx: click.Context, name: str, given_to: tuple[str, ...], keep: bool, as_json: bool) -> None:
    """Keep a secret. Its value is typed, unseen, or comes on stdin; it is never an argument, which others could see.

    What you write yourself in tools.json may use every secret; a plan may give it only to tools named with --for."""
    if keep and not given_to:
        raise Invalid("--keep alone changes nothing", hint=f"`handrail secrets set {name} --keep --for TOOL`")
    value = None if keep else _value(name)
    card = secrets_of(settings_of(ctx)).keep(name, value, given_to or None)
    warnings = _warnings(card, value)
    answer(_as_data(card) | {"warnings": warnings}, as_json=as_json, words=lambda: _tell(card, warnings))


@command.command("list")
@json_option
@click.pass_context
@told
async def list_(ctx: click.Context, as_json: bool) -> None:
    """All secrets by name: the tools that plans may give them to, where they are kept, and since when."""
    cards = secrets_of(settings_of(ctx)).cards()

    def words() -> None:
        if not cards:
            click.echo("no secrets; `handrail secrets set NAME` keeps one", err=True)
            return
        rows = [(card.name, card.kept, instant_text(card.set), _tools(card)) for card in cards]
        tell_table(("secret", "kept in", "set", "plans may give it to"), rows)

    answer({"secrets": [_as_data(card) for card in cards]}, as_json=as_json, words=words)


@command.command()
@click.argument("name")
@json_option
@click.pass_context
@told
async def remove(ctx: click.Context, name: str, as_json: bool) -> None:
    """Forget a secret."""
    secrets_of(settings_of(ctx)).remove(name)
    answer({"removed": name}, as_json=as_json, words=lambda: click.echo(f"{name} is removed"))


def _value(name: str) -> str:
    if _is_terminal():
        typed: str = click.prompt(f"Value of {name} (it is not shown)", hide_input=True, err=True)
        return typed
    try:
        text = sys.stdin.read(READ_MAX) if sys.stdin else ""
    except UnicodeDecodeError as error:
        raise Invalid("what came on stdin is not UTF-8 text", hint="set a secret that is text") from error
    text = text.removesuffix("\n")  # the end of the line is no part of it
    if not text:
        hint = f"type it in a terminal: `handrail secrets set {name}`; or send it: `... secrets set {name} < file`"
        raise Invalid("no value came on stdin", hint=hint)
    return text


def _warnings(card: SecretCard, value: str | None) -> list[str]:
    warnings = []
    if value is not None and not is_scrubbed(value):
        warnings.append("the value is so short that handrail can't tell it from ordinary words in what tools say")
    if HTTP in card.given_to:
        warnings.append(f"plans may send it to any host; name one: --for {HTTP}:api.example.com")
    return warnings


def _as_data(card: SecretCard) -> dict[str, Any]:
    return {"name": card.name, "given_to": card.given_to, "kept": card.kept, "set": instant_text(card.set)}


def _tell(card: SecretCard, warnings: Sequence[str]) -> None:
    place = "the platform's keyring" if card.kept == "keyring" else "a file that only you can read"
    click.echo(f"{card.name} is kept in {place}; plans may give it to: {_tools(card)}")
    for warning in warnings:
        click.secho(f"warning: {warning}", fg="yellow", err=True)


def _tools(card: SecretCard) -> str:
    return ", ".join(card.given_to) or "no tool"


def _is_terminal() -> bool:
    return bool(sys.stdin) and sys.stdin.isatty()
