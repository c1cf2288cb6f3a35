-- The journal: events in lanes, and beside them the ends of streams, the projections and the leases.
-- Everything has its schema's name before it: nothing may depend on a session, because a pooler can stand in between.

create schema if not exists handrail;

-- An era is the time in which streams were born. Its events are a partition: old ones can be stored elsewhere.
create table handrail.era (
    id     integer     primary key,
    opened timestamptz not null default now()
);

-- A lane is numbered from 1 without gaps. An append takes whichever is free, so nobody waits and each lane becomes
-- visible in its order. `tick` is the position of its last event in the order of all: see handrail.positions.
create table handrail.lane (
    id   integer primary key,
    era  integer not null references handrail.era (id),
    last bigint  not null default 0,
    tick bigint  not null default 0
) with (fillfactor = 10);

create table handrail.event (
    era     integer          not null,
    lane    integer          not null,
    number  bigint           not null,
    tick    bigint           not null,
    stream  text collate "C" not null,
    n       bigint           not null,
    at      bigint           not null,
    kind    text             not null,
    actor   text             not null,
    step    text,
    attempt bigint,
    format  bigint           not null,
    salt    bytea            not null,
    body    bytea            not null,
    hash    bytea            not null,
    erased  bytea,
    primary key (era, lane, number),
    unique (era, stream, n)
) partition by list (era);

-- The end of a stream and who holds it: what an append compares and swaps. `wake_at` is when a run needs a worker
-- next: 0 for now, null if it waits for others. Leases are operational: nothing that is proved looks at them.
create table handrail.head (
    stream  text collate "C" primary key,
    era     integer not null,
    n       bigint  not null,
    hash    bytea   not null,
    tick    bigint  not null default 0,
    owner   text collate "C" not null default '',
    epoch   bigint  not null default 0,
    wake_at bigint,
    project text collate "C" not null default ''
) with (fillfactor = 60);

-- Small, however many runs are open: what a worker looks for, by project and in the order of its pages.
create index head_by_owner on handrail.head (owner) where owner <> '';
create index head_held on handrail.head (project, stream) where owner <> '';
create index head_awake on handrail.head (project, stream) where owner = '' and wake_at is not null;

create table handrail.worker (
    id   text collate "C" primary key,
    beat bigint not null
) with (fillfactor = 50);

create table handrail.run (
    id         text collate "C" primary key,
    workflow   text   not null,
    definition text   not null,
    mode       text   not null,
    status     text   not null,
    goal       text   not null,
    started    bigint not null,
    updated    bigint not null,
    ended      bigint,
    done       bigint not null,
    n          bigint not null,
    head       bytea  not null,
    project    text collate "C" not null default '',
    exceptions bigint not null default 0
) with (fillfactor = 70);

create index run_by_status on handrail.run (status, id);
create index run_by_project on handrail.run (project, status, id);

create table handrail.step (
    run          text collate "C" not null references handrail.run (id),
    path         text collate "C" not null,
    status       text   not null,
    attempts     bigint not null,
    started      bigint,
    ended        bigint,
    due          bigint,
    actor        text   not null,
    proof        text   not null,
    compensation text   not null,
    category     text   not null,
    message      text   not null,
    primary key (run, path)
) with (fillfactor = 70);

create table handrail.plan (
    project    text collate "C" not null default '',
    id         text collate "C" not null,
    version    bigint not null,
    definition text   not null,
    name       text   not null,
    steps      bigint not null,
    saved      bigint not null,
    retired    bigint,
    n          bigint not null,
    head       bytea  not null,
    primary key (project, id)
);

-- Texts that runs and plans are pinned to, by content hash.
create table handrail.definition (
    hash text collate "C" primary key,
    body bytea not null
);

-- Open an era: its partition and its 64 lanes. The id of a lane says its era: era * 128 + number.
create function handrail.open_era(wanted integer) returns void language plpgsql as $$
begin
    insert into handrail.era (id) values (wanted);
    execute format('create table handrail.event_of_era_%s partition of handrail.event for values in (%s)', wanted, wanted);
    insert into handrail.lane (id, era) select wanted * 128 + number, wanted from generate_series(0, 63) number;
end $$;

select handrail.open_era(1);

-- The one change an event may see is its erasure: place, header and hash stay, and it happens once.
create function handrail.event_stays() returns trigger language plpgsql as $$
begin
    if tg_op <> 'UPDATE' then
        raise exception 'events are never removed';
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

create trigger event_stays before update or delete on handrail.event
    for each row execute function handrail.event_stays();

create function handrail.definition_stays() returns trigger language plpgsql as $$
begin
    raise exception 'definitions are never changed or removed';
end $$;

create trigger definition_stays before update or delete on handrail.definition
    for each row execute function handrail.definition_stays();

