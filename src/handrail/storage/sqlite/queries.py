"""Every SQL query of the SQLite store, each with a name and a sentence. The schema is in sql/.

Columns are listed once, in the order of the struct fields (domain/journal/chain.py, domain/journal/projection.py), so
that rows and structs convert into each other by position."""

# ruff: noqa: S608 (queries are built from the column names below, never from values)

from __future__ import annotations

from typing import Final

from handrail.domain.run.status import RUN_WORKING

_WHOLE_EVENT: Final = "seq, stream, n, at, kind, actor, step, attempt, format, salt, body, hash"
_EVENT: Final = f"{_WHOLE_EVENT}, erased"
_RUN: Final = (
    "id, workflow, definition, mode, status, goal, started, updated, ended, done, n, head, project, exceptions"
)
_STEP: Final = (
    "run.id, path, step.status, attempts, step.started, step.ended, due, actor, proof, compensation, category, message"
)
_PLAN: Final = "id, version, definition, name, steps, saved, retired, n, head, project"
_WORKING: Final = tuple(sorted(status.value for status in RUN_WORKING))
_STATUSES: Final = "', '".join(_WORKING)
_IS_WORKING: Final = f"run.status IN ('{_STATUSES}') AND run.mode = 'run'"

# --- writing --------------------------------------------------------------------------------------

BEGIN_WRITE: Final = "BEGIN IMMEDIATE"
"""Start a transaction that holds the write lock from its start, so that its checks stay true."""

COMMIT: Final = "COMMIT"
"""Commit a transaction; a write transaction is synced to disk when this returns."""

ROLLBACK: Final = "ROLLBACK"
"""Undo a transaction."""

OTHERS_WROTE: Final = "PRAGMA data_version"
"""A number that changes when another connection has written."""

LAST_PLACES: Final = "SELECT (SELECT max(seq) FROM event), (SELECT max(number) FROM run)"
"""The last position in the store, and the last run number."""

END_OF_STREAM: Final = """
    SELECT (SELECT number FROM run WHERE id = :stream), last.n, last.hash, lease.owner, lease.epoch,
        EXISTS (SELECT 1 FROM tombstone WHERE stream = :stream)
    FROM (SELECT 1) LEFT JOIN (SELECT n, hash FROM event WHERE stream = :stream ORDER BY n DESC LIMIT 1) AS last
    LEFT JOIN lease ON lease.run = :stream"""
"""The run number of a stream (if it is a run), its last event (if it has one), its lease, and if it is archived."""

PUT_EVENT: Final = f"INSERT INTO event ({_WHOLE_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
"""Append an event; unique constraints on the positions make a second one at the same position fail."""

PUT_ERASED_EVENT: Final = f"INSERT INTO event ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
"""Append an event that was already erased elsewhere."""

PUT_RUN: Final = f"""
    INSERT INTO run (number, {_RUN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (number) DO UPDATE SET
        workflow = excluded.workflow, definition = excluded.definition, mode = excluded.mode,
        status = excluded.status, goal = excluded.goal, started = excluded.started, updated = excluded.updated,
        ended = excluded.ended, done = excluded.done, n = excluded.n, head = excluded.head,
        project = excluded.project, exceptions = excluded.exceptions"""
"""Insert or replace the row of a run."""

MOVE_RUN: Final = "UPDATE run SET updated = ?, done = ?, n = ?, head = ? WHERE number = ?"
"""Update the columns that nearly every event changes, none of which is indexed."""

PUT_STEP: Final = """
    INSERT INTO step VALUES (?, ?, ?, ?, nullif(?, -1), nullif(?, -1), nullif(?, -1), ?, ?, ?, ?, ?)
    ON CONFLICT (run, path) DO UPDATE SET
        status = excluded.status, attempts = excluded.attempts, started = excluded.started, ended = excluded.ended,
        due = excluded.due, actor = excluded.actor, proof = excluded.proof, compensation = excluded.compensation,
        category = excluded.category, message = excluded.message"""
"""Insert or replace the row of a step; an unknown time is passed as -1."""

