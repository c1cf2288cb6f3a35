"""Scrubbing: removes all copies of erased bytes from the file and its log.

Overwriting a row is not enough: when SQLite splits or joins pages, it leaves copies of rows in their unused parts. So
the whole file is rewritten after an erasure. Until that has succeeded, a scrub is pending, also after a restart."""

from __future__ import annotations

import sqlite3
from typing import Final

MARK_PENDING: Final = "PRAGMA user_version = 1"
"""Record in the file that a scrub is pending; part of the transaction that erases."""

MARK_DONE: Final = "PRAGMA user_version = 0"
"""Record in the file that no scrub is pending."""

IS_PENDING: Final = "PRAGMA user_version"
"""Whether a scrub is pending: 1 or 0."""

REWRITE_FILE: Final = "VACUUM"
"""Rewrite every page of the file from its rows."""

EMPTY_LOG: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
"""Move everything from the write-ahead log into the file and empty the log."""


class Scrubber:
    """Scrubs after erasures, on the connection that writes."""

    def __init__(self, connection: sqlite3.Connection, *, busy_ms: int) -> None:
        self._connection = connection
        self._busy_ms = busy_ms
        (pending,) = connection.execute(IS_PENDING).fetchone()
        self.is_pending = bool(pending)
        self._is_rewritten = False

    def mark_pending(self) -> None:
        """Note that an erasure was committed, together with its mark in the file."""
        self.is_pending, self._is_rewritten = True, False

    def scrub(self, *, patience_ms: int) -> bool:
        """Try to remove all old bytes; a reader of an older snapshot delays this. Whether it succeeded."""
        if not self._is_rewritten:
            # Once: while a reader holds up the log, rewriting the file again each time would only make the log grow.
            self._connection.execute(REWRITE_FILE)
            self._is_rewritten = True
        if self.empty_log(patience_ms=patience_ms):
            # Only when the log is empty, too: it has copies of the old pages until then.
            self._connection.execute(MARK_DONE)
            self.is_pending = False
        return not self.is_pending

    def empty_log(self, *, patience_ms: int) -> bool:
        """Whether the log could be emptied into the file; waits that long for readers of older snapshots."""
        self._connection.execute(f"PRAGMA busy_timeout = {patience_ms:d}")
        try:
            (is_blocked, _, _) = self._connection.execute(EMPTY_LOG).fetchone()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {self._busy_ms:d}")
        return not is_blocked
