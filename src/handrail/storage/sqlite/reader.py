"""Reading the SQLite store: a few threads, each with a read-only connection, which never block the writer.

Rows are converted in rows.py; the queries are chosen in store.py."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeVar

from handrail.domain.errors import HandrailError, IntegrityBroken
from handrail.domain.journal.chain import Record
from handrail.engine.journal import Placed, Row
from handrail.storage.admission import closed
from handrail.storage.sqlite.faults import BELOW, StoreLocation, store_error
from handrail.storage.sqlite.file import closed_on_error, open_reader
from handrail.storage.sqlite.migration import newer_schema, shipped
from handrail.storage.sqlite.queries import BEGIN_READ, LAST_PLACE, ROLLBACK
from handrail.storage.sqlite.rows import event_rows_after, lane_rows_after

THREADS: Final = 3

Answer = TypeVar("Answer")
AnyRow = TypeVar("AnyRow", bound=Row)


class Readers:
    """The threads that read, and the connections that are free for the next query."""

    def __init__(self, place: StoreLocation) -> None:
        self._place = place
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="handrail-reader")
        self._idle: list[sqlite3.Connection] = []

    async def ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Run a query on the store as it is now."""
        return await self._in_thread(lambda: self._answer(question))

    async def snapshot(self) -> ReadSnapshot:
        """A snapshot of the store, on a connection of its own; end it with `leave`."""
        return await self._in_thread(lambda: ReadSnapshot(self._place))

    async def batch(self, snapshot: ReadSnapshot, *, after: int, size: int) -> list[Placed]:
        """The next records of a snapshot."""
        return await self._in_thread(lambda: snapshot.batch(after, size))

    async def rows(self, snapshot: ReadSnapshot, *, after: int, size: int) -> list[Row]:
        """The next rows of a snapshot."""
        return await self._in_thread(lambda: snapshot.rows(after, size))

    def leave(self, snapshot: ReadSnapshot) -> None:
        """End a snapshot, without waiting for a query that may still run on it."""
        try:
            # In a thread, behind a query that may be running: closing under it would crash SQLite.
            self._threads.submit(snapshot.close)
        except RuntimeError:  # the threads were closed in the meantime, so no query is running
            snapshot.close()

    def close(self) -> None:
        """Finish the queries that are running, then close every connection."""
        self._threads.shutdown()
        self._close_idle()

    def abandon(self) -> None:
        """Close without waiting."""
        self._threads.shutdown(wait=False)
        self._close_idle()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    async def _in_thread(self, work: Callable[[], Answer]) -> Answer:
        try:
            answer = asyncio.get_running_loop().run_in_executor(self._threads, work)
        except RuntimeError as error:
            raise closed(self._place.name) from error
        return await answer

    def _answer(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        try:
            # At most one for each thread, so the list needs no bound; pop and append of a list are atomic.
            connection = self._idle.pop()
        except IndexError:
            connection = open_reader(self._place)
        try:
            return question(connection)
        except BELOW as error:
            raise _newer(connection) or store_error(error, self._place) from error
        finally:
            self._idle.append(connection)


class ReadSnapshot:
    """A read transaction on a connection of its own, so that other queries still see new events."""

    def __init__(self, place: StoreLocation) -> None:
        self._place = place
        self._lock = Lock()  # an abandoned query may still run when the snapshot is closed
        self._connection = open_reader(place)
        try:
            with closed_on_error(self._connection):
                self._connection.execute(BEGIN_READ)
                self._connection.execute(LAST_PLACE).fetchone()  # SQLite takes the snapshot at the first query
        except BELOW as error:
            raise store_error(error, place) from error

    def batch(self, after: int, size: int) -> list[Placed]:
        """The next records after a position, at most `size`."""
        rows = self._asked(event_rows_after, after, size)
        _require_behind(rows[-1][0] if rows else after + 1, after)
        return [Placed(row[0], Record(*row[1:])) for row in rows]

    def rows(self, after: int, size: int) -> list[Row]:
        """The same as plain columns, of whatever types are stored, behind their lane."""
        rows = self._asked(lane_rows_after, after, size)
        _require_behind(rows[-1][1] if rows else after + 1, after)
        return rows

    def _asked(
        self, question: Callable[[sqlite3.Connection, int, int], list[AnyRow]], after: int, size: int
    ) -> list[AnyRow]:
        try:
            with self._lock:
                return question(self._connection, after, size)
        except BELOW as error:
            fault = store_error(error, self._place)
            if isinstance(fault, IntegrityBroken):
                raise IntegrityBroken(f"{fault} (in the events after position {after})") from error
            raise fault from error

    def close(self) -> None:
        """End the read transaction."""
        with self._lock:
            self._connection.close()


def _newer(connection: sqlite3.Connection) -> HandrailError | None:
    """Whether a query failed because a newer handrail has changed the tables: that is no damage."""
    try:
        return newer_schema(connection, shipped()[-1].number)
    except BELOW:
        return None


def _require_behind(last: int, after: int) -> None:
    if last <= after:
        raise IntegrityBroken(f"the events after position {after} are out of order")


@contextmanager
def one_view(connection: sqlite3.Connection) -> Iterator[None]:
    """Run several queries on one snapshot, so that nothing changes between them."""
    connection.execute(BEGIN_READ)
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute(ROLLBACK)
