"""`handrail secrets`: store secrets, allow tools to get them from plans, remove them. Values are never shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from handrail.assembly.secrets import secrets_of
from handrail.domain.errors import Invalid
from handrail.domain.instant import instant_text
from handrail.engine.secrets import SecretCard
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.own_command import advise
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import ask_text, say
from handrail.interfaces.cli.words.times import time_format, utc_option

READ_MAX: Final = 100_000
"""Longer than any secret may be; the store itself checks the length."""
HTTP: Final = "http.request"


@click.group()
def command() -> None:
    """Store secrets for tools: in the platform's keyring, or in a private file."""


@command.command("set")
@click.argument("name")
@click.option(
    "--for",
    "given_to",
    multiple=True,
    metavar="TOOL",
    help="A tool that may get it: git.push, 'git.*', http.request:api.example.com. Replaces earlier ones.",
)
@click.option("--keep", is_flag=True, help="Keep the value, and change only --for.")
@json_option
@click.pass_context
@reports_errors
async def set_(ctx: click.Context, name: str, given_to: tuple[str, ...], keep: bool, as_json: bool) -> None:
    """Store a secret. Its value is typed without echo or read from stdin; other users can see command arguments.

    Only what is named with --for gets it: a tool from a plan, and a server of tools.json if it has such a tool."""
    if keep and not given_to:
        raise Invalid("--keep alone changes nothing", hint=f"`handrail secrets set {name} --keep --for TOOL`")
    value = None if keep else _value(name)
    card = secrets_of(settings_of(ctx)).keep(name, value, given_to or None)
    warnings = _warnings(card)
    answer(_as_data(card) | {"warnings": warnings}, as_json=as_json, as_text=lambda: _print(card, warnings))


@command.command("list")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def list_(ctx: click.Context, is_utc: bool, as_json: bool) -> None:
    """List all secrets by name: where they are stored, since when, and the tools that plans may pass them to."""
    cards = secrets_of(settings_of(ctx)).cards()

    def print_text() -> None:
        if not cards:
            advise("no secrets; `handrail secrets set NAME` stores one")
            return
        shown = time_format(is_utc=is_utc)
        rows = [(card.name, card.kept, shown.at(card.set), _tools(card)) for card in cards]
        print_table(("secret", Column("stored in", 2), Column("set", 1), "plans may pass it to"), rows)

    answer(listing("secrets", [_as_data(card) for card in cards]), as_json=as_json, as_text=print_text)


@command.command()
@click.argument("name")
@json_option
@click.pass_context
@reports_errors
async def remove(ctx: click.Context, name: str, as_json: bool) -> None:
    """Remove a secret."""
    secrets_of(settings_of(ctx)).remove(name)
    answer({"removed": name}, as_json=as_json, as_text=lambda: say(f"removed {name}"))


def _value(name: str) -> str:
    if _is_terminal():
        return ask_text(f"Value of {name} (not shown)", is_hidden=True)
    try:
        text = sys.stdin.read(READ_MAX) if sys.stdin else ""
    except UnicodeDecodeError as error:
        raise Invalid("stdin is not UTF-8 text", hint="secrets are text") from error
    text = text.removesuffix("\n")  # the final line break is not part of it
    if not text:
        hint = f"type it at a terminal: `handrail secrets set {name}`, or pipe it: `... secrets set {name} < file`"
        raise Invalid("stdin is empty", hint=hint)
    return text


def _warnings(card: SecretCard) -> list[str]:
    warnings = []
    if not card.given_to:
        warnings.append(
            f"no tool and no server gets it; name one: --keep --for 'git.*' or --for {HTTP}:api.example.com"
        )
    if HTTP in card.given_to:
        warnings.append(f"plans may send it to any host; name one: --for {HTTP}:api.example.com")
    return warnings


def _as_data(card: SecretCard) -> dict[str, Any]:
    return {"name": card.name, "given_to": card.given_to, "kept": card.kept, "set": instant_text(card.set)}


def _print(card: SecretCard, warnings: Sequence[str]) -> None:
    place = "the platform's keyring" if card.kept == "keyring" else "a private file (0600)"
    say(f"{card.name} is stored in {place}; plans may pass it to: {_tools(card)}")
    for warning in warnings:
        say(f"warning: {warning}", fg="yellow", err=True)


def _tools(card: SecretCard) -> str:
    return ", ".join(card.given_to) or "no tool"


def _is_terminal() -> bool:
    return bool(sys.stdin) and sys.stdin.isatty()
