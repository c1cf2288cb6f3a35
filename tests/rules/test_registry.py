"""The registry of rules: what comes with handrail says of itself what the analysis of definitions knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from engine.guiding import judge
from handrail.domain.rule import RuleCard
from handrail.domain.rule_parameters import BUILT_IN_PARAMETERS, SHARED
from handrail.rules.registry import RuleShelf, built_in_cards

CARDS = {card.name: card for card in built_in_cards()}


def test_the_analysis_knows_all_rules_and_what_they_take() -> None:
    known = {name: (takes.required, takes.known - SHARED) for name, takes in BUILT_IN_PARAMETERS.items()}
    told = {card.name: (frozenset(card.required), frozenset(card.parameters) - SHARED) for card in CARDS.values()}
    assert known == told


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)
def test_every_card_says_what_holds_and_its_example_fits(card: RuleCard) -> None:
    assert card.summary.endswith(".")
    schema: Mapping[str, Any] = {
        "type": "object",
        "properties": {**card.parameters, "of": {}, "timeout": {}},
        "required": list(card.required),
        "additionalProperties": False,
    }
    assert not judge(schema, card.example)
    assert card.example or not card.required


async def test_a_shelf_finds_what_it_names_and_a_programs_own_rules() -> None:
    shelf = RuleShelf()
    assert set(shelf.names()) == set(CARDS)
    assert [card.name for card in await shelf.cards()] == sorted(CARDS)
    assert await shelf.find("nobody") is None
    assert not shelf.broken
    found = await shelf.find("file_exists")
    assert found is not None
    assert found.card is CARDS["file_exists"]
