"""Places for tests: what is known of tools and rules where a definition is to be run. Not a test file."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from handrail.domain.analysis.local import KnownTool, Local, LocalRules, LocalTools, Survey
from handrail.domain.checks.rule import RuleCard
from handrail.domain.definition.effect import BUILT_IN_EFFECTS
from handrail.domain.definition.model import Effect
from handrail.library.schemas.structure import check_against
from handrail.rules.cards import BUILT_IN_CARDS


def place_with(
    effects: Mapping[str, Effect] | None = None,
    *tools: tuple[str, KnownTool],
    rules: Mapping[str, RuleCard | None] | None = None,
    **more: Any,
) -> Local:
    """A place with the built-in tools and rules, and these."""
    known = {name: KnownTool(effect=effect) for name, effect in {**BUILT_IN_EFFECTS, **(effects or {})}.items()}
    known |= dict(tools)
    cards = {**BUILT_IN_CARDS, **(rules or {})}
    families = frozenset(name.partition(".")[0] for name in known) | more.pop("families", frozenset())
    return Local(
        tools=LocalTools(tools=known, names=tuple(known), families=families, **more),
        rules=LocalRules(cards=cards, names=tuple(cards)),
        fits=lambda schema, value, path: check_against(schema, value, path=path),
    )


def survey_with(effects: Mapping[str, Effect] | None = None, *tools: tuple[str, KnownTool], **more: Any) -> Survey:
    """Who tells of such a place."""
    place = place_with(effects, *tools, **more)

    def survey(_tools: Collection[str], _rules: Collection[str]) -> Local:
        return place

    return survey


def rules_alone(_tools: Collection[str], _rules: Collection[str]) -> Local:
    """A place of which only the rules are known."""
    place = place_with()
    return Local(rules=place.rules, fits=place.fits)
