-- Projects: a run and a plan belong to the folder in which they were made. What was written before belongs to none.

ALTER TABLE run ADD COLUMN project TEXT NOT NULL DEFAULT '';

-- How many checks were skipped and approvals overridden: a list says so, for ever. Nothing before could be told apart.
ALTER TABLE run ADD COLUMN exceptions INTEGER NOT NULL DEFAULT 0;

-- For the lists of a project, and for its workers, which look for runs with work in it.
CREATE INDEX run_by_project ON run (project, status, id);

-- The id of a plan is unique within its project only, so the table needs another key. The columns of the key come first:
-- else the integrity check of some versions of SQLite reports values as missing that are there.
CREATE TABLE plan_of_project (
    project    TEXT    NOT NULL DEFAULT '',
    id         TEXT    NOT NULL,
    version    INTEGER NOT NULL,
    definition TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    steps      INTEGER NOT NULL,
    saved      INTEGER NOT NULL,
    retired    INTEGER,
    n          INTEGER NOT NULL,
    head       BLOB    NOT NULL,
    PRIMARY KEY (project, id)
) STRICT, WITHOUT ROWID;

INSERT INTO plan_of_project (id, version, definition, name, steps, saved, retired, n, head)
SELECT id, version, definition, name, steps, saved, retired, n, head FROM plan;

DROP TABLE plan;

ALTER TABLE plan_of_project RENAME TO plan;
