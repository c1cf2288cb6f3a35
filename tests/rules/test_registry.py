"""The registry of rules: every card has its rule, and a rule's code is read when it is first applied."""

from __future__ import annotations

import subprocess
import sys

import pytest

from engine.guided_runs import judge
from handrail.domain.checks.composition import COMPOSITIONS
from handrail.domain.checks.rule import RuleCard, parameters_schema
from handrail.rules.cards import BUILT_IN_CARDS as CARDS
from handrail.rules.cards import LANGUAGE_NAMES
from handrail.rules.registry import RuleRegistry
from handrail.rules.toolchain.languages import LANGUAGES

FIRST_CHECK = """
import asyncio, sys
import handrail.assembly.opening
from handrail.rules.registry import RuleRegistry
from handrail.rules.cards import BUILT_IN_CARDS
async def applied():
    before = set(sys.modules)
    assert (await RuleRegistry().find(sys.argv[1])).card is BUILT_IN_CARDS[sys.argv[1]]
    print(*sorted(set(sys.modules) - before))
asyncio.run(applied())
"""


@pytest.mark.parametrize("name", sorted(CARDS.keys() - COMPOSITIONS.keys()))
async def test_every_card_is_that_of_a_rule(name: str) -> None:
    rule = await RuleRegistry().find(name)
    assert rule is not None
    assert rule.card is CARDS[name]


def test_the_languages_that_a_check_may_name_are_those_that_there_are() -> None:
    assert list(LANGUAGE_NAMES) == sorted(LANGUAGES)


def imported_for(rule: str) -> list[str]:
    """The modules that the first check with this rule imports, in a fresh process that is about to work."""
    ran = subprocess.run([sys.executable, "-c", FIRST_CHECK, rule], capture_output=True, text=True, check=True)
    return ran.stdout.split()


def test_a_first_check_imports_no_rule_but_its_own() -> None:
    assert imported_for("contains") == []
    assert imported_for("file_exists") == ["handrail.rules.files.file_exists", "handrail.rules.function_rule"]
    assert "handrail.rules.toolchain.languages" in imported_for("tests_pass")


@pytest.mark.parametrize("card", CARDS.values(), ids=lambda card: card.name)
def test_every_card_says_what_holds_and_its_example_fits(card: RuleCard) -> None:
    assert card.summary.endswith(".")
    assert not judge(parameters_schema(card), card.example)
    assert card.example or not card.required


async def test_a_shelf_finds_what_it_names_and_a_programs_own_rules() -> None:
    shelf = RuleRegistry()
    assert set(shelf.names()) == set(CARDS)
    assert [card.name for card in await shelf.cards()] == sorted(CARDS)
    assert await shelf.find("nobody") is None
    assert not shelf.broken
    found = await shelf.find("file_exists")
    assert found is not None
    assert found.card is CARDS["file_exists"]
