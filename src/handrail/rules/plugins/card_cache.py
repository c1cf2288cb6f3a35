"""The card cache: cards of plugin rules, so that checks can be validated without starting a process.

It may be deleted at any time. Only cards of packages whose files can't change without a new record are cached."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from handrail.domain.checks.rule import RuleCard
from handrail.domain.json import digest
from handrail.domain.metrics.cache_catalog import RULE_CARDS
from handrail.foundation.atomic_file import write_cache
from handrail.foundation.cache_use import now, use_of
from handrail.rules.plugins.plugin_rule import CARD_BYTES_MAX, RuleEntry

BYTES_MAX: Final = 2 * CARD_BYTES_MAX
_use: Final = use_of(RULE_CARDS)


class CardCache:
    """Cards by rule and package, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, entry: RuleEntry) -> RuleCard | None:
        """The cached card of a rule; None if there is none."""
        if not entry.content:
            return None
        started_s = now()
        try:
            with self._file(entry).open("rb") as file:
                card = msgspec.json.decode(file.read(BYTES_MAX), type=RuleCard)
        except (OSError, msgspec.DecodeError):
            _use.missed()  # no rule is asked instead: its checks stay unexamined until one is applied
            return None
        _use.hit(since=started_s)
        return card

    def keep(self, entry: RuleEntry, card: RuleCard) -> None:
        """Cache a card; if it can't be written, the rule is asked again next time."""
        if not entry.content:
            return  # an editable package: its code may change unnoticed
        write_cache(self._file(entry), msgspec.json.encode(card))

    def _file(self, entry: RuleEntry) -> Path:
        key = digest([entry.name, entry.value, entry.package, entry.version, entry.content])
        return self._folder / f"{key.removeprefix('sha256:')}.json"
