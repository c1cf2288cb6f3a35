"""A second file that follows a SQLite journal: new events with their rows, erasures, definitions; snapshot by snapshot.

Every step is one transaction of the copy: a copy that is killed at any point is a journal, only older. Each new event
has to follow the chain that the copy has, before it is written; leases and nodes are not copied."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.domain.journal.chain import Head, Record, first_break
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import PLAN_PREFIX, RUN_PREFIX, STORE_STREAM
from handrail.domain.journal.store_event import ArchivedRunsDeleted, PayloadErased, RunsArchived, RunsUnarchived
from handrail.domain.project import plan_in
from handrail.storage.archives.archive_folder import ArchiveFolder
from handrail.storage.sqlite import queries, rows
from handrail.storage.sqlite.faults import BELOW, StoreLocation, store_error
from handrail.storage.sqlite.file import closed_on_error, open_writer
from handrail.storage.sqlite.migration import shipped

BATCH: Final = 5_000

ATTACH: Final = "ATTACH ? AS source"
"""Open the journal that is followed, beside the copy."""

SCHEMAS: Final = "SELECT (SELECT max(number) FROM main.migration), (SELECT max(number) FROM source.migration)"
"""The schema of the copy and of the journal."""

LAST_BOTH: Final = """
    SELECT (SELECT ifnull(max(seq), 0) FROM main.event), (SELECT ifnull(max(seq), 0) FROM source.event)"""
"""The last positions in the copy and in the journal."""

HASH_AT: Final = """
    SELECT (SELECT hash FROM main.event WHERE seq = :seq),
        ifnull((SELECT hash FROM source.event WHERE seq = :seq),
            (SELECT hash FROM source.removed_event WHERE seq = :seq))
"""
"""The hashes of the event at a position, in both; in the journal it may have been archived since."""

NEW_EVENTS: Final = queries.PLACES.replace("FROM event", "FROM source.event")
"""The next events of the journal."""

END: Final = "SELECT n, hash FROM main.event WHERE stream = ? ORDER BY n DESC LIMIT 1"
"""The last event of a stream in the copy."""

NEW_DEFINITIONS: Final = """
    INSERT INTO main.definition (rowid, hash, body) SELECT rowid, hash, body FROM source.definition
    WHERE rowid > (SELECT ifnull(max(rowid), 0) FROM main.definition)"""
"""Copy definitions that are new."""

TAKE_ERASURE: Final = """
    UPDATE main.event SET (salt, body, erased) =
        (SELECT salt, body, erased FROM source.event WHERE stream = :stream AND n = :n)
    WHERE stream = :stream AND n = :n AND erased IS NULL"""
"""Erase an event that was erased in the journal."""

DROP_STEPS: Final = "DELETE FROM main.step WHERE run = (SELECT number FROM main.run WHERE id = ?)"
"""Remove the rows of a run's steps."""

DROP_RUN: Final = "DELETE FROM main.run WHERE id = ?"
"""Remove the row of a run."""

TAKE_RUN: Final = "INSERT INTO main.run SELECT * FROM source.run WHERE id = ?"
"""Copy the row of a run."""

TAKE_STEPS: Final = """
    INSERT INTO main.step SELECT * FROM source.step WHERE run = (SELECT number FROM source.run WHERE id = ?)"""
"""Copy the rows of a run's steps."""

DROP_PLAN: Final = "DELETE FROM main.plan WHERE project = ? AND id = ?"
"""Remove the row of a plan."""

TAKE_PLAN: Final = "INSERT INTO main.plan SELECT * FROM source.plan WHERE project = ? AND id = ?"
"""Copy the row of a plan."""


LEFT_IN_SOURCE: Final = "SELECT * FROM source.tombstone WHERE stream = ?"
"""What is left of an archived run in the journal."""

LEFT_IN_COPY: Final = "SELECT number FROM main.tombstone WHERE stream = ?"
"""Whether a run is archived in the copy, too."""

PUT_TOMBSTONE: Final = "INSERT INTO main.tombstone VALUES (?, ?, ?, ?, ?, ?, ?)"
"""Note in the copy what is left of a run."""

