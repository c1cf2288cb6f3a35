"""Faults: what goes wrong below the SQLite store, told as errors of ours.

Only here sqlite3's errors are read. What a fault means for the writer is its `Fault`; its words are for the caller."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Final

from msgspec import Struct

from handrail.domain.errors import Forbidden, HandrailError, IntegrityBroken, Invalid, NotFound, Unavailable

PRIMARY_CODE: Final = 0xFF


class Fault(Enum):
    """What a failed transaction means for those that follow it."""

    REFUSED = "what the caller sent can't be stored; others are not touched by it"
    PASSING = "nothing was written; a later append may well succeed"
    LASTING = "nobody knows what is on the disk; nothing more is acknowledged until a restart"


class Place(Struct, frozen=True, kw_only=True):
    """Where a store is kept, and how long to wait for others who write to it."""

    path: Path
    busy_ms: int
    read_only: bool

    @property
    def name(self) -> str:
        """The file's name: all that a caller far away may know of the place."""
        return self.path.name


FAULTS: Final[Mapping[int, Fault]] = {
    sqlite3.SQLITE_CONSTRAINT: Fault.REFUSED,
    sqlite3.SQLITE_MISMATCH: Fault.REFUSED,
    sqlite3.SQLITE_TOOBIG: Fault.REFUSED,
    sqlite3.SQLITE_BUSY: Fault.PASSING,
    sqlite3.SQLITE_LOCKED: Fault.PASSING,
    sqlite3.SQLITE_PROTOCOL: Fault.PASSING,
    sqlite3.SQLITE_FULL: Fault.PASSING,
    sqlite3.SQLITE_READONLY: Fault.PASSING,
    sqlite3.SQLITE_PERM: Fault.PASSING,
    sqlite3.SQLITE_CANTOPEN: Fault.PASSING,
}
"""By primary result code; whatever is not named here lasts."""

DAMAGE: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA}
)
"""Primary result codes that say: the file is not what was written. No SQL of ours is wrong in a sound file."""

BELOW: Final = (sqlite3.Error, UnicodeDecodeError)
"""What comes out of sqlite3: a damaged schema can make even the words of its error unreadable."""

UNSTORABLE: Final = (OverflowError, UnicodeEncodeError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
"""What Python raises for values that SQLite can't take."""


def fault_of(error: Exception) -> Fault:
    """What an error in a write transaction means for the appends that follow."""
    if isinstance(error, HandrailError):
        return Fault.LASTING if isinstance(error, IntegrityBroken) else Fault.REFUSED
    code = code_of(error)
    if code is None:
        return Fault.REFUSED if isinstance(error, UNSTORABLE) else Fault.LASTING
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return Fault.PASSING  # no room for the shared index: nothing has been written yet
    return FAULTS.get(code & PRIMARY_CODE, Fault.LASTING)


def code_of(error: Exception) -> int | None:
    """SQLite's own result code, if the error comes from SQLite and not from Python's wrapping."""
    code = getattr(error, "sqlite_errorcode", None)
    return code if isinstance(code, int) else None


def told(error: Exception, place: Place) -> HandrailError:
    """The error a caller gets for a fault below the store."""
    if isinstance(error, HandrailError):
        return type(error)(str(error), hint=error.hint)  # each waiting caller raises an instance of its own
    code = code_of(error)
    primary = None if code is None else code & PRIMARY_CODE
    name = place.name
    if fault_of(error) is Fault.REFUSED:
        return Invalid(f"{name} can't take this append: {error}")
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        held = f"{place.busy_ms / 1_000:g} s"
        return Unavailable(f"another handrail process has held the store {name} for {held}; nothing was written")
    if primary == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return _disk_full(place)
    if primary in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
        return read_only_place(name)
    if primary == sqlite3.SQLITE_CANTOPEN:
        return _cannot_open(place)
    if primary in DAMAGE or isinstance(error, UnicodeDecodeError):
        return IntegrityBroken(f"{name} is damaged: {error}")
    return Unavailable(
        f"the disk or the system failed under {name} ({error}); whether this was kept shows after a restart",
        hint="look after the disk, then restart handrail",
    )


def stopped(cause: HandrailError, name: str) -> HandrailError:
    """What every append gets after a lasting fault."""
    if isinstance(cause, IntegrityBroken):
        return IntegrityBroken(f"{name} takes no more events since it was found damaged; reading goes on")
    return Unavailable(
        f"{name} takes no more events since the disk or the system failed under it; reading goes on",
        hint="look after the disk, then restart handrail",
    )


def read_only_place(name: str) -> HandrailError:
    """What a writer gets where nothing can be written."""
    return Unavailable(
        f"{name} can't be written: the file, its folder or its disk is read-only",
        hint="give handrail the right to write there, or open the store for reading only",
    )


def reading_only(name: str) -> HandrailError:
    """What an append gets in a store that was opened for reading."""
    return Forbidden(f"{name} is open for reading only", hint="open the store for writing")


def _disk_full(place: Place) -> HandrailError:
    free = shutil.disk_usage(place.path.parent).free
    return Unavailable(
        f"the disk is full: {place.name} can't grow ({free // 1_024} KiB are left); nothing was written",
        hint="make room; handrail then goes on by itself",
    )


def _cannot_open(place: Place) -> HandrailError:
    if not place.path.exists():
        return NotFound(f"there is no store {place.name}", hint="check the path, or open it for writing to make one")
    if place.path.is_file() and not place.read_only:
        return read_only_place(place.name)
    return Unavailable(
        f"{place.name} can't be opened: it is no file, or handrail may not use it or its folder",
        hint="check the path and the rights of the file and its folder",
    )
