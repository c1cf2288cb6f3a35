"""Every SQL query of the PostgreSQL store, each with a name and a sentence. The schema is in sql/.

Columns are listed once, in the order of the struct fields (domain/journal/chain.py, domain/journal/projection.py), so
that rows and structs convert into each other by position."""

# ruff: noqa: S608 (queries are built from the column names below, never from values)

from __future__ import annotations

from typing import Final

from handrail.domain.run.status import RUN_WORKING

_RECORD: Final = "stream, n, at, kind, actor, step, attempt, format, salt, body, hash, erased"
_RUN: Final = (
    "id, workflow, definition, mode, status, goal, started, updated, ended, done, n, head, project, exceptions"
)
_STEP: Final = "run, path, status, attempts, started, ended, due, actor, proof, compensation, category, message"
_PLAN: Final = "id, version, definition, name, steps, saved, retired, n, head, project"
_STATUSES: Final = "', '".join(sorted(status.value for status in RUN_WORKING))
_WORKING: Final = f"run.status in ('{_STATUSES}') and run.mode = 'run'"

SERVER: Final = """
    select pg_backend_pid(), current_setting('server_version_num'), current_setting('synchronous_commit'),
        current_setting('server_encoding'), pg_is_in_recovery()"""
"""What must be known of a server before it is used."""

# --- writing --------------------------------------------------------------------------------------

APPEND: Final = f"select * from handrail.append({', '.join(f'${number}' for number in range(1, 54))})"
"""Append what follows the ends of its streams; the ends as they are if something does not."""

ENDS: Final = """
    select wanted.stream, coalesce(head.n, 0), head.hash, coalesce(head.owner, ''), coalesce(head.epoch, 0),
        run.id is not null
    from unnest($1::text[]) wanted (stream)
    left join handrail.head on head.stream = wanted.stream left join handrail.run on run.id = wanted.stream"""
"""The ends of streams, their leases, and whether they are runs with a row."""

KEPT: Final = """
    select wanted.stream, wanted.n from unnest($1::text[], $2::bigint[], $3::bytea[]) wanted (stream, n, hash)
    join handrail.head on head.stream = wanted.stream
    join handrail.event on event.era = head.era and event.stream = wanted.stream and event.n = wanted.n
        and event.hash = wanted.hash"""
"""Which of these events are in the store."""

LOCK_STREAM: Final = "select n from handrail.head where stream = $1 for no key update"
"""Keep everybody else from appending to a stream, until the transaction ends."""

ERASE_EVENT: Final = """
    update handrail.event set salt = $1, body = $2, erased = $3
    where era = (select era from handrail.head where stream = $4) and stream = $4 and n = $5"""
"""Replace the text of an event with its erased form; a trigger in the schema refuses this a second time."""

DROP_STEPS: Final = "delete from handrail.step where run = $1"
"""Remove the rows of a run's steps."""

DROP_RUN: Final = "delete from handrail.run where id = $1"
"""Remove the row of a run; its steps must be removed first."""

DROP_PLAN: Final = "delete from handrail.plan where project = $1 and id = $2"
"""Remove the row of a plan."""

NOTICES_ABOUT: Final = "select channel, number, notice from handrail.outbox_message where subject = $1"
"""What waits for channels, or is dead, and is about a stream."""

DROP_NOTICE: Final = "delete from handrail.outbox_message where channel = $1 and number = $2"
"""Remove a notice."""

DROP_NOTICES_ABOUT: Final = "delete from handrail.outbox_message where subject = $1"
"""Remove all notices about a stream."""

PUT_RUNS: Final = f"select handrail.put_runs({', '.join(f'${number}' for number in range(1, 15))})"
"""Insert or replace rows of runs."""

PUT_STEPS: Final = f"select handrail.put_steps({', '.join(f'${number}' for number in range(1, 13))})"
"""Insert or replace rows of steps."""

PUT_PLANS: Final = "select handrail.put_plans($1)"
"""Insert or replace rows of plans."""

WAKE_AGAIN: Final = f"""
    update handrail.head set project = coalesce(run.project, ''), wake_at = case when run.id is not null then 0 end
    from (select $1::text as stream) wanted
    left join handrail.run on run.id = wanted.stream and {_WORKING}
    where head.stream = wanted.stream"""
"""Say again whether a run needs a worker, after its row was rewritten."""

# --- leases ---------------------------------------------------------------------------------------

