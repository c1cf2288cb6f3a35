"""`handrail rules check`: apply a rule as a step's check would, and report what is wrong with it.

For authors of rules: the package need not be installed. Nothing is journaled or cached."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from handrail.assembly.checks import gate_of, plugin_rules_of, rules_of
from handrail.assembly.tools import toolbox_of
from handrail.domain.checks.judgement import Judgement
from handrail.domain.checks.rule import RuleCard
from handrail.domain.definition.model import Check, Definition, Prompt, Step
from handrail.domain.errors import Invalid, NotFound
from handrail.domain.plural import plural
from handrail.domain.run.state import Run
from handrail.domain.run.step_path import top_lane
from handrail.domain.suggestion import did_you_mean
from handrail.engine.checking.gate import QualityGate
from handrail.engine.checking.rule import NoMemory, RuleSet
from handrail.interfaces.cli.program import json_option, reports_errors, settings_of
from handrail.interfaces.cli.words.answer import Exit, answer
from handrail.interfaces.cli.words.finding_view import print_findings
from handrail.interfaces.cli.words.terminal_edge import say
from handrail.interfaces.pictures.caption import plain
from handrail.rules.plugins.package_folder import rule_entries_in
from handrail.rules.plugins.plugin_rule import RuleEntry
from handrail.settings import Settings
from handrail.tools.registry import Registry

ID: Final = "a-check"


class RuleResult(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and the result of applying it."""

    card: RuleCard
    parameters: Mapping[str, Any]
    judgement: Judgement

    @property
    def works(self) -> bool:
        """Whether it ran without an error, with findings or without."""
        return bool(self.judgement.evidence) and all(one.is_settled for one in self.judgement.evidence)


@click.command()
@click.argument("target", metavar="NAME|FOLDER")
@click.option("--parameters", metavar="JSON", help="Parameters for the rule (default: its own example).")
@click.option("--output", metavar="JSON", help="The output to check, as a step would submit it.")
@json_option
@click.pass_context
@reports_errors
async def check(ctx: click.Context, target: str, parameters: str | None, output: str | None, as_json: bool) -> None:
    """Apply a rule, or every rule of a package that is not installed; exit 5 if one does not work.

    NAME is a rule from `handrail rules list`, FOLDER contains a package's pyproject.toml."""
    settings = settings_of(ctx)
    given = _read("--parameters", parameters) if parameters is not None else None
    if given is not None and not isinstance(given, dict):
        raise Invalid("--parameters is not a JSON object", hint="""write --parameters '{"path": "a.py"}'""")
    checked_output = _read("--output", output) if output is not None else {}
    toolbox = toolbox_of(settings)  # its HTTP client, for rules that need the network
    try:
        shelf, cards, broken = await _rules_for(target, settings, toolbox)
        # Without the cache: an author changes the rule between two calls.
        gate = replace(gate_of(settings), rules=shelf, memory=NoMemory(), is_plain=False)
        results = [await applied(gate, card, given, checked_output) for card in cards]
    finally:
        await toolbox.close()
    data = {"rules": [_data(one) for one in results], "broken": broken}
    answer(data, as_json=as_json, as_text=lambda: _print(results, broken))
    if broken or not all(one.works for one in results):
        sys.exit(Exit.INVALID)


async def _rules_for(
    target: str, settings: Settings, toolbox: Registry
) -> tuple[RuleSet, Sequence[RuleCard], Mapping[str, str]]:
    """The rules to apply, and those that can't be used."""
    offered = _package_rules(target)
    if offered is not None:
        guests = plugin_rules_of(settings, installed=lambda: offered)
        return guests, [rule.card for rule in await guests.all()], guests.broken
    shelf = rules_of(settings, toolbox)
    card = await shelf.card(target)
    if card is not None:
        return shelf, [card], {}
    if target in shelf.broken:
        return shelf, [], {target: shelf.broken[target]}
    hint = did_you_mean(target, sorted(shelf.names())) or "name a rule, or the folder of a package"
    raise NotFound(f"there is no rule {target!r}, and no such folder", hint=hint)


def _package_rules(target: str) -> Mapping[str, RuleEntry | str] | None:
    """The rules of a package that is not installed; None if the target is not a folder."""
    folder = Path(target)
    return rule_entries_in(folder) if folder.is_dir() else None


async def applied(gate: QualityGate, card: RuleCard, given: Mapping[str, Any] | None, output: Any) -> RuleResult:
    """The result of applying a rule as the one check of a step."""
    parameters = card.example if given is None else given
    work = Prompt(prompt=ID, checks=(Check(rule=card.name, parameters=parameters),))
    definition = Definition(id=ID, steps=(Step(id=ID, work=work),))
    judgement = await gate.judge(work, output, Run(id=ID), top_lane(definition))
    return RuleResult(card=card, parameters=parameters, judgement=judgement)


def _read(option: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Invalid(f"{option} is not JSON: {error}", hint=f"""write {option} '{{"path": "a.py"}}'""") from error


def _data(results: RuleResult) -> dict[str, Any]:
    return {
        "rule": results.card,
        "works": results.works,
        "parameters": results.parameters,
        "findings": results.judgement.findings,
        "evidence": results.judgement.evidence,
    }


def _print(results: Sequence[RuleResult], broken: Mapping[str, str]) -> None:
    for one in results:
        say(f"{one.card.name} {one.card.version}", bold=True, nl=False)
        say(f"  ({plain(one.card.origin)}) with {msgspec.json.encode(one.parameters).decode()}")
        findings = one.judgement.findings
        print_findings(findings)
        outcome = plural(len(findings), "finding") if findings else "no findings: the check passes"
        say(f"  {outcome}" if one.works else "  the rule does not work")
    for name, reason in broken.items():
        say(f"rule {plain(name)} can't be used: {plain(reason)}", fg="yellow", err=True)
