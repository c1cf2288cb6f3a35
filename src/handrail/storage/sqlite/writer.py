"""The writer thread of the SQLite store: the only one that writes; many appends share one sync (group commit).

All jobs that were queued since the last commit share one transaction; callers are answered only after COMMIT returned.
Appends are checked in append.py; errors are classified in faults.py."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from threading import Thread
from typing import Final, TypeAlias

from msgspec import Struct

from handrail.domain.errors import HandrailError, Unavailable
from handrail.engine.measuring.measures import NO_MEASURES, Measures
from handrail.storage.admission import closed
from handrail.storage.sqlite import queries
from handrail.storage.sqlite.append import Append, Appender
from handrail.storage.sqlite.archives.compaction import give_back
from handrail.storage.sqlite.faults import BELOW, Fault, StoreLocation, fault_of, stopped, store_error
from handrail.storage.sqlite.inbox import Inbox
from handrail.storage.sqlite.migration import applied_schema, newer_schema
from handrail.storage.sqlite.scrub import Scrubber

CLOSE_WAIT_MS: Final = 200
"""How long closing waits for other processes, before it leaves the log to the next process that opens the file."""

Answer: TypeAlias = HandrailError | None


class Amendment(Struct, frozen=True):
    """A write that is not an append, in a transaction of its own; `scrubs` if no copy of old bytes may stay."""

    write: Callable[[sqlite3.Connection, Appender], None]
    future: asyncio.Future[None] | None = None
    scrubs: bool = False


class Compaction(Struct, frozen=True):
    """Give free pages back to the disk, outside of a transaction of ours."""

    pages: int
    future: asyncio.Future[None] | None = None


class LeaseWrite(Struct, frozen=True):
    """A write to leases only: shares its transaction with the appends around it, and keeps the appender's cache."""

    write: Callable[[sqlite3.Connection, Appender], None]
    future: asyncio.Future[None] | None = None


Job: TypeAlias = Append | LeaseWrite | Amendment | Compaction


