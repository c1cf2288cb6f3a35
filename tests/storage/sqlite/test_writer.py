"""The SQLite store's threads: many appends share one sync, queues are bounded, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from handrail.domain.errors import IntegrityBroken, JournalConflict, Limited, Unavailable
from handrail.domain.journal.chain import Head, first_break
from handrail.storage import stream_cache
from handrail.storage.sqlite import append as sqlite_append
from handrail.storage.sqlite import inbox as sqlite_inbox
from handrail.storage.sqlite import writer as sqlite_writer
from handrail.storage.sqlite.store import SqliteStore
from storage.stories import Story, run_row


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with await SqliteStore.open(path, busy_ms=10_000) as opened:
        yield opened


async def eventually(is_so: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if is_so():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to be so")


async def test_many_appends_share_one_sync(store: SqliteStore, other_process: sqlite3.Connection, path: Path) -> None:
    await store.append(*Story("run_0").tell())
    commits: list[str] = []
    writer = store._writer
    assert writer is not None
    writer._connection.set_trace_callback(commits.append)
    other_process.execute("BEGIN IMMEDIATE")
    waiting = [asyncio.ensure_future(store.append(*Story(f"run_{number}").tell())) for number in range(1, 101)]
    await asyncio.sleep(0.05)  # the writer now waits for the lock, with at least one of them in its hands
    other_process.execute("ROLLBACK")
    await asyncio.gather(*waiting)
    assert 1 <= commits.count("COMMIT") <= 2


async def test_no_caller_is_answered_before_the_commit_has_returned(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While COMMIT is held up, no answer comes; what is answered, another connection can read."""
    is_held, may_go_on = threading.Event(), threading.Event()
    writer = store._writer
    assert writer is not None

    def hold(statement: str) -> None:
        if statement == "COMMIT":
            is_held.set()
            may_go_on.wait(10)

    writer._connection.set_trace_callback(hold)
    appended = asyncio.ensure_future(store.append(*Story().tell()))
    await asyncio.to_thread(is_held.wait, 10)
    await asyncio.sleep(0.05)
    assert not appended.done()
    assert await store.read("run_a") == []
    may_go_on.set()
    await appended
    assert len(await store.read("run_a")) == 1


async def test_reading_goes_on_while_the_writer_waits(store: SqliteStore, other_process: sqlite3.Connection) -> None:
    records, change = Story().tell()
    await store.append(records, change)
    other_process.execute("BEGIN IMMEDIATE")
    waiting = asyncio.ensure_future(store.append(*Story("run_b").tell()))
    assert await store.read("run_a") == records
    assert not waiting.done()
    other_process.execute("ROLLBACK")
    await waiting


