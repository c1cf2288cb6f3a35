"""The registry of rules: those that are built in and those that installed packages bring, by name.

What each does is told in its own file. Rules of others run in a process of their own (guest.py)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from handrail.domain.rule import Rule as Plain
from handrail.domain.rule import RuleCard, Rules
from handrail.engine.rule import Rule
from handrail.rules import composition
from handrail.rules.composed import COMPOSED
from handrail.rules.plain import PLAIN
from handrail.rules.plugin import Guests

if TYPE_CHECKING:
    from handrail.rules.http_ok import Fetch


@cache
def built_in() -> Rules:
    """The rules that look at the output alone, as functions: for whoever walks a workflow without waiting."""
    rules: dict[str, Plain] = {one.card.name: one.function for one in PLAIN}
    for rule in (composition.all_of, composition.any_of, composition.none_of):
        rules[rule.__name__] = partial(rule, rules)
    return rules


def built_in_cards() -> Sequence[RuleCard]:
    """What all rules that come with handrail say of themselves, by name."""
    rules = _ours(_nowhere).values()
    return sorted((rule.card for rule in rules), key=lambda card: card.name)


class RuleShelf:
    """All rules that checks can apply."""

    def __init__(self, *more: Rule, fetch: Fetch | None = None, guests: Guests | None = None) -> None:
        """`fetch` is the way to the network that rules may use, `guests` are rules of others, `more` a program's."""
        self._more = {rule.card.name: rule for rule in more}
        self._fetch = fetch or _nowhere
        self._guests = guests

    async def find(self, name: str) -> Rule | None:
        """The rule of that name; None if there is none, or it can't be used."""
        if name in self._rules or self._guests is None:
            return self._rules.get(name)
        return await self._guests.find(name)

    def names(self) -> Collection[str]:
        """What there is."""
        return {*self._rules, *(self._guests.names() if self._guests else ())}

    async def cards(self) -> Sequence[RuleCard]:
        """What all rules say of themselves, by name."""
        guests = await self._guests.all() if self._guests else []
        cards = [rule.card for rule in (*self._rules.values(), *guests)]
        return sorted(cards, key=lambda card: card.name)

    @cached_property
    def _rules(self) -> Mapping[str, Rule]:
        return {**_ours(self._fetch), **self._more}

    @property
    def broken(self) -> Mapping[str, str]:
        """Rules of others that can't be used, each with the reason, as far as they were met."""
        return self._guests.broken if self._guests else {}


def _ours(fetch: Fetch) -> dict[str, Rule]:
    # Imported late: the tool chains of seven languages take 30 ms (measured), which runs without such checks never pay.
    from handrail.rules.http_ok import http_ok
    from handrail.rules.of_project import OF_PROJECT

    rules: list[Rule] = [*PLAIN, *COMPOSED, *OF_PROJECT, http_ok(fetch)]
    return {rule.card.name: rule for rule in rules}


async def _nowhere(_url: str, _seconds: float) -> int:
    raise OSError("there is no way to the network here")
