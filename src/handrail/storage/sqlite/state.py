"""The schema of a journal in a file: what it has, what this program has, and what is missing. Only reads."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from handrail.storage.migrations import Migration
from handrail.storage.sqlite.faults import BELOW, StoreLocation, store_error
from handrail.storage.sqlite.file import open_reader
from handrail.storage.sqlite.migration import applied_schema, pending, shipped


def migration_state(journal: Path) -> tuple[int, int, list[Migration]]:
    """The schema of a file, the newest that this program knows, and the migrations between them."""
    place, known = StoreLocation(path=journal, busy_ms=0, read_only=True), shipped()
    with closing(open_reader(place)) as connection:
        try:
            return applied_schema(connection), known[-1].number, pending(connection, known)
        except BELOW as error:
            raise store_error(error, place) from error
