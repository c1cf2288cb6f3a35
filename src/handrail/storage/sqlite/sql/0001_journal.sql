-- The journal: events, and beside them the projections that are written in the same transaction.
-- Statements end with a semicolon; all of a file is applied in one transaction, or none of it.

PRAGMA application_id = 0x48524a4c; -- "HRJL": how handrail knows its own files

-- `seq` is the place in the whole store, dense from 1: a removed row leaves a gap that everyone can see.
-- `erased` holds the salted digest of a body whose words are gone.
CREATE TABLE event (
    seq     INTEGER PRIMARY KEY,
    stream  TEXT    NOT NULL,
    n       INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    kind    TEXT    NOT NULL,
    actor   TEXT    NOT NULL,
    step    TEXT,
    attempt INTEGER,
    format  INTEGER NOT NULL,
    salt    BLOB    NOT NULL,
    body    BLOB    NOT NULL,
    hash    BLOB    NOT NULL,
    erased  BLOB,
    UNIQUE (stream, n)
) STRICT;

CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event
BEGIN
    SELECT RAISE(ABORT, 'events are never removed');
END;

-- The one change an event may see is its erasure: place, header and hash stay, and it happens once.
CREATE TRIGGER event_is_never_changed BEFORE UPDATE ON event
WHEN NOT (
    NEW.seq IS OLD.seq AND NEW.stream IS OLD.stream AND NEW.n IS OLD.n AND NEW.at IS OLD.at
    AND NEW.kind IS OLD.kind AND NEW.actor IS OLD.actor AND NEW.step IS OLD.step AND NEW.attempt IS OLD.attempt
    AND NEW.format IS OLD.format AND NEW.hash IS OLD.hash
    AND OLD.erased IS NULL AND NEW.erased IS NOT NULL
)
BEGIN
    SELECT RAISE(ABORT, 'events are never changed, only erased');
END;

-- `number` keeps the rows of runs that are active together close together, whatever their ids are: a commit then
-- touches a few pages instead of two for every run. Columns behind it as in domain/projection.py.
CREATE TABLE run (
    number     INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    workflow   TEXT    NOT NULL,
    definition TEXT    NOT NULL,
    mode       TEXT    NOT NULL,
    status     TEXT    NOT NULL,
    goal       TEXT    NOT NULL,
    started    INTEGER NOT NULL,
    updated    INTEGER NOT NULL,
    ended      INTEGER,
    done       INTEGER NOT NULL,
    n          INTEGER NOT NULL,
    head       BLOB    NOT NULL
) STRICT;

CREATE INDEX run_by_status ON run (status, id);

CREATE TABLE step (
    run          INTEGER NOT NULL REFERENCES run (number),
    path         TEXT    NOT NULL,
    status       TEXT    NOT NULL,
    attempts     INTEGER NOT NULL,
    started      INTEGER,
    ended        INTEGER,
    due          INTEGER,
    actor        TEXT    NOT NULL,
    proof        TEXT    NOT NULL,
    compensation TEXT    NOT NULL,
    category     TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    PRIMARY KEY (run, path)
) STRICT, WITHOUT ROWID;

CREATE TABLE plan (
    id         TEXT    PRIMARY KEY,
    version    INTEGER NOT NULL,
    definition TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    steps      INTEGER NOT NULL,
    saved      INTEGER NOT NULL,
    retired    INTEGER,
    n          INTEGER NOT NULL,
    head       BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- Texts that runs and plans are pinned to, by content hash.
CREATE TABLE definition (
    hash TEXT PRIMARY KEY,
    body BLOB NOT NULL
) STRICT;

CREATE TRIGGER definition_is_never_removed BEFORE DELETE ON definition
BEGIN
    SELECT RAISE(ABORT, 'definitions are never removed');
END;

CREATE TRIGGER definition_is_never_changed BEFORE UPDATE ON definition
BEGIN
    SELECT RAISE(ABORT, 'definitions are never changed');
END;