-- Compare and swap the ends of streams, with their leases where `checks` says so, take a free lane, write everything.
-- All or nothing: if any end differs, nothing is written and the ends as they are come back. The caller then knows who
-- was refused and repeats the rest. Locks are taken in one order (ends by name, definitions by hash, lanes by era), so
-- that two appends never wait for each other.
create function handrail.append(
    streams text[], old_ns bigint[], old_hashes bytea[], checks boolean[], old_owners text[], old_epochs bigint[],
    new_ns bigint[], new_hashes bytea[], new_owners text[], new_epochs bigint[], wakes smallint[], projects text[],
    e_streams text[], e_ns bigint[], e_ats bigint[], e_kinds text[], e_actors text[], e_steps text[],
    e_attempts bigint[], e_formats bigint[], e_salts bytea[], e_bodies bytea[], e_hashes bytea[], e_eraseds bytea[],
    r_ids text[], r_workflows text[], r_definitions text[], r_modes text[], r_statuses text[], r_goals text[],
    r_starteds bigint[], r_updateds bigint[], r_endeds bigint[], r_dones bigint[], r_ns bigint[], r_heads bytea[],
    r_projects text[], r_exceptions bigint[],
    s_runs text[], s_paths text[], s_statuses text[], s_attempts bigint[], s_starteds bigint[], s_endeds bigint[],
    s_dues bigint[], s_actors text[], s_proofs text[], s_compensations text[], s_categories text[], s_messages text[],
    p_rows jsonb, d_hashes text[], d_bodies bytea[]
) returns table (stream text, n bigint, hash bytea, owner text, epoch bigint) language plpgsql
-- A plan that was made while a table was small would read all of it from then on: every access here is by an index.
set enable_seqscan = off set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    born integer;
    one record;
    free record;
    any_lane integer;
    before bigint;
    ends bigint;
begin
    if 0 = any(old_ns) then
        select max(id) into born from handrail.era;
        insert into handrail.head (stream, era, n, hash)
            select s, born, 0, h from unnest(streams, old_ns, old_hashes) t (s, k, h) where k = 0 order by s
            on conflict do nothing;
    end if;
    perform 1 from handrail.head h where h.stream = any(streams) order by h.stream for no key update;
    if exists (
        select 1 from unnest(streams, old_ns, old_hashes, checks, old_owners, old_epochs) t (s, k, ha, c, o, e)
        left join handrail.head h on h.stream = s
        where h.stream is null or h.n <> k or h.hash <> ha or (c and (h.owner <> o or h.epoch <> e))
    ) then
        return query select h.stream, h.n, h.hash, h.owner, h.epoch from handrail.head h where h.stream = any(streams);
        delete from handrail.head h where h.stream = any(streams) and h.n = 0;
        return;
    end if;
    if cardinality(d_hashes) > 0 then
        insert into handrail.definition (hash, body)
            select h, b from unnest(d_hashes, d_bodies) t (h, b) order by h on conflict do nothing;
    end if;
    for one in
        select h.era, count(*) as events, max(h.tick) as tick
        from unnest(e_streams) s join handrail.head h on h.stream = s group by h.era order by h.era
    loop
        select id, last, tick into free from handrail.lane where era = one.era
            order by id limit 1 for no key update skip locked;
        if not found then
            -- All are taken: wait for any of them. It is chosen first: a condition would draw anew for every row.
            select id into any_lane from handrail.lane where era = one.era order by random() limit 1;
            select id, last, tick into strict free from handrail.lane where id = any_lane for no key update;
        end if;
        -- The next position: later than all events of the lane and of the streams that it goes on with, and about the
        -- time, in 32 parts of a millisecond since 2020. So the order of all events agrees with every stream and every
        -- lane, without anybody waiting for anybody. The last seven bits tell lanes apart.
        before := greatest(
            free.tick >> 7, one.tick >> 7, (extract(epoch from clock_timestamp()) * 32000)::bigint - 50490777600000);
        ends := ((before + one.events) << 7) | (free.id & 127);
        update handrail.lane set last = last + one.events, tick = ends where id = free.id;
        insert into handrail.event (
            era, lane, number, tick, stream, n, at, kind, actor, step, attempt, format, salt, body, hash, erased)
        select one.era, free.id, free.last + place, ((before + place) << 7) | (free.id & 127),
            s, n, a, k, ac, st, att, f, sa, b, ha, er
        from (
            select t.*, row_number() over (order by o) as place
            from unnest(
                e_streams, e_ns, e_ats, e_kinds, e_actors, e_steps, e_attempts, e_formats, e_salts, e_bodies, e_hashes,
                e_eraseds
            ) with ordinality t (s, n, a, k, ac, st, att, f, sa, b, ha, er, o)
            join handrail.head h on h.stream = s and h.era = one.era
        ) placed;
        update handrail.head h set
            n = nn, hash = nh, tick = ends, owner = case when c then o else h.owner end,
            epoch = case when c then e else h.epoch end, wake_at = case w when 0 then h.wake_at when 1 then 0 end,
            project = coalesce(p, h.project)
        from unnest(streams, checks, new_ns, new_hashes, new_owners, new_epochs, wakes, projects)
            t (s, c, nn, nh, o, e, w, p)
        where h.stream = s and h.era = one.era;
    end loop;
    if cardinality(r_ids) > 0 then
        perform handrail.put_runs(
            r_ids, r_workflows, r_definitions, r_modes, r_statuses, r_goals, r_starteds, r_updateds, r_endeds, r_dones,
            r_ns, r_heads, r_projects, r_exceptions);
    end if;
    if cardinality(s_runs) > 0 then
        perform handrail.put_steps(
            s_runs, s_paths, s_statuses, s_attempts, s_starteds, s_endeds, s_dues, s_actors, s_proofs, s_compensations,
            s_categories, s_messages);
    end if;
    if p_rows is not null then
        perform handrail.put_plans(p_rows);
    end if;
