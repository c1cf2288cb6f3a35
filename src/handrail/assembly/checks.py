"""Checks: the gate, its rules, and the sandbox that their commands run in.

Part of the only place that knows which parts the program is made of; nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace as with_

from handrail.assembly.caching.shared import usable_level
from handrail.assembly.secrets import known_secrets_of
from handrail.domain.checks.finding import Finding, Flaw, finding_without_text
from handrail.domain.checks.finding import Path as Place
from handrail.domain.checks.judgement import PlainRuleSet
from handrail.domain.definition.model import Definition
from handrail.engine.checking.clean_sandbox import CleanSandbox
from handrail.engine.checking.gate import QualityGate
from handrail.engine.checking.layered_memory import LayeredMemory
from handrail.engine.checking.rule import Memory
from handrail.engine.checking.shared_call import SharedCall
from handrail.engine.dispatch import Observe
from handrail.engine.known_secrets import KnownSecrets
from handrail.engine.sandbox import Sandbox
from handrail.library.inputs import check_inputs
from handrail.library.schemas.structure import check_against
from handrail.rules.cards import BUILT_IN_CARDS
from handrail.rules.files.baseline import observed
from handrail.rules.files.tree import tree_digest
from handrail.rules.plugins.card_cache import CardCache
from handrail.rules.plugins.plugin_discovery import PluginRules
from handrail.rules.plugins.plugin_rule import RuleEntry
from handrail.rules.registry import RuleRegistry, built_in
from handrail.settings import SANDBOX, Settings
from handrail.storage.check_cache import RuleMemory
from handrail.tools.registry import Registry
from handrail.tools.sandbox.unconfined import Unconfined
from handrail.tools.shell import ShellConfiguration, shell_configuration, shell_sandbox


def gate_of(settings: Settings, toolbox: Registry | None = None) -> QualityGate:
    """The gate that applies the checks of this project's runs."""
    secrets = (toolbox.secrets if toolbox else None) or known_secrets_of(settings)
    return QualityGate(
        rules=rules_of(settings, toolbox),
        fits=findings_in,
        project=settings.project,
        private=(settings.home,),
        sandbox=CleanSandbox(sandbox_of(settings), secrets),
        memory=memory_of(settings, secrets),
        secrets=secrets,
        tree=SharedCall(partial(tree_digest, settings.project, private=(settings.home,))),
        is_plain=settings.choices.checks == "plain",
    )


def observer_of(settings: Settings) -> Observe:
    """Looks at the project when a run starts and when a step is given out."""
    return partial(observed, settings.project, private=(settings.home,))


def sandbox_of(settings: Settings, more: Sequence[Path] = ()) -> Sandbox:
    """Where the commands of checks run; `more` are further folders that they may read."""
    table = settings.home_tables.get("checks", {})  # not the project's: what was cloned must not open the door
    if table.get(SANDBOX) == "off":
        return Unconfined(settings.project, private=(settings.home,))
    configuration = shell_of(settings)
    read = (*configuration.read, *map(str, more))
    return shell_sandbox(settings.project, with_(configuration, read=read), private=(settings.home,))


def shell_of(settings: Settings) -> ShellConfiguration:
    """What commands may do here."""
    return shell_configuration(settings.tables, home_tables=settings.home_tables)


def rules_of(settings: Settings, toolbox: Registry | None = None) -> RuleRegistry:
    """All rules that checks can apply here; the toolbox makes their network requests."""
    return RuleRegistry(fetch=toolbox.status if toolbox else None, plugins=plugin_rules_of(settings))


def plugin_rules_of(
    settings: Settings, *, installed: Callable[[], Mapping[str, RuleEntry | str]] | None = None
) -> PluginRules:
    """The rules of installed packages, or of the packages that the caller gives."""
    cards = CardCache(settings.home / "cache" / "rule-cards")
    return PluginRules(partial(sandbox_of, settings), reserved=BUILT_IN_CARDS.keys(), installed=installed, cache=cards)


def rule_memory_of(settings: Settings, secrets: KnownSecrets | None = None) -> RuleMemory:
    """The cache of earlier check results, without secrets."""
    known = secrets or known_secrets_of(settings)
    return RuleMemory(settings.home / "cache" / "rules", clean=lambda content: known.scrubber().content(content))


def memory_of(settings: Settings, secrets: KnownSecrets) -> Memory:
    """The same, with the results that other machines share, if the settings name a server for them."""
    own = rule_memory_of(settings, secrets)
    shared = usable_level(settings, lambda content: secrets.scrubber().content(content))
    return LayeredMemory(own, shared.results) if shared is not None else own


def judging_rules() -> PlainRuleSet:
    """The rules that judge outputs without waiting: for tests that walk a workflow by a script."""
    return PlainRuleSet(built_in(), findings_in)


def inputs_checked(definition: Definition, given: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[str]]:
    """The inputs that a workflow would start with, and what is wrong with them."""
    inputs, findings = check_inputs(definition, dict(given))
    return inputs, [f"{finding.where}: {finding.message}" for finding in findings]


def findings_in(schema: Any, value: Any) -> Sequence[Finding]:
    """What is wrong with an output, as findings."""
    return [finding_without_text(flaw) for flaw in check_against(schema, value, path=("output",))]


def flaws_in(schema: Any, value: Any, path: Place) -> Sequence[Flaw]:
    """What is wrong with a value at this place of a document."""
    return check_against(schema, value, path=path)


def misfits_in(schema: Any, value: Any) -> Sequence[str]:
    """What is wrong with an output, in words."""
    return [flaw.message for flaw in check_against(schema, value, path=("output",))]
