-- The fleet: the processes that execute runs on this store, as each says of itself. Operational, like leases.

-- `seen` is the instant of its last beat by the clock of the database, `card` what it said with it, `paused` who has
-- paused it, if anybody has.
create table handrail.node (
    id     text collate "C" primary key,
    beat   bigint      not null,
    seen   timestamptz not null,
    paused text        not null default '',
    card   bytea       not null
) with (fillfactor = 70);

-- What the node must have that goes on with a run (`gpu`, or `gpu,linux|mac`), as of this event of the run: after the
-- next one nobody knows, and any node looks.
alter table handrail.head add column needs text not null default '', add column needs_n bigint not null default 0;