BEAT: Final = """
    insert into handrail.worker (id, beat) values ($1, 1) on conflict (id) do update set beat = worker.beat + 1"""
"""Increase the beat of a worker by one."""

PUT_WORKER: Final = "insert into handrail.worker (id, beat) values ($1, 1) on conflict (id) do nothing"
"""Add a worker, unless it is there already."""

DROP_WORKER: Final = "delete from handrail.worker where id = $1"
"""Remove a worker."""

CLAIM: Final = f"""
    with seen as (
        select * from unnest($2::text[], $3::text[], $4::bigint[], $5::bigint[]) t (run, owner, epoch, beat)
    ), locked as (
        select head.stream from handrail.head join seen on seen.run = head.stream
        order by head.stream for no key update of head
    )
    update handrail.head set owner = $1, epoch = seen.epoch + 1 from seen, locked, handrail.run
    where locked.stream = seen.run and head.stream = seen.run and run.id = seen.run and {_WORKING}
    and head.owner = seen.owner and head.epoch = seen.epoch
    and coalesce((select beat from handrail.worker where worker.id = head.owner), 0) = seen.beat
    returning head.stream, head.epoch"""
"""Claim runs that still have work and whose lease is unchanged since it was seen."""

RELEASE: Final = """
    with given as (
        select * from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[])
            t (run, owner, epoch, rests_at, until)
    ), locked as (
        select head.stream from handrail.head join given on given.run = head.stream
        order by head.stream for no key update of head
    )
    update handrail.head set
        owner = '', wake_at = case when given.rests_at = head.n then given.until else head.wake_at end
    from given, locked
    where locked.stream = given.run and head.stream = given.run and head.owner = given.owner
    and head.epoch = given.epoch"""
"""Release leases that are held exactly like this; the epoch stays, so that the next owner's is higher. A run
that rests is not woken before its timer, if it has one, unless it has changed since that was seen."""

HAND_OVER: Final = """
    update handrail.head set owner = '', needs = $4, needs_n = $5 where stream = $1 and owner = $2 and epoch = $3"""
"""The same for one lease, and say what the next node must have."""

RELEASE_ALL: Final = "update handrail.head set owner = '' where owner = $1 and owner <> '' returning stream"
"""Release all leases of an owner, and return their runs."""

_HOLDER: Final = """
    select run.id, run.n, coalesce(head.owner, ''), coalesce(head.epoch, 0), coalesce(worker.beat, 0),
        case when head.needs_n = run.n then head.needs else '' end
    from handrail.run left join handrail.head on head.stream = run.id
    left join handrail.worker on worker.id = head.owner"""

HOLDERS: Final = f"{_HOLDER} where {_WORKING} and run.id > $1 order by run.id limit $2"
"""The runs after an id that have work for handrail, with their leases."""

_AWAKE: Final = """
    select found.id, found.n, found.owner, found.epoch, coalesce(worker.beat, 0),
        case when found.needs_n = found.n then found.needs else '' end
    from (
        ({free}) union all ({due}) union all ({held}) order by id limit $2
    ) found left join handrail.worker on worker.id = found.owner order by found.id"""

_PART: Final = f"""
    select run.id, run.n, head.owner, head.epoch, head.needs, head.needs_n
    from handrail.head join handrail.run on run.id = head.stream
    where {{which}} and head.stream > $1 and {_WORKING} order by head.stream limit $2"""
_FREE: Final = "head.owner = '' and head.wake_at = 0"
_DUE: Final = "head.owner = '' and head.wake_at > 0 and head.wake_at <= $3"
_HELD: Final = "head.owner <> ''"
_PROJECT: Final = "head.project = $4 and "

PLANNED: Final = "set local plan_cache_mode = force_custom_plan"
"""Plan the queries of this transaction for their values."""

AWAKE: Final = _AWAKE.format(
    free=_PART.format(which=_FREE), due=_PART.format(which=_DUE), held=_PART.format(which=_HELD)
)
"""The same without runs that rest: three short indexes have all the others, however many rest."""

AWAKE_IN_PROJECT: Final = _AWAKE.format(
    free=_PART.format(which=_PROJECT + _FREE),
    due=_PART.format(which=_PROJECT + _DUE),
    held=_PART.format(which=_PROJECT + _HELD),
)
"""The same for the runs of one project."""

HOLDERS_OF_PROJECT: Final = f"{_HOLDER} where {_WORKING} and run.project = $3 and run.id > $1 order by run.id limit $2"
"""The same for the runs of one project."""