MOVE_TOMBSTONES: Final = """
    UPDATE main.tombstone SET archive =
        (SELECT archive FROM source.tombstone AS one WHERE one.stream = tombstone.stream)
    WHERE stream IN (SELECT stream FROM source.tombstone)"""
"""Note in the copy in which archive each run is."""

ARCHIVES_IN_COPY: Final = "SELECT DISTINCT archive FROM main.tombstone WHERE archive <> ''"
"""The archives that the copy needs."""

TAKE_HASHES: Final = """
    INSERT INTO main.removed_event SELECT * FROM source.removed_event
    WHERE seq BETWEEN :first AND :last AND tombstone = :number"""
"""Copy what is left of the events of a run."""

DROP_EVENTS: Final = "DELETE FROM main.event WHERE stream = ?"
"""Remove the events of a run from the copy."""

TAKE_EVENTS: Final = "INSERT INTO main.event SELECT * FROM source.event WHERE stream = ? ORDER BY seq"
"""Copy all events of a run."""

DROP_HASHES: Final = "DELETE FROM main.removed_event WHERE seq IN (SELECT seq FROM main.event WHERE stream = ?)"
"""Remove what was left of events that are back."""

DROP_TOMBSTONE: Final = "DELETE FROM main.tombstone WHERE stream = ?"
"""Forget in the copy that a run is archived."""


class FollowStep(Struct, frozen=True):
    """What one step has copied."""

    events: int
    new: int
    erased: int