end $$;

create function handrail.put_runs(
    r_ids text[], r_workflows text[], r_definitions text[], r_modes text[], r_statuses text[], r_goals text[],
    r_starteds bigint[], r_updateds bigint[], r_endeds bigint[], r_dones bigint[], r_ns bigint[], r_heads bytea[],
    r_projects text[], r_exceptions bigint[]
) returns void language plpgsql as $$
begin
    insert into handrail.run (
        id, workflow, definition, mode, status, goal, started, updated, ended, done, n, head, project, exceptions)
    select * from unnest(
        r_ids, r_workflows, r_definitions, r_modes, r_statuses, r_goals, r_starteds, r_updateds, r_endeds, r_dones,
        r_ns, r_heads, r_projects, r_exceptions)
    on conflict (id) do update set
        workflow = excluded.workflow, definition = excluded.definition, mode = excluded.mode, status = excluded.status,
        goal = excluded.goal, started = excluded.started, updated = excluded.updated, ended = excluded.ended,
        done = excluded.done, n = excluded.n, head = excluded.head, project = excluded.project,
        exceptions = excluded.exceptions;
end $$;

create function handrail.put_steps(
    s_runs text[], s_paths text[], s_statuses text[], s_attempts bigint[], s_starteds bigint[], s_endeds bigint[],
    s_dues bigint[], s_actors text[], s_proofs text[], s_compensations text[], s_categories text[], s_messages text[]
) returns void language plpgsql as $$
begin
    insert into handrail.step (
        run, path, status, attempts, started, ended, due, actor, proof, compensation, category, message)
    select * from unnest(
        s_runs, s_paths, s_statuses, s_attempts, s_starteds, s_endeds, s_dues, s_actors, s_proofs, s_compensations,
        s_categories, s_messages)
    on conflict (run, path) do update set
        status = excluded.status, attempts = excluded.attempts, started = excluded.started, ended = excluded.ended,
        due = excluded.due, actor = excluded.actor, proof = excluded.proof, compensation = excluded.compensation,
        category = excluded.category, message = excluded.message;
end $$;

create function handrail.put_plans(p_rows jsonb) returns void language plpgsql as $$
begin
    insert into handrail.plan (project, id, version, definition, name, steps, saved, retired, n, head)
    select p.project, p.id, p.version, p.definition, p.name, p.steps, p.saved, p.retired, p.n, p.head
    from jsonb_populate_recordset(null::handrail.plan, p_rows) p
    on conflict (project, id) do update set
        version = excluded.version, definition = excluded.definition, name = excluded.name, steps = excluded.steps,
        saved = excluded.saved, retired = excluded.retired, n = excluded.n, head = excluded.head;
end $$;

-- The first place of each lane whose event is of an instant or later, less one: places are about in the order of time.
create function handrail.places_at(instant bigint) returns table (lane integer, number bigint) language plpgsql as $$
declare
    one record;
    low bigint;
    high bigint;
    middle bigint;
    found_at bigint;
begin
    for one in select l.id, l.era, l.last from handrail.lane l where l.last > 0 loop
        low := 0;
        high := one.last;
        while low < high loop
            middle := (low + high) / 2;
            select e.at into found_at from handrail.event e
                where e.era = one.era and e.lane = one.id and e.number = middle + 1;
            if found_at < instant then low := middle + 1; else high := middle; end if;
        end loop;
        lane := one.id;
        number := low;
        return next;
    end loop;
end $$;

-- The last number of a lane whose event is not after a position: positions grow along a lane.
create function handrail.number_at(wanted integer, at_tick bigint) returns bigint language plpgsql stable as $$
declare
    low bigint := 0;
    high bigint;
    middle bigint;
    found_tick bigint;
begin
    select last into high from handrail.lane where id = wanted;
    while low < high loop
        middle := (low + high + 1) / 2;
        select tick into found_tick from handrail.event where era = wanted >> 7 and lane = wanted and number = middle;
        if found_tick <= at_tick then low := middle; else high := middle - 1; end if;
    end loop;
    return low;
end $$;