PUT_PLAN: Final = f"""
    INSERT INTO plan ({_PLAN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (project, id) DO UPDATE SET
        version = excluded.version, definition = excluded.definition, name = excluded.name, steps = excluded.steps,
        saved = excluded.saved, retired = excluded.retired, n = excluded.n, head = excluded.head"""
"""Insert or replace the row of a plan."""

PUT_DEFINITION: Final = "INSERT INTO definition (hash, body) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
"""Store a definition's text, unless it is stored already."""

ERASE_EVENT: Final = "UPDATE event SET salt = ?, body = ?, erased = ? WHERE stream = ? AND n = ?"
"""Replace the text of an event with its erased form; a trigger in the schema refuses this a second time."""

DROP_STEPS: Final = "DELETE FROM step WHERE run = (SELECT number FROM run WHERE id = ?)"
"""Remove the rows of a run's steps."""

DROP_RUN: Final = "DELETE FROM run WHERE id = ?"
"""Remove the row of a run; its steps must be removed first."""

DROP_PLAN: Final = "DELETE FROM plan WHERE project = ? AND id = ?"
"""Remove the row of a plan."""

NOTICES_ABOUT: Final = "SELECT channel, number, notice FROM outbox_message WHERE subject = ?"
"""What waits for channels, or is dead, and is about a stream."""

DROP_NOTICE: Final = "DELETE FROM outbox_message WHERE channel = ? AND number = ?"
"""Remove a notice."""

DROP_NOTICES_ABOUT: Final = "DELETE FROM outbox_message WHERE subject = ?"
"""Remove all notices about a stream."""

# --- leases ---------------------------------------------------------------------------------------

PUT_LEASE: Final = "INSERT INTO lease (run, owner, epoch) VALUES (?, ?, ?)"
"""Record the owner of a run that had no lease before."""

DROP_LEASE: Final = "DELETE FROM lease WHERE run = ?"
"""Remove the lease of a run that has ended."""

BEAT: Final = "INSERT INTO worker (id, beat) VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET beat = beat + 1"
"""Increase the beat of a worker by one."""

PUT_WORKER: Final = "INSERT INTO worker (id, beat) VALUES (?, 1) ON CONFLICT (id) DO NOTHING"
"""Add a worker, unless it is there already."""

DROP_WORKER: Final = "DELETE FROM worker WHERE id = ?"
"""Remove a worker."""

CLAIM: Final = f"""
    INSERT INTO lease (run, owner, epoch)
    SELECT run.id, :claimer, :epoch + 1
    FROM run LEFT JOIN lease ON lease.run = run.id LEFT JOIN worker ON worker.id = lease.owner
    WHERE run.id = :run AND {_IS_WORKING}
    AND ifnull(lease.owner, '') = :owner AND ifnull(lease.epoch, 0) = :epoch AND ifnull(worker.beat, 0) = :beat
    ON CONFLICT (run) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch"""
"""Claim a run that still has work and whose lease is unchanged since it was seen; changes one row, or none."""

RELEASE: Final = "UPDATE lease SET owner = '' WHERE run = ? AND owner = ? AND epoch = ?"
"""Release a lease that is held exactly like this; the epoch stays, so that the next owner's is higher."""

HAND_OVER: Final = "UPDATE lease SET owner = '', needs = ?, needs_n = ? WHERE run = ? AND owner = ? AND epoch = ?"
"""The same, and say what the next node must have."""

RELEASE_ALL: Final = "UPDATE lease SET owner = '' WHERE owner = ? RETURNING run, epoch"
"""Release all leases of an owner, and return them."""

_OPEN_RUNS: Final = """
    SELECT * FROM (
        SELECT id, n FROM run WHERE {project}status = '{status}' AND mode = 'run' AND id > :after
        ORDER BY id LIMIT :limit)"""

