"""`handrail rules`: list and show the rules that checks can apply, and their cache.

The commands for authors are in new.py and check.py; try_.py is for everyone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import msgspec

from handrail.assembly.checks import rule_memory_of, rules_of
from handrail.domain.checks.rule import RuleCard
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.instant import instant_text
from handrail.domain.plural import plural
from handrail.domain.suggestion import did_you_mean
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.rules.check import check
from handrail.interfaces.cli.rules.new import new
from handrail.interfaces.cli.rules.try_ import try_
from handrail.interfaces.cli.words.answer import answer, listing
from handrail.interfaces.cli.words.table import Column, print_table
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.cli.words.times import TimeFormat, time_format, utc_option
from handrail.interfaces.pictures.caption import plain
from handrail.library.documents.printing import yaml_text


@click.group()
def command() -> None:
    """List the rules that checks can apply, write and check your own, and manage their cache."""


for one in (check, new, try_):
    command.add_command(one)


@command.command("list")
@json_option
@click.pass_context
@reports_errors
async def list_(ctx: click.Context, as_json: bool) -> None:
    """List all rules that checks can apply here, and why some installed ones can't be used."""
    shelf = rules_of(settings_of(ctx))
    cards = await shelf.cards()
    data = listing("rules", [card_data(card) for card in cards], broken=dict(shelf.broken))
    answer(data, as_json=as_json, as_text=lambda: _print_list(cards, shelf.broken))


@command.command()
@click.argument("name")
@json_option
@click.pass_context
@reports_errors
async def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show a rule: what it reads, its parameters, and an example."""
    shelf = rules_of(settings_of(ctx))
    card = await shelf.card(name)
    if name in shelf.broken:
        raise Invalid(f"the rule {name} can't be used: {shelf.broken[name]}", hint="fix it, or uninstall its package")
    if card is None:
        raise NotFound(f"there is no rule {name!r}", hint=did_you_mean(name, sorted(shelf.names())))
    answer(card_data(card), as_json=as_json, as_text=lambda: _print_card(card))


@command.command()
@click.argument("what", type=click.Choice(["list", "clear"]), default="list")
@utc_option
@json_option
@click.pass_context
@reports_errors
async def cache(ctx: click.Context, what: str, is_utc: bool, as_json: bool) -> None:
    """List the cached results of rules; `clear` removes them all."""
    memory = rule_memory_of(settings_of(ctx))
    if what == "clear":
        count = await memory.clear()
        words = f"removed {plural(count, 'cached result')}"
        answer({"removed": count}, as_json=as_json, as_text=lambda: say(words))
        return
    remembered = [
        {**msgspec.to_builtins(one), "when": instant_text(one.when), "asked": instant_text(one.asked)}
        for one in await memory.cards()
    ]
    data = listing("results", remembered)
    answer(data, as_json=as_json, as_text=lambda: _print_memory(remembered, time_format(is_utc=is_utc)))


def card_data(card: RuleCard) -> dict[str, Any]:
    """A card as JSON."""
    return {**msgspec.to_builtins(card), "looks_at": card.looks_at.value}


def _print_list(cards: Sequence[RuleCard], broken: Mapping[str, str]) -> None:
    rows = [(card.name, card.version, card.origin, card.reads.value, plain(card.summary)) for card in cards]
    head = ("rule", Column("version", 3), Column("origin", 2), Column("reads", 1), "passes if")
    print_table(head, rows)
    for name, reason in broken.items():
        say(f"rule {plain(name)} can't be used: {plain(reason)}", fg="yellow", err=True)


def _print_card(card: RuleCard) -> None:
    say(f"{card.name} {card.version}", bold=True, nl=False)
    say(f"  ({card.origin}; reads the {card.reads.value}; looks at {card.looks_at.value}; at most {card.timeout})")
    say(plain(card.summary))
    if card.parameters:
        say("")
        rows = [(name, _kind(schema), _notes(name, schema, card)) for name, schema in card.parameters.items()]
        print_table(("parameter", "type", ""), rows)
    if card.example:
        say("\n" + yaml_text({"checks": [{"rule": card.name, **card.example}]}).rstrip())


def _kind(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    if "enum" in schema:
        return plain(" / ".join(map(str, schema["enum"])))
    kind = schema.get("type", "any")
    return plain(" / ".join(kind) if isinstance(kind, list) else str(kind))


def _notes(name: str, schema: Any, card: RuleCard) -> str:
    notes = ["required"] if name in card.required else []
    if isinstance(schema, Mapping):
        notes += [f"default {schema['default']}"] if "default" in schema else []
        notes += [str(schema["description"])] if "description" in schema else []
    return plain("; ".join(notes))


def _print_memory(remembered: Sequence[Mapping[str, Any]], shown: TimeFormat) -> None:
    if not remembered:
        say("no cached results", err=True)
        return
    rows = [
        (one["rule"], one["version"], "passed" if one["passed"] else "failed", shown.at(one["when"]), one["bytes"])
        for one in remembered
    ]
    print_table(("rule", "version", "result", "at", "bytes"), rows)
