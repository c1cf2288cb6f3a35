"""Every SQL text of the SQLite store, each with a name and a sentence. No code; the schema is in sql/.

Columns are named once, in the order of the values' fields (domain/chain.py, domain/projection.py), so that a row is
a value's fields and a value's fields are a row."""

# ruff: noqa: S608 (texts are put together from column names below, never from values)

from __future__ import annotations

from typing import Final

_WHOLE_EVENT: Final = "seq, stream, n, at, kind, actor, step, attempt, format, salt, body, hash"
_EVENT: Final = f"{_WHOLE_EVENT}, erased"
_RUN: Final = "id, workflow, definition, mode, status, goal, started, updated, ended, done, n, head"
_STEP: Final = (
    "run.id, path, step.status, attempts, step.started, step.ended, due, actor, proof, compensation, category, message"
)
_PLAN: Final = "id, version, definition, name, steps, saved, retired, n, head"

# --- writing --------------------------------------------------------------------------------------

BEGIN_WRITE: Final = "BEGIN IMMEDIATE"
"""Start a transaction that holds the write lock from its first moment, so that its checks stay true."""

COMMIT: Final = "COMMIT"
"""End a transaction; a write transaction is synced when this returns."""

ROLLBACK: Final = "ROLLBACK"
"""End a transaction as if it had never begun."""

OTHERS_WROTE: Final = "PRAGMA data_version"
"""A number that changes when another connection has written."""

LAST_PLACES: Final = "SELECT (SELECT max(seq) FROM event), (SELECT max(number) FROM run)"
"""The last place in the store, and the last number of a run."""

END_OF_STREAM: Final = """
    SELECT (SELECT number FROM run WHERE id = ?1), last.n, last.hash, lease.owner, lease.epoch
    FROM (SELECT 1) LEFT JOIN (SELECT n, hash FROM event WHERE stream = ?1 ORDER BY n DESC LIMIT 1) AS last
    LEFT JOIN lease ON lease.run = ?1"""
"""The number of the run that a stream is, if it is one, where the stream ends, if it has begun, and who holds it."""

PUT_EVENT: Final = f"INSERT INTO event ({_WHOLE_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
"""Append an event; the places are constraints, so nothing can stand in one twice."""

PUT_ERASED_EVENT: Final = f"INSERT INTO event ({_EVENT}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
"""Append an event whose words were erased before it came here."""

PUT_RUN: Final = f"""
    INSERT INTO run (number, {_RUN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (number) DO UPDATE SET
        workflow = excluded.workflow, definition = excluded.definition, mode = excluded.mode,
        status = excluded.status, goal = excluded.goal, started = excluded.started, updated = excluded.updated,
        ended = excluded.ended, done = excluded.done, n = excluded.n, head = excluded.head"""
"""Put the row of a run in place of whatever is there."""

MOVE_RUN: Final = "UPDATE run SET updated = ?, done = ?, n = ?, head = ? WHERE number = ?"
"""Change what nearly every event changes of a run, and leave its index alone."""

PUT_STEP: Final = """
    INSERT INTO step VALUES (?, ?, ?, ?, nullif(?, -1), nullif(?, -1), nullif(?, -1), ?, ?, ?, ?, ?)
    ON CONFLICT (run, path) DO UPDATE SET
        status = excluded.status, attempts = excluded.attempts, started = excluded.started, ended = excluded.ended,
        due = excluded.due, actor = excluded.actor, proof = excluded.proof, compensation = excluded.compensation,
        category = excluded.category, message = excluded.message"""
"""Put the row of a step in place of whatever is there; an instant that is not known comes as -1."""

PUT_PLAN: Final = f"""
    INSERT INTO plan ({_PLAN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET
        version = excluded.version, definition = excluded.definition, name = excluded.name, steps = excluded.steps,
        saved = excluded.saved, retired = excluded.retired, n = excluded.n, head = excluded.head"""
"""Put the row of a plan in place of whatever is there."""

PUT_DEFINITION: Final = "INSERT INTO definition (hash, body) VALUES (?, ?) ON CONFLICT (hash) DO NOTHING"
"""Keep a definition's text; the first one stays."""

ERASE_EVENT: Final = "UPDATE event SET salt = ?, body = ?, erased = ? WHERE stream = ? AND n = ?"
"""Put what is left of an event in place of its words; the schema refuses this a second time."""

DROP_STEPS: Final = "DELETE FROM step WHERE run = (SELECT number FROM run WHERE id = ?)"
"""Remove the rows of a run's steps."""

DROP_RUN: Final = "DELETE FROM run WHERE id = ?"
"""Remove the row of a run; its steps must have gone before."""

DROP_PLAN: Final = "DELETE FROM plan WHERE id = ?"
"""Remove the row of a plan."""

# --- leases ---------------------------------------------------------------------------------------

PUT_LEASE: Final = "INSERT INTO lease (run, owner, epoch) VALUES (?, ?, ?)"
"""Say who holds a run that nobody has held before."""

DROP_LEASE: Final = "DELETE FROM lease WHERE run = ?"
"""Forget who held a run, once it has ended."""

BEAT: Final = "INSERT INTO worker (id, beat) VALUES (?, 1) ON CONFLICT (id) DO UPDATE SET beat = beat + 1"
"""Count one more beat of a worker."""

PUT_WORKER: Final = "INSERT INTO worker (id, beat) VALUES (?, 1) ON CONFLICT (id) DO NOTHING"
"""Say that a worker is there, if nobody has."""

DROP_WORKER: Final = "DELETE FROM worker WHERE id = ?"
"""Forget that a worker was there."""