HOLDER: Final = f"{_HOLDER} where run.id = $1 and {_WORKING} and coalesce($2, run.project) = run.project"
"""The same for one run, in any project or in the given one."""

# --- reading --------------------------------------------------------------------------------------

STREAM: Final = f"""
    select {_RECORD} from handrail.event
    where era = (select era from handrail.head where stream = $1) and stream = $1 and n > $2 order by n limit $3"""
"""The events of a stream after a number."""

LANES: Final = "select id, last from handrail.lane where last > 0 order by id"
"""How far each lane is."""

_BETWEEN: Final = "where era = $1 and lane = $2 and number > $3 and number <= $4 order by number limit $5"
PART_OF_LANE: Final = f"""
    (select tick, lane, number, {_RECORD} from handrail.event {_BETWEEN})
    union all
    (select tick, lane, number, stream, n, null, null, null, null, null, null, null, null, hash, null
    from handrail.removed_event {_BETWEEN})
    order by number limit $5"""
"""The next events of a lane; of archived ones, the place, number and hash are left."""

LATEST: Final = f"""
    select event.tick, event.lane, event.number, {", ".join(f"event.{one}" for one in _RECORD.split(", "))}
    from handrail.lane cross join lateral (
        select * from handrail.event found
        where found.era = lane.era and found.lane = lane.id
        and found.number <= case when $1 >= lane.tick then lane.last else handrail.number_at(lane.id, $1) end
        order by found.number desc limit $2
    ) event where lane.last > 0 order by event.tick desc limit $2"""
"""The newest events up to a position, newest first: the last ones of each lane, merged."""

PLACES_AT: Final = "select lane, number from handrail.places_at($1)"
"""The place in each lane behind which events are of an instant or later."""

STREAMS_OF_LANE: Final = "select distinct stream from handrail.event where era = $1 and lane = $2 and number > $3"
"""The streams with events after a place of a lane."""

_HEADS: Final = """
    select head.stream, head.n, coalesce(tombstone.head, head.hash) from handrail.head
    left join handrail.tombstone using (stream)"""
HEADS: Final = f"{_HEADS} where stream = any($1::text[]) order by stream"
"""The ends of these streams."""

HEADS_OF_ALL: Final = f"{_HEADS} where head.n > 0 order by stream"
"""The ends of all streams, also of archived runs."""

IS_ARCHIVED: Final = "select exists (select 1 from handrail.tombstone where stream = $1)"
"""Whether the events of a run are in an archive."""

DEFINITION: Final = "select body from handrail.definition where hash = $1"
"""The text of one definition."""

DEFINITIONS: Final = "select hash, body from handrail.definition order by hash"
"""All definitions."""

RUN: Final = f"select {_RUN} from handrail.run where id = $1"
"""The row of one run."""

RUNS: Final = f"select {_RUN} from handrail.run where id > $1 order by id limit $2"
"""The rows of runs after an id."""

_RUNS_OF_ONE_STATUS: Final = f"""
    select found.* from unnest($1::text[]) wanted (status) cross join lateral (
        select {_RUN} from handrail.run where {{project}}run.status = wanted.status and id > $2 order by id limit $3
    ) found order by id limit $3"""

RUNS_OF_STATUS: Final = _RUNS_OF_ONE_STATUS.format(project="")
"""The same with one of these statuses: a short index scan for each, then merged."""

RUNS_OF_PROJECT: Final = _RUNS_OF_ONE_STATUS.format(project="run.project = $4 and ")
"""The same in one project."""

RUN_COUNTS: Final = """
    select project, status, count(*) from handrail.run group by project, status order by project, status collate "C" """
"""How many runs each project has, by status."""

STEPS: Final = f"select {_STEP} from handrail.step where run = $1 order by path"
"""The rows of a run's steps."""

PLAN: Final = f"select {_PLAN} from handrail.plan where project = $1 and id = $2"
"""The row of one plan."""

PLANS: Final = f"select {_PLAN} from handrail.plan where (project, id) > ($1, $2) order by project, id limit $3"
"""The rows of the plans of all projects, after a project and an id."""

PLANS_OF_PROJECT: Final = f"""
    select {_PLAN} from (
        (select * from handrail.plan where project = $1 and id > $2 order by id limit $3)
        union all
        (select * from handrail.plan older where project = '' and $1 <> '' and id > $2
        and not exists (select 1 from handrail.plan own where own.project = $1 and own.id = older.id)
        order by id limit $3)
    ) found order by id limit $3"""
