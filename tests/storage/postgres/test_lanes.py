"""Lanes: many writers, killed and not, lose nothing; readers by mark miss nothing; and no attack passes unseen."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import asyncpg
import pytest

from engine.history import KEY, fill, write
from handrail.domain.errors import HandrailError, Invalid, Unavailable
from handrail.domain.journal.chain import Head, Record, first_break
from handrail.domain.journal.event import DecisionRecorded
from handrail.domain.journal.mark import START, Mark
from handrail.engine.journal import mark_after
from handrail.engine.proving.audit import verify
from handrail.engine.proving.checkpointer import Checkpointer
from handrail.storage.checkpoint_log import CheckpointFile
from handrail.storage.migrations import Migration
from handrail.storage.postgres import migration as postgres_migration
from handrail.storage.postgres import store as postgres_store
from handrail.storage.postgres.store import PostgresStore
from storage.postgres import server
from storage.postgres.databases import new_database
from storage.stories import Story, run_row
from support import ticking_clock

pytestmark = pytest.mark.skipif(bool(server.MISSING), reason=server.MISSING)

WRITING = Path(__file__).with_name("writing.py")
PROCESSES, APPENDS = 3, 12


@pytest.fixture
async def url(tmp_path: Path) -> str:
    return await new_database(tmp_path, "lanes")


async def started(url: str, name: str) -> asyncio.subprocess.Process:
    arguments = [str(WRITING), url, name, str(APPENDS)]
    return await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=asyncio.subprocess.PIPE)


async def heard(process: asyncio.subprocess.Process, *, kill_after: int = 0) -> list[tuple[str, int, str]]:
    """What a writer acknowledged; it is killed after so many lines."""
    acknowledged = []
    assert process.stdout is not None
    async for line in process.stdout:
        match line.decode().split():
            case ["ack", stream, n, digest]:
                acknowledged.append((stream, int(n), digest))
        if kill_after and len(acknowledged) == kill_after:
            process.kill()
    await process.wait()
    return acknowledged


async def follow(store: PostgresStore, stop: asyncio.Event) -> list[Record]:
    """All events, as one who looks for news again and again sees them."""
    mark, seen = START, list[Record]()
    while True:
        is_last = stop.is_set()
        async for batch in store.scan(after=mark):
            seen += [placed.record for placed in batch]
            mark = mark_after(mark, batch)
        if is_last:
            return seen
        await asyncio.sleep(0.005)


async def test_many_writers_of_which_some_are_killed_lose_nothing_and_a_reader_misses_nothing(url: str) -> None:
    async with await PostgresStore.open(url) as store:
        stop = asyncio.Event()
        reader = asyncio.create_task(follow(store, stop))
        acknowledged: list[tuple[str, int, str]] = []
        holder = await asyncpg.connect(url)
        for turn, kill_after in enumerate((25, 0)):
            async with holder.transaction():
                lane = f"select 1 from handrail.lane where id = {128 + turn} for no key update"
                await holder.execute(lane)  # however slow they are, not all are in one lane
                writers = [await started(url, f"{turn}{number}") for number in range(PROCESSES)]
                for part in await asyncio.gather(*(heard(one, kill_after=kill_after) for one in writers)):
                    acknowledged += part
        await holder.close()
        stop.set()
        seen = await reader
        streams: dict[str, list[Record]] = {}
        for record in seen:
            streams.setdefault(record.stream, []).append(record)
        # In the order in which it was seen: no event of a stream comes before the one that it follows.
        assert all(first_break(Head(stream), records)[1] is None for stream, records in streams.items())
        stored = {(record.stream, record.n): record.hash.hex() for record in seen}
        assert len(stored) == len(seen) == (await store.end()).events
        assert {(stream, n): digest for stream, n, digest in acknowledged}.items() <= stored.items()
        assert len({record.body for record in seen}) == len(seen)
        assert len((await store.end()).lanes) > 1
        assert await store.flaws() == []
        for stream, records in streams.items():
            assert await store.run(stream) == run_row(records[-1])


async def test_an_append_waits_when_all_lanes_are_taken(url: str) -> None:
    async with await PostgresStore.open(url) as store:
        holder = await asyncpg.connect(url)
        transaction = holder.transaction()
        await transaction.start()
        await holder.execute("select id from handrail.lane for no key update")
        waiting = asyncio.create_task(store.append(*Story().tell()))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await transaction.rollback()
        await asyncio.wait_for(waiting, 10)
        await holder.close()


async def test_what_is_under_way_when_connections_are_lost_is_done_once(url: str) -> None:
    async with await PostgresStore.open(url) as store:
        stories = [Story(f"run_{number}") for number in range(8)]

        async def tell(story: Story) -> None:
            for _ in range(20):
                await store.append(*story.tell())

        telling = asyncio.gather(*map(tell, stories))
        other = await asyncpg.connect(url)
        for _ in range(10):
            await asyncio.sleep(0.02)
            await other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'handrail' and datname = current_database()"
            )
        await telling
        for story in stories:
            assert first_break(Head(story.run), await store.read(story.run)) == (story.head, None)
        assert (await store.end()).events == 160
        await other.close()


async def test_a_new_era_takes_new_streams_and_leaves_the_others_where_they_are(url: str, tmp_path: Path) -> None:
    async with await PostgresStore.open(url) as store, await PostgresStore.open(url) as other:
        old, new = Story("run_old"), Story("run_new")
        await store.append(*old.tell(2))
        mark = await store.end()
        assert await other.open_era() == 2
        await asyncio.gather(store.append(*new.tell(2)), store.append(*old.tell(2)))  # one call, two eras
        await asyncio.gather(other.append(*new.tell(3)), other.append(*old.tell(1)))
        end, heads = await store.heads(after=mark)
        assert {lane // 128: count for lane, count in end.lanes} == {1: 5, 2: 5}
        assert heads == [new.head, old.head]
        scanned = [one.record async for batch in store.scan() for one in batch]
        for story in (old, new):
            assert await store.read(story.run) == [one for one in scanned if one.stream == story.run]
            assert first_break(Head(story.run), await store.read(story.run)) == (story.head, None)
        checkpointer = Checkpointer(store, CheckpointFile(tmp_path / "checkpoints"), KEY, ticking_clock())
        assert (await checkpointer.seal()) is not None
        assert await checkpointer.compare() == []
        assert await store.flaws() == []


async def test_others_are_told_of_news(url: str) -> None:
    async with await PostgresStore.open(url) as store, await PostgresStore.open(url) as other:
        called = asyncio.Event()
        stop = store.listen(called.set)
        await asyncio.wait_for(called.wait(), 10)  # it listens
        called.clear()
        await store.append(*Story("run_own").tell())
        await asyncio.sleep(0.2)
        assert not called.is_set()  # one's own writes are no news
        await other.append(*Story().tell())
        await asyncio.wait_for(called.wait(), 5)
        stop()


# --- what is refused --------------------------------------------------------------------------------


async def test_a_server_that_may_lose_what_it_acknowledged_is_refused(url: str) -> None:
    connection = await asyncpg.connect(url)
    name = await connection.fetchval("select current_database()")
    await connection.execute(f'alter database "{name}" set synchronous_commit = off')
    with pytest.raises(Invalid, match="synchronous_commit = off"):
        await PostgresStore.open(url)
    await connection.close()


async def test_two_processes_make_the_tables_once_and_an_older_one_refuses(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await asyncio.gather(PostgresStore.open(url), PostgresStore.open(url))
    await first.append(*Story().tell())
    assert len(await second.read("run_a")) == 1
    await second.close()
    newer = [*postgres_migration.shipped(), Migration(99, "more", "create table handrail.more (id integer)")]
    monkeypatch.setattr(postgres_store, "shipped", lambda: newer)
    async with await PostgresStore.open(url):
        pass
    monkeypatch.undo()
    with pytest.raises(Unavailable, match="written by a newer handrail"):
        await PostgresStore.open(url)
    await first.append(*Story("run_b").tell())  # who was there before goes on: a change comes in two steps
    await first.close()


async def test_a_migration_that_fails_leaves_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [*postgres_migration.shipped(), Migration(99, "broken", "create table handrail.more (id nonsense)")]
    monkeypatch.setattr(postgres_store, "shipped", lambda: broken)
    with pytest.raises(HandrailError):
        await PostgresStore.open(url)
    connection = await asyncpg.connect(url)
    assert await connection.fetchval("select to_regclass('handrail.event')") is None
    await connection.close()


# --- tampering: by someone who may do everything in the database, and has no key --------------------

CLOSE_UP = """
    with x as (select era, lane, number, row_number() over (partition by lane order by number) r from handrail.event)
    update handrail.event e set number = -x.r from x
        where x.era = e.era and x.lane = e.lane and x.number = e.number and x.r <> e.number;
    update handrail.event set number = -number where number < 0;
    update handrail.lane l set last = coalesce((select max(number) from handrail.event where lane = l.id), 0);
    delete from handrail.head h where not exists (select 1 from handrail.event e where e.stream = h.stream);
    update handrail.head h set n = e.n, hash = e.hash from
        (select distinct on (stream) stream, n, hash from handrail.event order by stream, n desc) e
        where e.stream = h.stream;
    delete from handrail.step where run not in (select stream from handrail.head);
    delete from handrail.run where id not in (select stream from handrail.head);
    update handrail.run r set n = h.n, head = h.hash from handrail.head h where h.stream = r.id;"""
"""What a careful forger does behind himself: gaps closed, counters, ends and rows brought along."""

LAST_OF_A = "stream = 'run_aaaaaaaa' and n = (select n from handrail.head where stream = 'run_aaaaaaaa')"
ATTACKS: dict[str, str] = {
    "a row removed, the gap left": f"delete from handrail.event where {LAST_OF_A};",
    "the newest sealed event of a stream cut": f"delete from handrail.event where {LAST_OF_A};" + CLOSE_UP,
    "a whole stream removed": "delete from handrail.event where stream = 'run_bbbbbbbb';" + CLOSE_UP,
    "two events swap places": """
        update handrail.event set number = case number when 1 then -2 else -1 end
            where number in (1, 2) and lane = (select min(lane) from handrail.event);
        update handrail.event set number = -number where number < 0;""",
    "a body changed": "update handrail.event set body = '{}' where stream = 'run_bbbbbbbb' and n = 2;",
    "an actor changed": "update handrail.event set actor = 'eve' where stream = 'run_bbbbbbbb' and n = 2;",
    "rolled back to the first checkpoint": "delete from handrail.event where number > {first};" + CLOSE_UP,
    "an event moved to another lane": """
        update handrail.event set lane = 190, number = 1 where stream = 'run_cccccccc' and n = 1;"""
    + CLOSE_UP,
    "a position moved": "update handrail.event set tick = 1 where stream = 'run_bbbbbbbb' and n = 3;",
}


async def sealed_store(url: str, folder: Path) -> tuple[PostgresStore, CheckpointFile, Mark]:
    """A store with two checkpoints, and one event that is not sealed."""
    store = await PostgresStore.open(url)
    log = CheckpointFile(folder)
    checkpointer = Checkpointer(store, log, KEY, ticking_clock())
    by = await fill(store)
    await checkpointer.seal()
    first = await store.end()
    for run in ("run_bbbbbbbb", "run_cccccccc", "run_aaaaaaaa"):
        await write(store, run, DecisionRecorded(decision="go", reason="all green"), by=by)
    await checkpointer.seal()
    return store, log, first


@pytest.mark.parametrize("attack", ATTACKS)
async def test_no_attack_on_what_is_sealed_passes_unseen(url: str, tmp_path: Path, attack: str) -> None:
    store, log, first = await sealed_store(url, tmp_path / "checkpoints")
    assert (await verify(store, log, KEY, replay=True)).breaks == ()
    forger = await asyncpg.connect(url)
    for table in ("event", "step", "run"):
        await forger.execute(f"alter table handrail.{table} disable trigger all")
    await forger.execute("delete from handrail.step" if "cut" in attack else "select 1")
    await forger.execute(ATTACKS[attack].replace("{first}", str(first.events)))
    verdict = await verify(store, log, KEY, replay=True)
    assert not verdict.ok
    await store.close()
    await forger.close()


async def test_events_can_not_be_changed_or_removed_by_accident(url: str) -> None:
    async with await PostgresStore.open(url) as store:
        await store.append(*Story().tell(2))
        connection = await asyncpg.connect(url)
        for query in ("delete from handrail.event", "update handrail.event set actor = 'eve'"):
            with pytest.raises(asyncpg.RaiseError):
                await connection.execute(query)
        await connection.close()


async def test_a_look_for_runs_that_are_due_is_always_planned_for_the_instant_that_it_asks_for(url: str) -> None:
    async with await PostgresStore.open(url) as store:
        for now in range(12):
            await store.lease_holders(project="prj", is_awake=True, now=now)
            await store.lease_holders(is_awake=True, now=now)
        async with store._connections.reading() as connection:
            plans = await connection.fetch(
                "select generic_plans, custom_plans from pg_prepared_statements where statement like '%union all%'"
                " and statement not like '%generic_plans%'"
            )
    # A plan for any instant reads all runs that wait: the database can't know that few of them are due.
    assert [tuple(one) for one in plans] == [(0, 12), (0, 12)]
