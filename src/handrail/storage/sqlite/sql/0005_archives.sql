-- Archived runs: their events are in archive files; what proves the whole store stays here.

-- A run whose events are elsewhere: where its stream ended, in which file it is (empty if that was deleted), and between
-- which positions its events were.
CREATE TABLE tombstone (
    number  INTEGER PRIMARY KEY,
    stream  TEXT    NOT NULL UNIQUE,
    n       INTEGER NOT NULL,
    head    BLOB    NOT NULL,
    archive TEXT    NOT NULL,
    first   INTEGER NOT NULL,
    last    INTEGER NOT NULL
) STRICT;

-- What is left of each of their events: its position, its number and its hash.
CREATE TABLE removed_event (
    seq       INTEGER PRIMARY KEY,
    tombstone INTEGER NOT NULL,
    n         INTEGER NOT NULL,
    hash      BLOB    NOT NULL
) STRICT;

DROP TRIGGER event_is_never_removed;

CREATE TRIGGER event_is_never_removed BEFORE DELETE ON event
WHEN NOT EXISTS (SELECT 1 FROM removed_event WHERE seq = OLD.seq AND n = OLD.n AND hash = OLD.hash)
BEGIN
    SELECT RAISE(ABORT, 'events are never removed, only archived');
END;

CREATE TRIGGER removed_event_is_never_lost BEFORE DELETE ON removed_event
WHEN NOT EXISTS (SELECT 1 FROM event WHERE seq = OLD.seq AND n = OLD.n AND hash = OLD.hash)
BEGIN
    SELECT RAISE(ABORT, 'the hash of an archived event is never removed');
END;

CREATE TRIGGER removed_event_is_never_changed BEFORE UPDATE ON removed_event
BEGIN
    SELECT RAISE(ABORT, 'the hash of an archived event is never changed');
END;
