"""Scrubbing: no copy of erased bytes stays in the file or in its log.

Overwriting a row is not enough: when SQLite splits or joins pages it leaves copies of rows in their unused parts. So
after an erasure the whole file is written anew. Until that has succeeded it is owed, across crashes and restarts."""

from __future__ import annotations

import sqlite3
from typing import Final

OWE: Final = "PRAGMA user_version = 1"
"""Say in the file that a scrub is owed; part of the transaction that erases."""

OWE_NO_MORE: Final = "PRAGMA user_version = 0"
"""Say in the file that no scrub is owed."""

IS_OWED: Final = "PRAGMA user_version"
"""Whether a scrub is owed: 1 or 0."""

WRITE_ANEW: Final = "VACUUM"
"""Write every page of the file anew from its rows."""

EMPTY_LOG: Final = "PRAGMA wal_checkpoint(TRUNCATE)"
"""Move everything from the write-ahead log into the file and cut the log to nothing."""


class Scrubber:
    """Pays the debt of erasures on the connection that writes."""

    def __init__(self, connection: sqlite3.Connection, *, busy_ms: int) -> None:
        self._connection = connection
        self._busy_ms = busy_ms
        (owed,) = connection.execute(IS_OWED).fetchone()
        self.is_owed = bool(owed)
        self._is_anew = False

    def owe(self) -> None:
        """An erasure was committed, and said so in the file."""
        self.is_owed, self._is_anew = True, False

    def settle(self, *, patience_ms: int) -> bool:
        """Try to leave no old bytes behind; someone who still reads an old view delays it."""
        if not self._is_anew:
            self._connection.execute(WRITE_ANEW)
            self._is_anew = True
        if self.empty_log(patience_ms=patience_ms):
            self._connection.execute(OWE_NO_MORE)
            self.is_owed = False
        return not self.is_owed

    def empty_log(self, *, patience_ms: int) -> bool:
        """Whether the log could be emptied into the file; waits for readers of older views, but not longer."""
        self._connection.execute(f"PRAGMA busy_timeout = {patience_ms:d}")
        try:
            (is_blocked, _, _) = self._connection.execute(EMPTY_LOG).fetchone()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {self._busy_ms:d}")
        return not is_blocked