_HOLDINGS: Final = """
    WITH open (id, n) AS (
        {open_runs}
        ORDER BY id LIMIT :limit)
    SELECT open.id, open.n, ifnull(lease.owner, ''), ifnull(lease.epoch, 0), ifnull(worker.beat, 0),
        CASE WHEN lease.needs_n = open.n THEN lease.needs ELSE '' END
    FROM open LEFT JOIN lease ON lease.run = open.id LEFT JOIN worker ON worker.id = lease.owner
    ORDER BY open.id"""

HOLDINGS: Final = _HOLDINGS.format(
    open_runs=" UNION ALL ".join(_OPEN_RUNS.format(project="", status=status) for status in _WORKING)
)
"""The runs after an id that have work for handrail, with their leases: a short index scan a status, merged."""

HOLDINGS_OF_PROJECT: Final = _HOLDINGS.format(
    open_runs=" UNION ALL ".join(
        _OPEN_RUNS.format(project="project = :project AND ", status=status) for status in _WORKING
    )
)
"""The same for the runs of one project."""

HOLDING: Final = f"""
    SELECT run.id, run.n, ifnull(lease.owner, ''), ifnull(lease.epoch, 0), ifnull(worker.beat, 0),
        CASE WHEN lease.needs_n = run.n THEN lease.needs ELSE '' END
    FROM run LEFT JOIN lease ON lease.run = run.id LEFT JOIN worker ON worker.id = lease.owner
    WHERE run.id = :p1 AND {_IS_WORKING}
    AND ifnull(:p2, run.project) = run.project"""
"""The same for one run, in any project or in the given one."""

# --- reading --------------------------------------------------------------------------------------

BEGIN_READ: Final = "BEGIN"
"""Start a transaction that reads one snapshot, taken at its first query."""

STREAM: Final = f"SELECT {_EVENT} FROM event WHERE stream = ? AND n > ? ORDER BY n LIMIT ?"
"""The events of a stream after a number."""

PLACES: Final = f"SELECT {_EVENT} FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
"""The events of the store after a position."""

LANE_PLACES: Final = f"""
    SELECT 0, {_EVENT} FROM event WHERE seq > :p1
    UNION ALL
    SELECT 0, seq, stone.stream, left.n, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, left.hash, NULL
    FROM removed_event AS left LEFT JOIN tombstone AS stone ON stone.number = left.tombstone WHERE seq > :p1
    ORDER BY 2 LIMIT :p2"""
"""The same with the lane of each: this store has one. Of archived events, the place, number and hash are left."""

LATEST: Final = f"SELECT {_EVENT} FROM event WHERE seq <= ? ORDER BY seq DESC LIMIT ?"
"""The events of the store up to a position, newest first."""

INSTANT_BEHIND: Final = "SELECT at FROM event WHERE seq > ? ORDER BY seq LIMIT 1"
"""When the first event after a position was written."""

LAST_PLACE: Final = "SELECT ifnull(max(seq), 0) FROM event"
"""The last position in the store."""

_HEADS: Final = """
    SELECT event.stream, event.n, event.hash FROM wanted CROSS JOIN event
    ON event.stream = wanted.stream AND event.n = (SELECT max(n) FROM event WHERE stream = wanted.stream)
    ORDER BY event.stream"""

HEADS_OF_ALL: Final = f"""
    WITH RECURSIVE wanted (stream) AS (
        SELECT min(stream) FROM event
        UNION ALL
        SELECT (SELECT min(stream) FROM event WHERE stream > wanted.stream) FROM wanted WHERE stream IS NOT NULL
    ) {_HEADS}"""
"""The ends of streams with events; jumps from stream to stream along the index instead of reading every event."""

HEADS_WITH_ARCHIVED: Final = f"""
    SELECT * FROM ({HEADS_OF_ALL}) UNION ALL SELECT stream, n, head FROM tombstone ORDER BY 1"""
"""The same, and those of archived runs."""

HAS_ARCHIVES: Final = "SELECT count(*) FROM sqlite_schema WHERE name = 'tombstone'"
"""Whether the file has a schema that knows archived runs."""

HEADS_BEHIND: Final = f"WITH wanted (stream) AS (SELECT DISTINCT +stream FROM event WHERE seq > ?) {_HEADS}"
"""The ends of the streams that changed after a position; `+` makes SQLite search by position."""

