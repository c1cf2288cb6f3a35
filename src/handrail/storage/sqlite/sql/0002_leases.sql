-- Leases: which worker executes which run. Operational: neither events nor derived from any, so that nothing that is
-- proved, rebuilt or erased ever looks here.

-- `beat` counts how often a worker has said that it is at work.
CREATE TABLE worker (
    id   TEXT    PRIMARY KEY,
    beat INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- A lease that was given back keeps its row, with no words for an owner, until its run ends: the next owner's epoch is
-- higher then, and whoever still believes in an older one is refused.
CREATE TABLE lease (
    run   TEXT    PRIMARY KEY,
    owner TEXT    NOT NULL,
    epoch INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX lease_by_owner ON lease (owner);
