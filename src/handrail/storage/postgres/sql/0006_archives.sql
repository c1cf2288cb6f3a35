-- Archived runs: their events are in archive files; what proves the whole store stays here.

-- A run whose events are elsewhere: where its stream ended, and in which file it is (empty if that was deleted). The hash
-- in its head is empty meanwhile, so that nothing can follow it.
create table handrail.tombstone (
    stream  text collate "C" primary key,
    n       bigint not null,
    head    bytea  not null,
    archive text   not null
);

-- What is left of each of their events: its place in its lane, its position, its number and its hash.
create table handrail.removed_event (
    era    integer          not null,
    lane   integer          not null,
    number bigint           not null,
    tick   bigint           not null,
    stream text collate "C" not null,
    n      bigint           not null,
    hash   bytea            not null,
    primary key (era, lane, number),
    unique (stream, n)
);

-- An event leaves only if its place and hash stay.
create or replace function handrail.event_stays() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        if not exists (
            select 1 from handrail.removed_event r
            where r.era = old.era and r.lane = old.lane and r.number = old.number and r.hash = old.hash
        ) then
            raise exception 'events are never removed, only archived';
        end if;
        return old;
    end if;
    if (new.era, new.lane, new.number, new.tick, new.stream, new.n, new.at, new.kind, new.actor, new.format, new.hash)
        is distinct from
        (old.era, old.lane, old.number, old.tick, old.stream, old.n, old.at, old.kind, old.actor, old.format, old.hash)
        or new.step is distinct from old.step or new.attempt is distinct from old.attempt
        or old.erased is not null or new.erased is null
    then
        raise exception 'events are never changed, only erased';
    end if;
    return new;
end $$;

create function handrail.removed_event_stays() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and exists (
        select 1 from handrail.event e
        where e.era = old.era and e.lane = old.lane and e.number = old.number and e.hash = old.hash
    ) then
        return old;
    end if;
    raise exception 'the hash of an archived event is never changed or removed';
end $$;

create trigger removed_event_stays before update or delete on handrail.removed_event
    for each row execute function handrail.removed_event_stays();

-- As before, but places whose event is archived are stepped over.
create or replace function handrail.places_at(instant bigint) returns table (lane integer, number bigint)
language plpgsql as $$
declare
    one record;
    low bigint;
    high bigint;
    middle bigint;
    found_at bigint;
    found_number bigint;
begin
    for one in select l.id, l.era, l.last from handrail.lane l where l.last > 0 loop
        low := 0;
        high := one.last;
        while low < high loop
            middle := (low + high) / 2;
            select e.at, e.number into found_at, found_number from handrail.event e
                where e.era = one.era and e.lane = one.id and e.number > middle order by e.number limit 1;
            if found and found_at < instant then low := found_number; else high := middle; end if;
        end loop;
        lane := one.id;
        number := low;
        return next;
    end loop;
end $$;

create or replace function handrail.number_at(wanted integer, at_tick bigint) returns bigint language plpgsql stable as $$
declare
    low bigint := 0;
    high bigint;
    middle bigint;
    found_tick bigint;
begin
    select last into high from handrail.lane where id = wanted;
    while low < high loop
        middle := (low + high + 1) / 2;
        select tick into found_tick from (
            select tick from handrail.event where era = wanted >> 7 and lane = wanted and number = middle
            union all
            select tick from handrail.removed_event where era = wanted >> 7 and lane = wanted and number = middle
        ) either;
        if found_tick <= at_tick then low := middle; else high := middle - 1; end if;
    end loop;
    return low;
end $$;