async def test_a_full_queue_is_limited_at_once(
    store: SqliteStore, other_process: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_process.execute("BEGIN IMMEDIATE")
    first = asyncio.ensure_future(store.append(*Story("run_first").tell()))
    inbox = store._writer._inbox if store._writer else None
    assert inbox is not None
    await asyncio.sleep(0)
    await eventually(lambda: not inbox._waiting)  # the writer has it in its hands, and waits for the lock
    monkeypatch.setattr(sqlite_inbox, "JOBS_MAX", 5)
    waiting = [asyncio.ensure_future(store.append(*Story(f"run_{number}").tell())) for number in range(5)]
    await asyncio.sleep(0)
    with pytest.raises(Limited, match="5 appends already wait"):
        await store.append(*Story("run_late").tell())
    monkeypatch.setattr(sqlite_inbox, "JOBS_MAX", 100)
    monkeypatch.setattr(sqlite_inbox, "BYTES_MAX", 1)
    with pytest.raises(Limited):
        await store.append(*Story("run_late").tell())
    other_process.execute("ROLLBACK")
    await asyncio.gather(first, *waiting)
    monkeypatch.undo()
    await store.append(*Story("run_late").tell())


async def test_a_batch_is_bounded_in_number_and_bytes(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_inbox, "BATCH_JOBS_MAX", 3)
    monkeypatch.setattr(sqlite_inbox, "BATCH_BYTES_MAX", 1_000)
    stories = [Story(f"run_{number}") for number in range(30)]
    await asyncio.gather(*(store.append(*story.tell(body=b"x" * 400)) for story in stories))
    assert (await store.end()).events == 30


async def test_only_so_many_streams_are_remembered(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_cache, "STREAMS_KNOWN", 4)
    monkeypatch.setattr(stream_cache, "DEFINITIONS_KNOWN", 2)
    stories = [Story(f"run_{number}") for number in range(10)]
    for turn in range(3):
        for story in stories:
            await store.append(*story.tell(definitions=((f"{story.run}{turn}", b"text"),)))
    writer = store._writer
    assert writer is not None
    assert len(writer._appender._streams.known) == 4
    assert len(writer._appender._streams.definitions) <= 2
    assert len(await store.definitions()) == 30
    for story in stories:
        assert first_break(Head(story.run), await store.read(story.run)) == (story.head, None)
        assert (await store.run(story.run)) == run_row((await store.read(story.run))[-1])


async def test_what_another_connection_appends_is_seen_before_the_next_append(path: Path, store: SqliteStore) -> None:
    mine, theirs = Story(), Story()
    first = mine.tell()
    await store.append(*first)
    async with await SqliteStore.open(path) as other:
        theirs.head = mine.head
        await other.append(*theirs.tell(body=b"theirs"))
        with pytest.raises(JournalConflict):
            await store.append(*mine.tell())
        mine.head = theirs.head
        await store.append(*mine.tell())
        with pytest.raises(JournalConflict):
            await other.append(*theirs.tell())
    assert [record.n for record in await store.read("run_a")] == [1, 2, 3]
    assert (await store.end()).events == 3


async def test_a_caller_whose_event_loop_has_gone_disturbs_no_other_caller(
    store: SqliteStore, other_process: sqlite3.Connection
) -> None:
    other_process.execute("BEGIN IMMEDIATE")

    def elsewhere() -> None:
        loop = asyncio.new_event_loop()
        appended = store.append(*Story("run_b").tell())
        loop.call_soon(appended.send, None)  # far enough to be queued, and never further
        loop.call_soon(loop.stop)
        loop.run_forever()
        loop.close()
        appended.close()

    await asyncio.to_thread(elsewhere)
    here = asyncio.ensure_future(store.append(*Story().tell()))
    await asyncio.sleep(0)
    other_process.execute("ROLLBACK")
    await here
    assert len(await store.read("run_b")) == 1


async def test_callers_in_several_event_loops_are_each_answered_in_their_own(store: SqliteStore) -> None:
    def elsewhere(number: int) -> None:
        async def write() -> None:
            story = Story(f"run_{number}")
            for _ in range(20):
                await store.append(*story.tell())

        asyncio.run(write())

    await asyncio.gather(*(asyncio.to_thread(elsewhere, number) for number in range(3)))
    assert (await store.end()).events == 60


async def test_a_mistake_in_the_writer_is_reported_to_all_waiting_callers_and_stops_the_store(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, change = Story("run_ok").tell()
    await store.append(records, change)
    monkeypatch.setattr(sqlite_append.Rows, "write", _mistake)
    stories = [Story(f"run_{number}") for number in range(20)]
    outcomes = await asyncio.gather(*(store.append(*story.tell()) for story in stories), return_exceptions=True)
    assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
    monkeypatch.undo()
    with pytest.raises(Unavailable, match="accepts no more events") as stopped:
        await store.append(*Story("run_later").tell())
    assert "restart" in stopped.value.hint
    assert await store.read("run_ok") == records
    assert (await store.end()).events == 1


def _mistake(*_: object) -> None:
    raise RuntimeError("a mistake of ours")


async def test_even_if_the_writer_thread_dies_no_caller_waits_forever(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, other_process: sqlite3.Connection
) -> None:
    real = sqlite_writer._deliver

    def mistaken_once(*_: object) -> None:
        monkeypatch.setattr(sqlite_writer, "_deliver", real)
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(threading, "excepthook", lambda _: None)
    monkeypatch.setattr(sqlite_writer, "_deliver", mistaken_once)
    other_process.execute("BEGIN IMMEDIATE")
    doomed = asyncio.ensure_future(store.append(*Story().tell()))
    inbox = store._writer._inbox if store._writer else None
    assert inbox is not None
    await asyncio.sleep(0)
    await eventually(lambda: not inbox._waiting)
    waiting = [asyncio.ensure_future(store.append(*Story(f"run_{number}").tell())) for number in range(5)]
    await asyncio.sleep(0)
    other_process.execute("ROLLBACK")
    outcomes = await asyncio.gather(doomed, *waiting, return_exceptions=True)
    assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
    with pytest.raises(Unavailable):
        await store.append(*Story("run_later").tell())
    assert store._writer is not None
    store._writer._thread.join()  # its last words are heard while nobody minds them


async def test_a_missing_row_of_a_run_under_the_writer_is_noticed(
    store: SqliteStore, other_process: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story()
    await store.append(*story.tell())
    await store.append(*story.tell())
    other_process.executescript("DELETE FROM step; DELETE FROM run;")
    monkeypatch.setattr(sqlite_append.Appender, "_catch_up", lambda _: None)  # as if nobody had been there
    with pytest.raises(IntegrityBroken):
        await store.append(*story.tell())
    with pytest.raises(IntegrityBroken, match="accepts no more events"):
        await store.append(*Story("run_b").tell())


async def test_a_forked_process_must_open_the_store_itself(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "getpid", lambda: -1)
        with pytest.raises(Unavailable):
            await store.append(*Story().tell())
    await store.append(*Story().tell())


async def test_a_store_that_is_dropped_lets_its_threads_go(path: Path) -> None:
    before = threading.active_count()
    store = await SqliteStore.open(path)
    await store.append(*Story().tell())
    await store.read("run_a")
    assert threading.active_count() > before
    del store
    gc.collect()
    await eventually(lambda: not [one for one in threading.enumerate() if one.name.startswith("handrail")])


async def test_a_scan_that_is_cancelled_lets_its_view_go(store: SqliteStore, other_process: sqlite3.Connection) -> None:
    await store.append(*Story().tell(100))
    has_started = asyncio.Event()

    async def look() -> None:
        async for _ in store.scan(size=1):
            has_started.set()

    def can_empty_the_log() -> bool:
        (is_busy, *_) = other_process.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    other_process.execute("PRAGMA busy_timeout = 0")
    looking = asyncio.ensure_future(look())
    await has_started.wait()
    assert not can_empty_the_log()  # the scan is in the middle, and its view needs the log
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert looking.cancelled()
    await eventually(can_empty_the_log)
