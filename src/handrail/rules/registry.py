"""The registry of rules: built-in rules and those of installed packages, by name.

The cards of built-in rules are in cards.py, each implementation in a file of its own. Plugin rules run in a process of
their own (plugin_rule.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from handrail.domain.analysis.local import LocalRules
from handrail.domain.checks.composition import COMPOSITIONS
from handrail.domain.checks.rule import RuleCard, Rules
from handrail.engine.checking.rule import Rule
from handrail.rules.cards import BUILT_IN_CARDS
from handrail.rules.output.plain import PLAIN, OutputRule
from handrail.rules.plugins.plugin_discovery import PluginRules

if TYPE_CHECKING:
    from handrail.rules.http_ok import Fetch

HTTP_OK: Final = "http_ok"
FILE_RULES: Final = frozenset(
    {
        *("diff_within", "file_contains", "file_exists", "files_changed", "files_exist", "git_clean", "no_secrets"),
        *("commit_exists", "commits_since", "on_branch"),
    }
)
MODULES: Final[Mapping[str, str]] = {
    **{
        name: f"handrail.rules.files.{name}" if name in FILE_RULES else f"handrail.rules.{name}"
        for name in BUILT_IN_CARDS
        if name not in COMPOSITIONS and name not in {rule.card.name for rule in PLAIN}
    },
    "files_unchanged": "handrail.rules.files.files_changed",
    "tests_kept": "handrail.rules.tests_pass",
    "tests_fail": "handrail.rules.tests_prove",
}
"""The modules of rules that read more than the output. Each is imported when it is first applied: importing the tool
chains of seven languages takes 30 ms (measured), which runs without such checks should not pay."""


def built_in() -> Rules:
    """The plain rules, for callers that rehearse a workflow without waiting."""
    return {one.card.name: one for one in PLAIN}


class RuleRegistry:
    """All rules that checks can apply."""

    def __init__(self, *more: Rule, fetch: Fetch | None = None, plugins: PluginRules | None = None) -> None:
        """`fetch` lets rules reach the network, `plugins` are rules of packages, `more` are rules of the caller."""
        self._rules: dict[str, Rule] = {rule.card.name: OutputRule(rule) for rule in PLAIN}
        self._rules |= {rule.card.name: rule for rule in more}
        self._fetch = fetch or _nowhere
        self._plugins = plugins

    async def find(self, name: str) -> Rule | None:
        """The rule of that name; None if there is none, or it can't be used. Does not find rules made of rules: the
        gate applies their parts."""
        if name in self._rules:
            return self._rules[name]
        if name in MODULES:
            self._rules[name] = await self._imported(name)
            return self._rules[name]
        return await self._plugins.find(name) if self._plugins else None

    async def card(self, name: str) -> RuleCard | None:
        """The card of the rule of that name; None if there is none, or it can't be used."""
        if name in BUILT_IN_CARDS:
            return BUILT_IN_CARDS[name]
        rule = await self.find(name)
        return rule.card if rule is not None else None

    def known(self, names: Collection[str]) -> LocalRules:
        """What is known of the rules of these names. No process is started, and installed packages are searched only if
        a name is not built in."""
        cards: dict[str, RuleCard | None] = {name: rule.card for name, rule in self._rules.items() if name in names}
        cards |= {name: BUILT_IN_CARDS[name] for name in names if name in BUILT_IN_CARDS}
        others = [name for name in names if name not in cards]
        if not others or self._plugins is None:
            return LocalRules(cards=cards, names=tuple(sorted({*BUILT_IN_CARDS, *self._rules})))
        offered = self._plugins.names()
        cards |= {name: self._plugins.known(name) for name in others if name in offered and name not in self.broken}
        return LocalRules(cards=cards, names=tuple(sorted(self.names())), broken=dict(self.broken))

    def names(self) -> Collection[str]:
        """The names of all rules."""
        return {*BUILT_IN_CARDS, *self._rules, *(self._plugins.names() if self._plugins else ())}

    async def cards(self) -> Sequence[RuleCard]:
        """The cards of all rules, sorted by name."""
        plugins = await self._plugins.all() if self._plugins else []
        cards = {**BUILT_IN_CARDS, **{rule.card.name: rule.card for rule in (*self._rules.values(), *plugins)}}
        return [cards[name] for name in sorted(cards)]

    @property
    def broken(self) -> Mapping[str, str]:
        """Plugin rules that can't be used, with the reason, as far as that is known."""
        return self._plugins.broken if self._plugins else {}

    async def _imported(self, name: str) -> Rule:
        module = MODULES[name]
        # In a thread: other runs must not wait while the code is read from disk. Also if it is in sys.modules already:
        # another thread may be in the middle of importing it.
        loaded = await asyncio.to_thread(import_module, module)
        found = getattr(loaded, name)
        rule: Rule = found(self._fetch) if name == HTTP_OK else found
        return rule


async def _nowhere(_url: str, _seconds: float) -> int:
    raise OSError("rules can't reach the network here")
