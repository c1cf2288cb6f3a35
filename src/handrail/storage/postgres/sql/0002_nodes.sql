-- Nodes: what several of them need to work on one store. Checkpoints, turns, and secrets sealed for each node.

-- The signed checkpoints. A log that an operator restarts goes on under the next number; the old one stays.
create table handrail.checkpoint (
    log    integer not null,
    number bigint  not null,
    digest text    not null,
    line   bytea   not null,
    primary key (log, number)
);

create function handrail.checkpoint_stays() returns trigger language plpgsql as $$
begin
    raise exception 'checkpoints are never changed or removed';
end $$;

create trigger checkpoint_stays before update or delete on handrail.checkpoint
    for each row execute function handrail.checkpoint_stays();

-- Whose turn it is to do what one node does at a time. By the clock of the database alone; if it jumps, two do it at
-- once, and the digest that a checkpoint follows decides.
create table handrail.turn (
    name  text        primary key,
    owner text        not null,
    until timestamptz not null
);

-- The values of secret inputs of open runs, each sealed for one node: only its key opens them.
create table handrail.run_secret (
    run text collate "C" not null,
    key text             not null,
    box bytea            not null,
    primary key (run, key)
);