CLAIM: Final = """
    INSERT INTO lease (run, owner, epoch)
    SELECT run.id, ?2, ?4 + 1
    FROM run LEFT JOIN lease ON lease.run = run.id LEFT JOIN worker ON worker.id = lease.owner
    WHERE run.id = ?1 AND run.status IN ('running', 'compensating') AND run.mode = 'run'
    AND ifnull(lease.owner, '') = ?3 AND ifnull(lease.epoch, 0) = ?4 AND ifnull(worker.beat, 0) = ?5
    ON CONFLICT (run) DO UPDATE SET owner = excluded.owner, epoch = excluded.epoch"""
"""Take a run that still has work and whose lease is just as it was seen; one row if so, else none."""

RELEASE: Final = "UPDATE lease SET owner = '' WHERE run = ? AND owner = ? AND epoch = ?"
"""Give a lease back that is held just so; its epoch stays, for the next owner to stand above."""

RELEASE_ALL: Final = "UPDATE lease SET owner = '' WHERE owner = ? RETURNING run, epoch"
"""Give all leases of an owner back; which they were."""

_OPEN_RUNS: Final = """
    SELECT * FROM (
        SELECT id, n FROM run WHERE status = '{status}' AND mode = 'run' AND id > ?1 ORDER BY id LIMIT ?2)"""

HOLDINGS: Final = f"""
    WITH open (id, n) AS (
        {_OPEN_RUNS.format(status="running")} UNION ALL {_OPEN_RUNS.format(status="compensating")}
        ORDER BY id LIMIT ?2)
    SELECT open.id, open.n, ifnull(lease.owner, ''), ifnull(lease.epoch, 0), ifnull(worker.beat, 0)
    FROM open LEFT JOIN lease ON lease.run = open.id LEFT JOIN worker ON worker.id = lease.owner
    ORDER BY open.id"""
"""The runs behind an id that have work for us, with who holds them: two short walks along the index, merged."""

HOLDING: Final = """
    SELECT run.id, run.n, ifnull(lease.owner, ''), ifnull(lease.epoch, 0), ifnull(worker.beat, 0)
    FROM run LEFT JOIN lease ON lease.run = run.id LEFT JOIN worker ON worker.id = lease.owner
    WHERE run.id = ? AND run.mode = 'run' AND run.status IN ('running', 'compensating')"""
"""The same for one run."""

# --- reading --------------------------------------------------------------------------------------

BEGIN_READ: Final = "BEGIN"
"""Start a transaction that reads one unchanging view from its first question on."""

STREAM: Final = f"SELECT {_EVENT} FROM event WHERE stream = ? AND n > ? ORDER BY n LIMIT ?"
"""The events of a stream behind a number."""

PLACES: Final = f"SELECT {_EVENT} FROM event WHERE seq > ? ORDER BY seq LIMIT ?"
"""The events of the store behind a place."""

LAST_PLACE: Final = "SELECT ifnull(max(seq), 0) FROM event"
"""The last place in the store."""

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
"""The ends of all streams, leaping from stream to stream along the index."""

HEADS_BEHIND: Final = f"WITH wanted (stream) AS (SELECT DISTINCT +stream FROM event WHERE seq > ?) {_HEADS}"
"""The ends of the streams that changed behind a place; `+` keeps the search on the places."""

DEFINITION: Final = "SELECT body FROM definition WHERE hash = ?"
"""The text of one definition."""

DEFINITIONS: Final = "SELECT hash, body FROM definition ORDER BY hash"
"""All definitions."""

RUN: Final = f"SELECT {_RUN} FROM run WHERE id = ?"
"""The row of one run."""

RUNS: Final = f"SELECT {_RUN} FROM run WHERE id > ? ORDER BY id LIMIT ?"
"""The rows of runs behind an id."""

_RUNS_OF_ONE_STATUS: Final = f"SELECT * FROM (SELECT {_RUN} FROM run WHERE status = ? AND id > ? ORDER BY id LIMIT ?)"

STEPS: Final = f"SELECT {_STEP} FROM step JOIN run ON run.number = step.run WHERE run.id = ? ORDER BY path"
"""The rows of a run's steps."""

PLAN: Final = f"SELECT {_PLAN} FROM plan WHERE id = ?"
"""The row of one plan."""

PLANS: Final = f"SELECT {_PLAN} FROM plan WHERE id > ? ORDER BY id LIMIT ?"
"""The rows of plans behind an id."""

# --- looking after the file -----------------------------------------------------------------------

INTEGRITY: Final = "PRAGMA integrity_check(100)"
"""What SQLite finds wrong with pages, indexes, types and constraints: `ok`, or up to 100 lines."""

PLAIN_INTEGRITY: Final = "PRAGMA quick_check(100)"
"""The same without the contents of indexes."""

STRAY_ROWS: Final = 'SELECT "table", count(*) FROM pragma_foreign_key_check GROUP BY 1'
"""Rows that belong to a row that is not there, counted by table."""

COUNT: Final = "SELECT count(*), ifnull(min(seq), 1), ifnull(max(seq), 0) FROM event"
"""How many events there are, the first place and the last."""

GAPS: Final = """
    SELECT seq FROM event AS later WHERE seq > 1
    AND NOT EXISTS (SELECT 1 FROM event WHERE seq = later.seq - 1) LIMIT 10"""
"""The first places that stand behind a gap."""


def runs_of(statuses: int) -> str:
    """The rows of runs with one of so many statuses: each status is a short walk along its index, then merged."""
    return " UNION ALL ".join([_RUNS_OF_ONE_STATUS] * statuses) + " ORDER BY id LIMIT ?"
