"""Giving free pages of the file back to the disk, a few at a time: appends are between two steps, never behind all.

A file that keeps track of its pages for that writes more of them at every append: about a tenth fewer steps a second.
So a file starts without, and is rewritten once, when much of it is free; that takes as long as reading and writing what
is left of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

from handrail.engine.run_archive import StoreSize
from handrail.storage.sqlite import queries

MODE: Final = "PRAGMA auto_vacuum"
INCREMENTAL: Final = 2
MAKE_INCREMENTAL: Final = "PRAGMA auto_vacuum = INCREMENTAL"
"""Keep track of pages, from the next rewriting on."""

WORTH_REWRITING: Final = 10
"""A file is rewritten if one page of so many is free; fewer are used again by appends."""

PAGES: Final = "PRAGMA page_count"
"""How many pages the file has."""

FREE_PAGES: Final = "PRAGMA freelist_count"
"""How many pages are free."""

PAGE_BYTES: Final = "PRAGMA page_size"
"""How large a page is."""

REWRITE: Final = "VACUUM"
"""Write the whole file again from its rows."""

ARCHIVED_RUNS: Final = "SELECT count(*) FROM tombstone"
"""How many runs are archived."""


def give_back(connection: sqlite3.Connection, pages: int) -> None:
    """Give at most so many free pages back."""
    (free,) = connection.execute(FREE_PAGES).fetchone()
    if not free:
        return
    (mode,) = connection.execute(MODE).fetchone()
    if mode != INCREMENTAL:
        (pages_of_file,) = connection.execute(PAGES).fetchone()
        if free * WORTH_REWRITING < pages_of_file:
            return
        # From now on it keeps track of its pages, so this happens once.
        connection.execute(MAKE_INCREMENTAL)
        connection.execute(REWRITE)
        return
    # Each page that is given back is a row of the answer: the statement has to be read to its end.
    connection.execute(f"PRAGMA incremental_vacuum({pages:d})").fetchall()


def size_of(connection: sqlite3.Connection, path: Path) -> StoreSize:
    """What the file takes on the disk."""
    (free,) = connection.execute(FREE_PAGES).fetchone()
    (page,) = connection.execute(PAGE_BYTES).fetchone()
    (events, _, _) = connection.execute(queries.COUNT).fetchone()
    (removed, _, _) = connection.execute(queries.COUNT_REMOVED).fetchone()
    (runs,) = connection.execute(ARCHIVED_RUNS).fetchone()
    log = path.with_name(f"{path.name}-wal")
    return StoreSize(
        journal=path.stat().st_size,
        free=free * page,
        log=log.stat().st_size if log.exists() else 0,
        events=events,
        archived=removed,
        archived_runs=runs,
    )
