-- Limits of calls over all nodes: a token bucket for each rate, and who has how many calls under way. Operational.

create table handrail.rate (
    name   text collate "C" primary key,
    tokens double precision not null,
    at     timestamptz      not null
) with (fillfactor = 50);

create table handrail.calls_under_way (
    name  text collate "C" not null,
    owner text collate "C" not null,
    calls integer          not null,
    primary key (name, owner)
) with (fillfactor = 50);

-- Let a call start that is under these limits, all or none of them: 0, or after how many milliseconds to ask again. A
-- limit is a number of calls at once, or calls in a period of milliseconds, or both. Calls of an owner whose worker was
-- retired do not count. Rows are locked in the order of their names, so that two calls never wait for each other.
create function handrail.enter_call(
    who text, names text[], mosts integer[], amounts double precision[], periods double precision[]
) returns double precision language plpgsql as $$
declare
    one record;
    bucket record;
    wait double precision := 0;
    present timestamptz;
begin
    -- A crash may forget a token or a call: nothing that was promised depends on it.
    perform set_config('synchronous_commit', 'off', true);
    insert into handrail.rate (name, tokens, at)
        select n, coalesce(a, 0), clock_timestamp() from unnest(names, amounts) t (n, a) order by n on conflict do nothing;
    perform 1 from handrail.rate where name = any(names) order by name for no key update;
    present := clock_timestamp();
    for one in select * from unnest(names, mosts, amounts, periods) t (name, most, amount, period) loop
        if one.most is not null and one.most <= (
            select coalesce(sum(u.calls), 0) from handrail.calls_under_way u
            join handrail.worker w on w.id = u.owner where u.name = one.name)
        then
            wait := greatest(wait, 100);
        end if;
        if one.amount is not null then
            select r.tokens, r.at into bucket from handrail.rate r where r.name = one.name;
            bucket.tokens := least(one.amount, bucket.tokens
                + greatest(0, extract(epoch from present - bucket.at)) * 1000 * one.amount / one.period);
            if bucket.tokens < 1 then
                wait := greatest(wait, (1 - bucket.tokens) * one.period / one.amount);
            end if;
        end if;
    end loop;
    if wait > 0 then
        return wait;
    end if;
    update handrail.rate r set
        at = greatest(r.at, present),
        tokens = least(t.amount, r.tokens
            + greatest(0, extract(epoch from present - r.at)) * 1000 * t.amount / t.period) - 1
        from unnest(names, amounts, periods) t (name, amount, period) where r.name = t.name and t.amount is not null;
    insert into handrail.calls_under_way (name, owner, calls)
        select n, who, 1 from unnest(names, mosts) t (n, m) where m is not null order by n
        on conflict (name, owner) do update set calls = calls_under_way.calls + 1;
    return 0;
end $$;

create function handrail.leave_call(who text, wanted text[]) returns void language plpgsql as $$
begin
    perform set_config('synchronous_commit', 'off', true);
    update handrail.calls_under_way set calls = greatest(0, calls - 1) where owner = who and name = any(wanted);
end $$;