class Follower:
    """Copies what is new in a journal into a second file."""

    def __init__(self, journal: Path, copy: Path, *, busy_ms: int) -> None:
        self._place = StoreLocation(path=copy, busy_ms=busy_ms, read_only=False)
        self._connection = open_writer(self._place, shipped())
        self._ends: dict[str, Head] = {}
        self._archives, self._source_archives = ArchiveFolder.beside(copy), ArchiveFolder.beside(journal)
        with closed_on_error(self._connection):
            try:
                self._connection.execute(ATTACH, (f"{journal.absolute().as_uri()}?mode=ro",))
            except BELOW as error:
                raise store_error(error, self._place) from error

    def close(self) -> None:
        """Close the copy."""
        self._connection.close()

    def step(self) -> FollowStep:
        """Copy everything that is new, or nothing."""
        try:
            self._connection.execute(queries.BEGIN_WRITE)
            try:
                done = self._copied()
                self._connection.execute(queries.COMMIT)
            except BaseException:
                self._ends.clear()
                if self._connection.in_transaction:
                    self._connection.execute(queries.ROLLBACK)
                raise
            self._tidy()
            if done.erased:  # no copy of the old bytes may stay in the log
                self._connection.execute("PRAGMA main.wal_checkpoint(TRUNCATE)").fetchone()
        except BELOW as error:
            raise store_error(error, self._place) from error
        return done

    def _copied(self) -> FollowStep:
        ours, theirs = self._connection.execute(SCHEMAS).fetchone()
        if ours != theirs:
            raise Unavailable(
                f"the journal has schema {theirs}, the copy {ours}: another version of handrail wrote it",
                hint="use the same version for both: `handrail db migrate`",
            )
        last, end = self._connection.execute(LAST_BOTH).fetchone()
        self._require_same(last, end)
        self._connection.execute(NEW_DEFINITIONS)
        touched, erased, place = dict[str, None](), list[tuple[str, int]](), last
        moved = dict[str, None]()
        while batch := rows.event_rows(self._connection, NEW_EVENTS, (place, BATCH)):
            records = [Record(*row[1:]) for row in batch]
            self._require_chain(records)
            self._connection.executemany(queries.PUT_ERASED_EVENT, batch)
            place = batch[-1][0]
            touched |= dict.fromkeys(record.stream for record in records)
            erased += _erased_by(records)
            moved |= dict.fromkeys(_moved_by(records))
        for stream in moved:
            self._take_archived(stream)
            touched[stream] = None
        if moved:
            self._connection.execute(MOVE_TOMBSTONES)
        for stream, n in erased:
            self._connection.execute(TAKE_ERASURE, {"stream": stream, "n": n})
            touched[stream] = None
        for stream in touched:
            self._take_rows(stream)
        return FollowStep(place, place - last, len(erased))

    def _require_same(self, last: int, end: int) -> None:
        """Refuse a copy that is not an earlier state of the journal."""
        ours, theirs = self._connection.execute(HASH_AT, {"seq": last}).fetchone() if last else (None, None)
        if last > end or ours != theirs:
            raise IntegrityBroken(
                "the copy has events that the journal does not have: one of the two was restored, or written to",
                hint="verify both: `handrail journal verify`; then follow into a new folder",
            )

    def _require_chain(self, records: Sequence[Record]) -> None:
        for record in records:
            head = self._ends.get(record.stream) or self._end_of(record.stream)
            self._ends[record.stream], broken = first_break(head, [record])
            if broken is not None:
                raise IntegrityBroken(f"event {broken.n} of {broken.stream} was not copied: {broken.reason}")

    def _end_of(self, stream: str) -> Head:
        row = self._connection.execute(END, (stream,)).fetchone()
        return Head(stream, *row) if row else Head(stream)

    def _take_archived(self, stream: str) -> None:
        """Archive a run in the copy, or bring it back there, as it is in the journal now."""
        self._ends.pop(stream, None)
        found = self._connection.execute(LEFT_IN_SOURCE, (stream,)).fetchone()
        is_archived = self._connection.execute(LEFT_IN_COPY, (stream,)).fetchone() is not None
        if found is not None and not is_archived:
            # The file comes first. If it is gone there, a later event says why, and the next step takes that.
            if found[4] and not self._has_archive(found[4]):
                return
            self._connection.execute(PUT_TOMBSTONE, found)
            bounds = {"number": found[0], "first": found[5], "last": found[6]}
            self._connection.execute(TAKE_HASHES, bounds)
            self._connection.execute(DROP_EVENTS, (stream,))
        elif found is None and is_archived:
            self._connection.execute(TAKE_EVENTS, (stream,))
            self._connection.execute(DROP_HASHES, (stream,))
            self._connection.execute(DROP_TOMBSTONE, (stream,))

    def _has_archive(self, archive: str) -> bool:
        """Whether the copy has an archive, or could take it from the home that it follows."""
        if self._archives.path(archive).exists():
            return True
        try:
            self._archives.write(archive, self._source_archives.read(archive))
        except IntegrityBroken:
            return False
        return True

    def _tidy(self) -> None:
        """Take archives that are missing, and remove those that the copy no longer needs."""
        # After the commit: what the copy needed before it may be gone, and nothing that it needs now.
        needed = {archive for (archive,) in self._connection.execute(ARCHIVES_IN_COPY)}
        for archive in needed:
            self._has_archive(archive)
        for archive in set(self._archives.names()) - needed:
            self._archives.remove(archive)

    def _take_rows(self, stream: str) -> None:
        """Copy the projections of a stream."""
        if stream.startswith(RUN_PREFIX):
            for query in (DROP_STEPS, DROP_RUN, TAKE_RUN, TAKE_STEPS):
                self._connection.execute(query, (stream,))
        elif stream.startswith(PLAN_PREFIX):
            for query in (DROP_PLAN, TAKE_PLAN):
                self._connection.execute(query, plan_in(stream))


def _erased_by(records: Sequence[Record]) -> list[tuple[str, int]]:
    events = [entry_of(record).event for record in records if record.stream == STORE_STREAM]
    return [(event.stream, event.event) for event in events if isinstance(event, PayloadErased)]


def _moved_by(records: Sequence[Record]) -> list[str]:
    """The runs that were archived, brought back or deleted."""
    runs = list[str]()
    for record in records:
        match entry_of(record).event if record.stream == STORE_STREAM else None:
            case RunsArchived(runs=archived):
                runs += [one.run for one in archived]
            case RunsUnarchived(runs=others) | ArchivedRunsDeleted(runs=others):
                runs += others
            case _:
                pass
    return runs