"""The rows of a project's plans after an id, and of those from before projects that it has not saved itself."""

LOCK_ERAS: Final = "select pg_advisory_xact_lock(1213352524)"
"""Keep everybody else from opening an era, until the transaction ends."""

OPEN_ERA: Final = "select handrail.open_era(1 + max(id)), 1 + max(id) from handrail.era"
"""Open the next era, in which streams are born from then on."""

# --- checking -------------------------------------------------------------------------------------

UNEVEN_LANES: Final = """
    select lane.id from handrail.lane
    left join (
        select lane, count(*) as events, min(number) as first, max(number) as last from (
            select lane, number from handrail.event union all select lane, number from handrail.removed_event
        ) every group by lane
    ) found on found.lane = lane.id
    where coalesce(found.events, 0) <> lane.last or coalesce(found.last, 0) <> lane.last
    or coalesce(found.first, 1) <> 1 order by lane.id limit 10"""
"""Lanes whose events are not numbered from 1 to what their counter says."""

UNORDERED_LANES: Final = """
    select distinct lane from (
        select lane, tick, lag(tick) over (partition by era, lane order by number) as before from (
            select era, lane, number, tick from handrail.event
            union all select era, lane, number, tick from handrail.removed_event
        ) every
    ) found where tick <= before order by lane limit 10"""
"""Lanes whose events are not in the order of their positions."""

UNEVEN_HEADS: Final = """
    select head.stream from handrail.head
    left join handrail.event on event.era = head.era and event.stream = head.stream and event.n = head.n
    left join handrail.removed_event left_of on left_of.stream = head.stream and left_of.n = head.n
    left join handrail.tombstone on tombstone.stream = head.stream
    where head.n > 0 and coalesce(event.hash, left_of.hash) is distinct from coalesce(tombstone.head, head.hash)
    order by head.stream limit 10"""
"""Streams whose end is not what their last event says."""

# --- nodes ----------------------------------------------------------------------------------------

LAST_CHECKPOINT: Final = "select line from handrail.checkpoint order by log desc, number desc limit 1"
"""The newest checkpoint."""

CHECKPOINTS: Final = """
    select number, line from handrail.checkpoint where log = (select max(log) from handrail.checkpoint) and number > $1
    order by number limit $2"""
"""The next checkpoints of the present log."""

HAS_CHECKPOINT: Final = """
    select exists (select 1 from handrail.checkpoint where number = $1 and digest = $2
        and log = (select max(log) from handrail.checkpoint))"""
"""Whether the present log has this checkpoint."""

PUT_CHECKPOINT: Final = """
    insert into handrail.checkpoint (log, number, digest, line)
    select coalesce(max(log), 1), $2, $3, $4 from handrail.checkpoint
    having coalesce((select digest from handrail.checkpoint order by log desc, number desc limit 1), '') = $1
    on conflict do nothing returning number"""
"""Append a checkpoint to the one with this digest, or do nothing."""

RESTART_CHECKPOINTS: Final = """
    insert into handrail.checkpoint (log, number, digest, line)
    select coalesce(max(log), 0) + 1, $1, $2, $3 from handrail.checkpoint"""
"""Begin the next log."""

TAKE_TURN: Final = """
    insert into handrail.turn (name, owner, until) values ($1, $2, clock_timestamp() + $3 * interval '1 second')
    on conflict (name) do update set owner = excluded.owner, until = excluded.until
    where turn.until < clock_timestamp() or turn.owner = excluded.owner returning 1"""
"""Take a turn, or prolong it, if it is free."""

END_TURN: Final = "update handrail.turn set until = clock_timestamp() where name = $1 and owner = $2"
"""Give a turn back."""

PUT_SECRETS: Final = """
    insert into handrail.run_secret (run, key, box) select $1, k, b from unnest($2::text[], $3::bytea[]) t (k, b)
    on conflict (run, key) do update set box = excluded.box"""
"""Store the secrets of a run, sealed for each node."""

SECRETS: Final = "select box from handrail.run_secret where run = $1 and key = $2"
"""The secrets of a run, sealed for one node."""

SEALED_FOR: Final = "select key from handrail.run_secret where run = $1"
"""The nodes that the secrets of a run are sealed for."""

DROP_SECRETS: Final = "delete from handrail.run_secret where run = $1"
"""Remove the secrets of a run that has ended."""