DEFINITION: Final = "SELECT body FROM definition WHERE hash = ?"
"""The text of one definition."""

DEFINITIONS: Final = "SELECT hash, body FROM definition ORDER BY hash"
"""All definitions."""

RUN: Final = f"SELECT {_RUN} FROM run WHERE id = ?"
"""The row of one run."""

RUNS: Final = f"SELECT {_RUN} FROM run WHERE id > ? ORDER BY id LIMIT ?"
"""The rows of runs after an id."""

_RUNS_OF_ONE_STATUS: Final = f"SELECT * FROM (SELECT {_RUN} FROM run WHERE status = ? AND id > ? ORDER BY id LIMIT ?)"

_RUNS_OF_A_PROJECT: Final = f"""
    SELECT * FROM (SELECT {_RUN} FROM run WHERE project = ? AND status = ? AND id > ? ORDER BY id LIMIT ?)"""

RUN_COUNTS: Final = "SELECT project, status, count(*) FROM run GROUP BY project, status ORDER BY project, status"
"""How many runs each project has, by status: read from the index alone."""

STEPS: Final = f"SELECT {_STEP} FROM step JOIN run ON run.number = step.run WHERE run.id = ? ORDER BY path"
"""The rows of a run's steps."""

PLAN: Final = f"SELECT {_PLAN} FROM plan WHERE project = ? AND id = ?"
"""The row of one plan."""

PLANS: Final = f"SELECT {_PLAN} FROM plan WHERE (project, id) > (?, ?) ORDER BY project, id LIMIT ?"
"""The rows of the plans of all projects, after a project and an id."""

PLANS_OF_PROJECT: Final = f"""
    SELECT * FROM (SELECT {_PLAN} FROM plan WHERE project = :p1 AND id > :p2 ORDER BY id LIMIT :p3)
    UNION ALL
    SELECT * FROM (
        SELECT {_PLAN} FROM plan AS older WHERE project = '' AND :p1 <> '' AND id > :p2
        AND NOT EXISTS (SELECT 1 FROM plan WHERE project = :p1 AND id = older.id) ORDER BY id LIMIT :p3)
    ORDER BY id LIMIT :p3"""
"""The rows of a project's plans after an id, and of those from before projects that it has not saved itself."""

# --- checking the file ----------------------------------------------------------------------------

INTEGRITY: Final = "PRAGMA integrity_check(100)"
"""The errors that SQLite finds in pages, indexes, types and constraints: `ok`, or up to 100 lines."""

PLAIN_INTEGRITY: Final = "PRAGMA quick_check(100)"
"""The same without the contents of indexes."""

STRAY_ROWS: Final = 'SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY 1'
"""Rows that refer to a missing row, counted by table."""

COUNT: Final = "SELECT count(*), ifnull(min(seq), 1), ifnull(max(seq), 0) FROM event"
"""The number of events, the first position and the last."""

COUNT_REMOVED: Final = "SELECT count(*), ifnull(min(seq), 1), ifnull(max(seq), 0) FROM removed_event"
"""The same for archived events."""

GAPS: Final = """
    SELECT seq FROM event AS later WHERE seq > 1
    AND NOT EXISTS (SELECT 1 FROM event WHERE seq = later.seq - 1)
    AND NOT EXISTS (SELECT 1 FROM removed_event WHERE seq = later.seq - 1) LIMIT 10"""
"""The first positions that follow a gap."""

TWICE: Final = "SELECT seq FROM event JOIN removed_event USING (seq) LIMIT 10"
"""The first positions with both an event and what is left of an archived one."""


def runs_of(statuses: int, *, in_project: bool = False) -> str:
    """The query for runs with one of that many statuses: a short index scan for each status, then merged."""
    one = _RUNS_OF_A_PROJECT if in_project else _RUNS_OF_ONE_STATUS
    return " UNION ALL ".join([one] * statuses) + " ORDER BY id LIMIT ?"
