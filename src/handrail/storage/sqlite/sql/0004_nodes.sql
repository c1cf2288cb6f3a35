-- Nodes: the processes that execute runs here, as each says of itself. Operational, like leases.

-- `seen` is the instant of its last beat, `card` what it said with it, `paused` who has paused it, if anybody has.
CREATE TABLE node (
    id     TEXT    PRIMARY KEY,
    beat   INTEGER NOT NULL,
    seen   INTEGER NOT NULL,
    paused TEXT    NOT NULL DEFAULT '',
    card   BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- What the node must have that goes on with a run, as of this event of the run: after the next one any node looks.
ALTER TABLE lease ADD COLUMN needs TEXT NOT NULL DEFAULT '';

ALTER TABLE lease ADD COLUMN needs_n INTEGER NOT NULL DEFAULT 0;
