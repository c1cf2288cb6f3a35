-- The outbox: what waits to be sent to channels, and how far the journal was read for each. Operational, like leases.

-- `owner` serves the channel until the instant `until`; `state` is how far it is, `switch` who has disabled it, if anybody has.
CREATE TABLE outbox_channel (
    name   TEXT    PRIMARY KEY,
    owner  TEXT    NOT NULL DEFAULT '',
    until  INTEGER NOT NULL DEFAULT 0,
    state  BLOB    NOT NULL,
    switch BLOB
) STRICT, WITHOUT ROWID;

CREATE TABLE outbox_message (
    channel  TEXT    NOT NULL,
    number   INTEGER NOT NULL,
    id       TEXT    NOT NULL,
    subject  TEXT    NOT NULL,
    due      INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    tried    INTEGER NOT NULL,
    error    TEXT    NOT NULL,
    dead     INTEGER NOT NULL,
    notice   BLOB    NOT NULL,
    PRIMARY KEY (channel, number)
) STRICT, WITHOUT ROWID;

-- What waits, by what it is about: only the first of each may be sent.
CREATE INDEX outbox_message_by_subject ON outbox_message (channel, subject, number) WHERE dead = 0;
