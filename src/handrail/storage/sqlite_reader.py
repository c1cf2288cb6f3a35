"""Reading the SQLite store: a few threads, each with a read-only connection, never in the writer's way.

What rows mean is sqlite_rows.py's business; which questions there are, sqlite.py's."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import Final, TypeVar

from handrail.domain.chain import Record
from handrail.domain.errors import IntegrityBroken
from handrail.engine.journal import Placed, Row
from handrail.storage.admission import closed
from handrail.storage.queries import BEGIN_READ, LAST_PLACE, PLACES, ROLLBACK
from handrail.storage.sqlite_faults import BELOW, Place, told
from handrail.storage.sqlite_file import closed_on_error, open_reader
from handrail.storage.sqlite_rows import event_rows, unchecked_rows

THREADS: Final = 3

Answer = TypeVar("Answer")
AnyRow = TypeVar("AnyRow", bound=Row)


class Readers:
    """The threads that read, and the connections that wait for the next question."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="handrail-reader")
        self._idle: list[sqlite3.Connection] = []

    async def ask(self, question: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """Put a question to the store as it is now."""
        return await self._in_thread(lambda: self._answer(question))

    async def snapshot(self) -> Snapshot:
        """An unchanging view of the store, on a connection of its own; to be ended by `leave`."""
        return await self._in_thread(lambda: Snapshot(self._place))

    async def batch(self, snapshot: Snapshot, *, after: int, size: int) -> list[Placed]:
        """The next records of a view."""
        return await self._in_thread(lambda: snapshot.batch(after, size))

    async def rows(self, snapshot: Snapshot, *, after: int, size: int) -> list[Row]:
        """The next rows of a view."""
        return await self._in_thread(lambda: snapshot.rows(after, size))

    def leave(self, snapshot: Snapshot) -> None:
        """End a view, without waiting for a question that may still be under way on it."""
        try:
            self._threads.submit(snapshot.close)
        except RuntimeError:  # closed meanwhile: no question is under way
            snapshot.close()

    def close(self) -> None:
        """Answer what was asked, then close every connection."""
        self._threads.shutdown()
        self._close_idle()

    def abandon(self) -> None:
        """Let go without waiting."""
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
            connection = self._idle.pop()
        except IndexError:
            connection = open_reader(self._place)
        try:
            return question(connection)
        except BELOW as error:
            raise told(error, self._place) from error
        finally:
            self._idle.append(connection)


class Snapshot:
    """A read transaction on a connection of its own, so that other questions still see the present."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._lock = Lock()  # an abandoned question may still run when the view is ended
        self._connection = open_reader(place)
        try:
            with closed_on_error(self._connection):
                self._connection.execute(BEGIN_READ)
                self._connection.execute(LAST_PLACE).fetchone()  # the view begins with the first question
        except BELOW as error:
            raise told(error, place) from error

    def batch(self, after: int, size: int) -> list[Placed]:
        """The next records behind a place, at most `size`."""
        return [Placed(row[0], Record(*row[1:])) for row in self._asked(event_rows, after, size)]

    def rows(self, after: int, size: int) -> list[Row]:
        """The same as plain columns, of whatever types are stored."""
        return self._asked(unchecked_rows, after, size)

    def _asked(self, question: Callable[..., list[AnyRow]], after: int, size: int) -> list[AnyRow]:
        try:
            with self._lock:
                rows = question(self._connection, PLACES, (after, size))
        except BELOW as error:
            fault = told(error, self._place)
            if isinstance(fault, IntegrityBroken):
                raise IntegrityBroken(f"{fault} (in the events behind place {after})") from error
            raise fault from error
        if rows and rows[-1][0] <= after:
            raise IntegrityBroken(f"the events behind place {after} are out of order")
        return rows

    def close(self) -> None:
        """Let the view go."""
        with self._lock:
            self._connection.close()


@contextmanager
def one_view(connection: sqlite3.Connection) -> Iterator[None]:
    """Several questions, one answer: nothing changes between them."""
    connection.execute(BEGIN_READ)
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute(ROLLBACK)
