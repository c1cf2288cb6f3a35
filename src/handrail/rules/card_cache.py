"""The card cache: what rules of packages said of themselves, so that checks can be read without starting a process.

A cache: it may be lost at any time. Only cards of packages whose files can't change under the same record are kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from handrail.domain.json import digest
from handrail.domain.rule import RuleCard
from handrail.foundation.atomic_file import write_cache
from handrail.rules.guest import CARD_BYTES_MAX, Door

BYTES_MAX: Final = 2 * CARD_BYTES_MAX


class CardCache:
    """Cards by rule and package, one file each."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, door: Door) -> RuleCard | None:
        """What the rule said of itself; None if nothing is kept."""
        if not door.content:
            return None
        try:
            with self._file(door).open("rb") as file:
                return msgspec.json.decode(file.read(BYTES_MAX), type=RuleCard)
        except (OSError, msgspec.DecodeError):
            return None

    def keep(self, door: Door, card: RuleCard) -> None:
        """Keep what it says; what can't be written is said again next time."""
        if not door.content:
            return  # an editable package: its code may change, and nothing would tell
        write_cache(self._file(door), msgspec.json.encode(card))

    def _file(self, door: Door) -> Path:
        key = digest([door.name, door.value, door.package, door.version, door.content])
        return self._folder / f"{key.removeprefix('sha256:')}.json"
