"""The file of the SQLite store: created for its owner only, recognised, and opened for writing or reading.

Only what opening needs is read or written here. The connections belong to writer.py and reader.py."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.foundation.atomic_file import make_private_folder, sync_folder
from handrail.storage.migrations import Migration
from handrail.storage.sqlite.faults import BELOW, PRIMARY_CODE, StoreLocation, code_of, store_error
from handrail.storage.sqlite.migration import applied_schema, migrate, pending
from handrail.storage.sqlite.queries import BEGIN_WRITE, ROLLBACK

APPLICATION_ID: Final = 0x48524A4C
SQLITE_NEEDED: Final = (3, 37, 0)  # STRICT tables
WAL_PAGES: Final = 4_000  # about 16 MB; fewer and larger checkpoints than by default
WAL_BYTES_KEPT: Final = 64_000_000
BEFORE_UPGRADE: Final = ".schema-"
"""Between the name of a journal and the schema of its copy from before an upgrade."""
PART: Final = ".part"
ABANDONED_S: Final = 3_600
"""A copy that was not written to for so long was left by a killed process."""
CACHE_KIB: Final = 4_000
RETRY_S: Final = 0.01

IS_EMPTY: Final = "SELECT count(*) = 0 FROM sqlite_schema"
"""Whether a database is still empty."""

WRITER_SETTINGS: Final = (
    "PRAGMA synchronous = FULL",  # a commit returns when it is on the disk
    "PRAGMA fullfsync = ON",  # and not only in the disk's own cache; only macOS needs this
    "PRAGMA secure_delete = ON",  # what is erased is overwritten
    "PRAGMA foreign_keys = ON",
    "PRAGMA recursive_triggers = ON",  # otherwise REPLACE could remove events without firing the triggers
    f"PRAGMA wal_autocheckpoint = {WAL_PAGES}",
    f"PRAGMA journal_size_limit = {WAL_BYTES_KEPT}",
    f"PRAGMA cache_size = -{CACHE_KIB}",
)


def open_writer(place: StoreLocation, migrations: Sequence[Migration]) -> sqlite3.Connection:
    """A connection for writing, to a file that is created if necessary and migrated to the current schema."""
    _require_sqlite()
    try:
        _make_private(place.path)
    except OSError as error:
        raise Unavailable(
            f"{place.name} can't be created: {error.strerror}",
            hint="make the folder of HANDRAIL_HOME writable, or choose another one",
        ) from error
    try:
        connection = _connect(place, "rw")
        with closed_on_error(connection):
            _require_ours(connection, place.name)
            # Only after we know that the file is ours: some of these settings change a database permanently.
            for setting in WRITER_SETTINGS:
                connection.execute(setting)
            _switch_to_wal(connection, place)
            _require_writable(connection, place)
            if (schema := applied_schema(connection)) and pending(connection, migrations):
                keep_before_upgrade(connection, place.path, schema)
            migrate(connection, migrations)
    except BELOW as error:
        raise store_error(error, place) from error
    return connection


def open_reader(place: StoreLocation) -> sqlite3.Connection:
    """A connection that only reads; each query sees everything committed so far."""
    _require_sqlite()
    try:
        connection = _connect(place, "ro")
        with closed_on_error(connection):
            _require_ours(connection, place.name)
    except BELOW as error:
        if _is_at_rest(error, place.path):
            # A backup on a read-only disk: without this, SQLite would want to create its log beside the file.
            return _connect(place, "ro&immutable=1")
        raise store_error(error, place) from error
    return connection


def keep_before_upgrade(connection: sqlite3.Connection, path: Path, schema: int) -> None:
    """Keep a copy of a journal before its tables are changed: the way back to an older handrail.

    Only the copy from before the last upgrade stays. Without space for it nothing is upgraded."""
    kept = path.with_name(f"{path.name}{BEFORE_UPGRADE}{schema}")
    if kept.exists():
        return
    part = kept.with_name(f"{kept.name}.{os.urandom(4).hex()}{PART}")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL, 0o600))
        connection.execute("VACUUM INTO ?", (str(part),))
        part.replace(kept)
    finally:
        part.unlink(missing_ok=True)
    for other in path.parent.glob(f"{path.name}{BEFORE_UPGRADE}*"):
        if other != kept and not _is_being_written(other):
            other.unlink(missing_ok=True)


def _is_being_written(copy: Path) -> bool:
    """Whether another process that upgrades the same journal may be writing this copy now."""
    if copy.suffix != PART:
        return False
    try:
        return time.time() - copy.stat().st_mtime < ABANDONED_S
    except FileNotFoundError:
        return True  # it has just got its name


@contextmanager
def closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Close a connection if its first use fails."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


class OlderSchema(Unavailable):
    """The database must be migrated before it can be read."""


def require_present_schema(
    connection: sqlite3.Connection, place: StoreLocation, migrations: Sequence[Migration]
) -> None:
    """Refuse to read a database that needs a migration first, which only a writer does."""
    try:
        missing = pending(connection, migrations)
    except BELOW as error:
        raise store_error(error, place) from error
    if missing:
        raise OlderSchema(f"{place.name} is empty or was written by an older handrail", hint="open it once for writing")


def _require_sqlite() -> None:
    if sqlite3.sqlite_version_info < SQLITE_NEEDED:
        raise Unavailable(
            f"handrail needs SQLite 3.37 or newer; this Python brings {sqlite3.sqlite_version}",
            hint="use a newer Python",
        )


def _connect(place: StoreLocation, mode: str) -> sqlite3.Connection:
    uri = f"{place.path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=place.busy_ms / 1_000, isolation_level=None, check_same_thread=False)


def _make_private(path: Path) -> None:
    """Create the file and its folder if they are missing, readable by the owner only."""
    make_private_folder(path.absolute().parent)
    try:
        file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    except FileExistsError:
        return
    os.close(file)
    path.chmod(0o600)  # whatever the umask is
    # Otherwise a power failure could take away the whole file, although its content was synced.
    sync_folder(path.absolute().parent)


def _require_ours(connection: sqlite3.Connection, name: str) -> None:
    # In this order: another process may create the database between the two queries.
    (is_empty,) = connection.execute(IS_EMPTY).fetchone()
    (application_id,) = connection.execute("PRAGMA application_id").fetchone()
    if application_id != APPLICATION_ID and (application_id or not is_empty):
        raise IntegrityBroken(f"{name} is the database of another program", hint="choose another file")


def _switch_to_wal(connection: sqlite3.Connection, place: StoreLocation) -> None:
    """Turn write-ahead logging on; SQLite does not wait for others here, so we do."""
    deadline = time.monotonic() + place.busy_ms / 1_000
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() > deadline:
                raise
            time.sleep(RETRY_S)
            continue
        if mode != "wal":
            raise Unavailable(
                f"{place.name} is on a disk that does not support write-ahead logging", hint="use a local disk"
            )
        return


def _require_writable(connection: sqlite3.Connection, place: StoreLocation) -> None:
    """Fail now, not at the first append, if the file can't be written."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute(BEGIN_WRITE)  # not enough of a test: SQLite allows it even if nothing can be written
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    except sqlite3.OperationalError as error:
        if not _is_busy(error):
            raise
    finally:
        if connection.in_transaction:
            connection.execute(ROLLBACK)
        connection.execute(f"PRAGMA busy_timeout = {place.busy_ms:d}")


def _is_busy(error: sqlite3.Error) -> bool:
    code = code_of(error)
    return code is not None and code & PRIMARY_CODE == sqlite3.SQLITE_BUSY


def _is_at_rest(error: Exception, path: Path) -> bool:
    """Whether a file could not be opened only because its folder is read-only, and no process is writing it."""
    log = path.with_name(path.name + "-wal")
    return (
        code_of(error) == sqlite3.SQLITE_CANTOPEN
        and path.is_file()
        and os.access(path, os.R_OK)
        # With events still in the log, an immutable reader would not see them, and report an old state as the truth.
        and not (log.exists() and log.stat().st_size)
    )
