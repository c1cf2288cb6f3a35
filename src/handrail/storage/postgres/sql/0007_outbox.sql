-- The outbox: what waits to be sent to channels, and how far the journal was read for each. Operational, like leases.

-- `owner` serves the channel until the instant `until`, by the clock of the database; `state` is how far it is, `switch`
-- who has disabled it, if anybody has.
create table handrail.outbox_channel (
    name   text collate "C" primary key,
    owner  text             not null default '',
    until  timestamptz      not null default '-infinity',
    state  bytea            not null,
    switch bytea
) with (fillfactor = 50);

create table handrail.outbox_message (
    channel  text collate "C" not null,
    number   bigint           not null,
    id       text             not null,
    subject  text collate "C" not null,
    due      bigint           not null,
    attempts integer          not null,
    tried    bigint           not null,
    error    text             not null,
    dead     boolean          not null,
    notice   bytea            not null,
    primary key (channel, number)
);

-- What waits, by what it is about: only the first of each may be sent.
create index outbox_message_by_subject on handrail.outbox_message (channel, subject, number) where not dead;
