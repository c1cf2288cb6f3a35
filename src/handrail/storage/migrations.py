"""Numbered migrations, whatever the database: which of them are missing, and when a store must be refused. Pure.

Applied files never change; the digest of each is stored with the row that records it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from handrail.domain.errors import IntegrityBroken, Unavailable


class Migration(Struct, frozen=True):
    """One step of the schema: its number, its name and its SQL text."""

    number: int
    name: str
    text: str

    @property
    def digest(self) -> str:
        """Identifies the text, to detect that it differs from the one that was applied."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations_in(folder: Path) -> list[Migration]:
    """The migrations in a folder, by number."""
    return [_from_file(file) for file in sorted(folder.glob("*.sql"))]


def not_applied(applied: Mapping[int, str], migrations: Sequence[Migration]) -> list[Migration]:
    """The migrations that were not applied yet; refuse a store that is newer than the program or made by other SQL."""
    known = {migration.number: migration for migration in migrations}
    newer = [number for number in applied if number not in known]
    if newer:
        raise newer_store(max(newer), max(known, default=0))
    for number, digest in applied.items():
        if known[number].digest != digest:
            raise IntegrityBroken(
                f"the store was made by a different version of migration {number} than this program has",
                hint="use the handrail that wrote this store",
            )
    return [migration for migration in migrations if migration.number not in applied]


def newer_store(schema: int, known: int) -> Unavailable:
    """The error of a program that is older than the store; it names both ways on."""
    return Unavailable(
        f"the store was written by a newer handrail (schema {schema}; this one knows {known})",
        hint="update handrail, and start this process again; to go back to the older version, restore the backup from"
        " before the upgrade (docs/operations/upgrade.md): nothing was written",
    )


def _from_file(file: Path) -> Migration:
    number, _, name = file.stem.partition("_")
    return Migration(int(number), name, file.read_text(encoding="utf-8"))  # newlines as "\n" on every system