class Writer:
    """Owns the one connection that writes, and the thread that uses it."""

    def __init__(self, connection: sqlite3.Connection, place: StoreLocation, measures: Measures = NO_MEASURES) -> None:
        self._connection = connection
        self._measures = measures
        self._place = place
        self._appender = Appender(connection)
        self._inbox: Inbox[Job] = Inbox(place.name)
        self._process = os.getpid()
        self._schema = applied_schema(connection)
        self._seen = -1
        """The version of the file in which the schema was looked at last."""
        self._broken: HandrailError | None = None
        self._scrubber = Scrubber(connection, busy_ms=place.busy_ms)
        self._thread = Thread(target=self._work, name="handrail-writer", daemon=True)
        self._thread.start()

    def put(self, job: Job, size: int) -> None:
        """Queue a job; its future is resolved when it is synced or refused."""
        if self._broken is not None:
            raise stopped(self._broken, self._place.name)
        if os.getpid() != self._process:  # a forked process has no copy of the thread
            raise closed(self._place.name)
        self._inbox.put(job, size)

    def stop(self) -> None:
        """Accept no more jobs; queued ones are still written, then the connection is closed."""
        self._inbox.close()

    def join(self) -> None:
        """Wait until everything is written and closed."""
        self._thread.join()

    def _work(self) -> None:
        jobs: Sequence[Job] = ()
        try:
            if self._scrubber.is_pending:
                self._is_scrubbed(patience_ms=0)
            while jobs := self._inbox.take():
                # Appends share a transaction, and so a sync. An amendment (an erasure, a rebuilt row) gets its own: if
                # it fails, the appends around it must not fail with it.
                for kind, group in groupby(jobs, key=_alone):
                    together = list(group)
                    _deliver(together, self._done(kind, together))
                if self._scrubber.is_pending:
                    self._is_scrubbed(patience_ms=0)
            self._leave()
        finally:  # whatever ends this thread, no caller may wait forever
            self._inbox.close()
            while unanswered := jobs or self._inbox.take():
                _deliver(unanswered, [closed(self._place.name) for _ in unanswered])
                jobs = ()
            self._connection.close()

    def _done(self, kind: type[Job] | None, jobs: Sequence[Job]) -> Sequence[Answer]:
        if kind is Compaction:
            return [self._compacted(job) for job in jobs if isinstance(job, Compaction)]
        return self._amended(jobs) if kind is Amendment else self._answers(jobs)

    def _compacted(self, job: Compaction) -> Answer:
        """Give free pages back; a rewritten file has no effect on what is remembered of streams."""
        if self._broken is not None:
            return stopped(self._broken, self._place.name)
        try:
            give_back(self._connection, job.pages)
        except BELOW as error:
            return store_error(error, self._place)
        return None

    def _answers(self, jobs: Sequence[Job]) -> Sequence[Answer]:
        """Do jobs in one transaction; the answer to each caller."""
        if self._broken is not None:
            return [stopped(self._broken, self._place.name) for _ in jobs]
        started_s = time.perf_counter()
        try:
            with self._transaction():
                answers = self._written(jobs)
            self._measures.committed(len(jobs), time.perf_counter() - started_s)
            return answers  # noqa: TRY300 - a measurement that fails is answered like any other bug here
        except Exception as error:  # even a bug here must not leave a caller waiting
            fault = fault_of(error)
            if fault is Fault.REFUSED and len(jobs) > 1:
                return [answer for job in jobs for answer in self._answers([job])]  # repeated alone: one of them is bad
            if fault is Fault.LASTING:
                self._broken = store_error(error, self._place)
            return [store_error(error, self._place) for _ in jobs]

    def _written(self, jobs: Sequence[Job]) -> Sequence[Answer]:
        answers: list[Answer] = []
        for kind, group in groupby(jobs, key=type):  # in order of arrival: a claim sees the appends before it
            if kind is Append:
                answers += self._appender.append([job for job in group if isinstance(job, Append)])
                continue
            for job in group:
                if isinstance(job, LeaseWrite | Amendment):
                    job.write(self._connection, self._appender)
                    answers.append(None)
            if kind is Amendment:
                self._appender.forget()
        return answers

    def _amended(self, jobs: Sequence[Job]) -> Sequence[Answer]:
        """Do amendments one by one; several erasures at once share one scrub."""
        answers = [answer for job in jobs for answer in self._answers([job])]
        erasures = [
            number
            for number, (job, answer) in enumerate(zip(jobs, answers, strict=True))
            if answer is None and isinstance(job, Amendment) and job.scrubs
        ]
        if erasures:
            # The mark in the file is part of the erasure's own transaction: if the process ends before the old bytes
            # are gone, the next one goes on with it.
            self._scrubber.mark_pending()
            if not self._is_scrubbed(patience_ms=self._place.busy_ms):
                for number in erasures:
                    answers[number] = _not_scrubbed(self._place.name)
        return answers

    def _is_scrubbed(self, *, patience_ms: int) -> bool:
        """Try a pending scrub; what was committed stays committed, and a failed scrub is tried again later."""
        try:
            return self._broken is None and self._scrubber.scrub(patience_ms=patience_ms)
        except BELOW as error:
            if fault_of(error) is Fault.LASTING:
                self._broken = store_error(error, self._place)
            return False

    def _leave(self) -> None:
        """Try to leave an empty log; otherwise the next process that opens the file empties it."""
        if self._scrubber.is_pending:
            self._is_scrubbed(patience_ms=CLOSE_WAIT_MS)
        elif self._broken is None:
            with suppress(*BELOW):
                self._scrubber.empty_log(patience_ms=CLOSE_WAIT_MS)

    def _require_own_schema(self) -> None:
        """Refuse to write once a newer handrail has migrated the file; looked at only after others have written."""
        (version,) = self._connection.execute(queries.OTHERS_WROTE).fetchone()
        if version == self._seen:
            return
        if (newer := newer_schema(self._connection, self._schema)) is not None:
            raise newer
        self._seen = version

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute(queries.BEGIN_WRITE)
        try:
            self._require_own_schema()
            yield
            self._connection.execute(queries.COMMIT)
        except BaseException:
            self._appender.forget()
            # Some errors (a full disk) make SQLite roll back by itself; a second ROLLBACK would then hide the first
            # error.
            if self._connection.in_transaction:
                self._connection.execute(queries.ROLLBACK)
            raise


def _alone(job: Job) -> type[Job] | None:
    """The kind of a job that shares no transaction with others."""
    return type(job) if isinstance(job, Amendment | Compaction) else None


def _not_scrubbed(name: str) -> HandrailError:
    return Unavailable(
        f"the text is erased, but copies may stay in {name} until the file is rewritten: "
        "a process still reads an older snapshot, or the disk is full",
        hint="stop long reads, such as a running verification; handrail tries again by itself",
    )


def _deliver(jobs: Sequence[Job], answers: Sequence[Answer]) -> None:
    """Answer every caller in its own event loop, with one call into each loop."""
    waiting = [(job.future, answer) for job, answer in zip(jobs, answers, strict=True) if job.future is not None]
    for loop in {future.get_loop() for future, _ in waiting}:
        with suppress(RuntimeError):  # a closed loop has no waiting callers
            # One call for a whole batch: waking a loop costs a write to a pipe each time.
            loop.call_soon_threadsafe(_settle, loop, waiting)


def _settle(loop: asyncio.AbstractEventLoop, waiting: Sequence[tuple[asyncio.Future[None], Answer]]) -> None:
    for future, answer in waiting:
        if future.done() or future.get_loop() is not loop:  # cancelled and gone, or answered elsewhere
            continue
        if answer is None:
            future.set_result(None)
        else:
            future.set_exception(answer)
