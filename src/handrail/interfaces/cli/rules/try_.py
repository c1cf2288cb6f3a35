"""`handrail rules try`: what a check would run in this project, and why; then its result.

For everyone whose check does not find what they use. Nothing is journaled or cached."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import click
import msgspec

from handrail.assembly.checks import gate_of, rules_of
from handrail.assembly.tools import toolbox_of
from handrail.domain.checks.rule import Evidence, Given, RuleCard
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.plural import plural
from handrail.domain.suggestion import did_you_mean
from handrail.engine.checking.gate import QualityGate
from handrail.engine.checking.rule import NoMemory, PlannedCommand, Rule, Setting
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.rules.check import RuleResult, applied
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain
from handrail.rules.function_rule import FunctionRule
from handrail.rules.registry import RuleRegistry

HINT: Final = "write parameters as key=value, for instance path=src or percent=80"


@click.command("try")
@click.argument("name", metavar="RULE")
@click.argument("given", metavar="[KEY=VALUE]...", nargs=-1)
@click.option("--dry-run", is_flag=True, help="Only show what would be run.")
@json_option
@click.pass_context
@reports_errors
async def try_(ctx: click.Context, name: str, given: Sequence[str], dry_run: bool, as_json: bool) -> None:
    """Show what a check with RULE would run in this project and why, and run it; exit 5 if it does not pass.

    Parameters are given as KEY=VALUE, VALUE as JSON or as plain text."""
    settings = settings_of(ctx)
    toolbox = toolbox_of(settings)  # its HTTP client, for rules that need the network
    try:
        shelf = rules_of(settings, toolbox)
        card = await _card(name, shelf)
        parameters = _parameters(given, card)
        gate = replace(gate_of(settings), rules=shelf, memory=NoMemory(), is_plain=False)
        commands = await _commands(await shelf.find(name), parameters, gate)
        result = None if dry_run else await applied(gate, card, parameters, {})
    finally:
        await toolbox.close()
    answer(
        _data(card, parameters, commands, result),
        as_json=as_json,
        as_text=lambda: _print(card, commands, result),
    )
    is_stopped = any(one.missing for one in commands) if result is None else bool(result.judgement.findings)
    if is_stopped:
        sys.exit(Exit.INVALID)


async def _card(name: str, shelf: RuleRegistry) -> RuleCard:
    card = await shelf.card(name)
    if card is None:
        raise NotFound(f"there is no rule {name!r}", hint=did_you_mean(name, sorted(shelf.names())))
    return card


def _parameters(given: Sequence[str], card: RuleCard) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in given:
        key, mark, text = pair.partition("=")
        if not mark or not key:
            raise Invalid(f"{pair!r} is not a parameter", hint=HINT)
        value = _value(text, card.parameters.get(key))
        found[key] = [*found[key], *value] if isinstance(found.get(key), list) and isinstance(value, list) else value
    return found


def _value(text: str, schema: Any) -> Any:
    """A value as JSON, else as a string; one value stands for a list of one where a list is wanted."""
    wants = schema.get("type") if isinstance(schema, Mapping) else None
    if wants == "string":
        return text
    if wants == "array" and not text.startswith("["):
        return [_value(text, schema.get("items"))]
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text


async def _commands(rule: Rule | None, parameters: Mapping[str, Any], gate: QualityGate) -> Sequence[PlannedCommand]:
    """What the rule would run; none if it runs no commands, or says so only by running."""
    if not isinstance(rule, FunctionRule):
        return ()
    given = Given(output={}, evaluate=lambda _source: None, fits=gate.fits)
    setting = Setting(given=given, project=gate.project, private=gate.private, sandbox=gate.sandbox)
    return await rule.would(parameters, setting)


def _data(
    card: RuleCard, parameters: Mapping[str, Any], commands: Sequence[PlannedCommand], result: RuleResult | None
) -> dict[str, Any]:
    data: dict[str, Any] = {"rule": card.name, "parameters": parameters, "commands": commands}
    if result is not None:
        judgement = result.judgement
        data |= {
            "passed": not judgement.findings,
            "findings": judgement.findings,
            "evidence": judgement.evidence,
        }
    return data


def _print(card: RuleCard, commands: Sequence[PlannedCommand], result: RuleResult | None) -> None:
    if not commands:
        say(f"{card.name} runs no command that can be shown before it runs; it reads the {card.reads.value}")
    for one in commands:
        _print_command(one)
    if result is None:
        return
    findings = result.judgement.findings
    print_findings(findings)
    for evidence in result.judgement.evidence:
        _print_evidence(evidence)
    say(plural(len(findings), "finding") if findings else "the check passes")


def _print_evidence(evidence: Evidence) -> None:
    versions = ", ".join(f"{name} {version}" for name, version in evidence.tools.items() if version)
    counts = ", ".join(f"{count} {name}" for name, count in evidence.counts.items() if count)
    say(plain("; ".join(filter(None, [versions, counts]))))
    if evidence.caveat:
        say(f"note: {plain(evidence.caveat)}", fg="yellow")


def _print_command(one: PlannedCommand) -> None:
    if one.missing:
        say(f"can't be run: {plain(one.missing)}", fg="yellow")
        _print_indented(one.excerpt)
        say(f"  help: {plain(one.fix)}")
        return
    say(f"$ {plain(shlex.join(one.argv))}", bold=True, nl=False)
    say(f"  (in {plain(one.folder)})")
    for name, why in one.chosen.items():
        say(f"  {plain(name)}: {plain(why)}")
    for place in one.shows:
        say(f"  reads {plain(place)}")


def _print_indented(text: str) -> None:
    for line in text.splitlines():
        say(f"  | {plain(line)}")
