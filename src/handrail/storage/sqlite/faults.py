"""Faults: errors of SQLite, the disk and the system, translated to handrail's errors.

The only module that reads sqlite3's errors. `Fault` says what an error means for the writer; the message is for the
caller."""

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

    REFUSED = "the caller's data can't be stored; other appends are not affected"
    PASSING = "nothing was written; a later append may succeed"
    LASTING = "the state on the disk is unknown; nothing more is acknowledged until a restart"


class StoreLocation(Struct, frozen=True, kw_only=True):
    """The file of a store, and how long to wait for other processes that write to it."""

    path: Path
    busy_ms: int
    read_only: bool

    @property
    def name(self) -> str:
        """The file's name: remote callers are shown no more of the path."""
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
"""By primary result code; all others are lasting."""

DAMAGE: Final = frozenset(
    {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_SCHEMA}
)
"""Primary result codes of a damaged file. They include SQL errors: our SQL is correct in an intact file."""

BELOW: Final = (sqlite3.Error, UnicodeDecodeError)
"""Exceptions of sqlite3: a damaged schema can even make its error message undecodable."""

UNSTORABLE: Final = (OverflowError, UnicodeEncodeError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
"""Exceptions of Python for values that SQLite can't store."""


def fault_of(error: Exception) -> Fault:
    """What an error in a write transaction means for the appends that follow."""
    if isinstance(error, HandrailError):
        return Fault.LASTING if isinstance(error, IntegrityBroken) else Fault.REFUSED
    code = code_of(error)
    if code is None:
        return Fault.REFUSED if isinstance(error, UNSTORABLE) else Fault.LASTING
    if code == sqlite3.SQLITE_IOERR_SHMSIZE:
        return Fault.PASSING  # no space for the shared index: nothing was written yet
    return FAULTS.get(code & PRIMARY_CODE, Fault.LASTING)


def code_of(error: Exception) -> int | None:
    """SQLite's result code; None if the error comes from Python's wrapper."""
    code = getattr(error, "sqlite_errorcode", None)
    return code if isinstance(code, int) else None


def store_error(error: Exception, place: StoreLocation) -> HandrailError:
    """The error that a caller gets for an error of SQLite."""
    if isinstance(error, HandrailError):
        return type(error)(str(error), hint=error.hint)  # a copy: each waiting caller raises its own instance
    code = code_of(error)
    primary = None if code is None else code & PRIMARY_CODE
    name = place.name
    if fault_of(error) is Fault.REFUSED:
        return Invalid(f"{name} can't store this append: {error}")
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
        f"the disk or the system failed while writing {name} ({error}); only a restart shows whether this was saved",
        hint="check the disk, then restart handrail",
    )


def stopped(cause: HandrailError, name: str) -> HandrailError:
    """The error of every append after a lasting fault."""
    if isinstance(cause, IntegrityBroken):
        return IntegrityBroken(f"{name} is damaged and accepts no more events; reading still works")
    return Unavailable(
        f"{name} accepts no more events because the disk or the system failed; reading still works",
        hint="check the disk, then restart handrail",
    )


def read_only_place(name: str) -> HandrailError:
    """The error of a writer if nothing can be written."""
    return Unavailable(
        f"{name} can't be written: the file, its folder or its disk is read-only",
        hint="give handrail write permission there, or open the store for reading only",
    )


def reading_only(name: str) -> HandrailError:
    """The error of an append to a store that was opened for reading."""
    return Forbidden(f"{name} is open for reading only", hint="open the store for writing")


def _disk_full(place: StoreLocation) -> HandrailError:
    free = shutil.disk_usage(place.path.parent).free
    return Unavailable(
        f"the disk is full: {place.name} can't grow ({free // 1_024} KiB are left); nothing was written",
        hint="free some space; handrail then continues by itself",
    )


def _cannot_open(place: StoreLocation) -> HandrailError:
    if not place.path.exists():
        return NotFound(f"there is no store {place.name}", hint="check the path, or open it for writing to create one")
    if place.path.is_file() and not place.read_only:
        return read_only_place(place.name)
    return Unavailable(
        f"{place.name} can't be opened: it is not a file, or handrail has no access to it or its folder",
        hint="check the path and the permissions of the file and its folder",
    )
