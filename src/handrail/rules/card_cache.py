"""The card cache: what rules of packages said of themselves, so that checks can be read without starting a process.

A cache: it may be lost at any time. Only cards of packages whose files can't change under the same record are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from handrail.domain.json import digest
from handrail.domain.rule import RuleCard
from handrail.foundation.atomic_file import write_cache
from handrail.rules.guest import CARD_BYTES_MAX, RuleEntry

BYTES_MAX: Final = 2 * CARD_BYTES_MAX


class CardCache:
    """Cards by rule and package, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, entry: RuleEntry) -> RuleCard | None:
        """What the rule said of itself; None if nothing is kept."""
        if not entry.content:
            return None
        try:
            with self._file(entry).open("rb") as file:
                return msgspec.json.decode(file.read(BYTES_MAX), type=RuleCard)
        except (OSError, msgspec.DecodeError):
            return None

    def keep(self, entry: RuleEntry, card: RuleCard) -> None:
        """Keep what it says; what can't be written is said again next time."""
        if not entry.content:
            return  # an editable package: its code may change, and nothing would tell
        write_cache(self._file(entry), msgspec.json.encode(card))

    def _file(self, entry: RuleEntry) -> Path:
        key = digest([entry.name, entry.value, entry.package, entry.version, entry.content])
        return self._folder / f"{key.removeprefix('sha256:')}.json"
