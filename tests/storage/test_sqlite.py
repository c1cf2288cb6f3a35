"""What the SQLite store promises beyond what every store does: its file, its threads, and its bounds."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import sqlite3
import stat
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.domain.chain import Head, Record, first_break
from handrail.domain.errors import (
    Forbidden,
    HandrailError,
    IntegrityBroken,
    JournalConflict,
    Limited,
    NotFound,
    Unavailable,
)
from handrail.domain.projection import NO_CHANGE, Change
from handrail.engine.journal import Archive, Journal, Shelf
from handrail.storage import queries, sqlite_append, sqlite_file, sqlite_inbox, sqlite_writer
from handrail.storage.memory import MemoryStore
from handrail.storage.sqlite import SqliteStore
from storage.stories import Story, head_of, note_append, run_row, step_row, without_words

POSIX_ONLY = pytest.mark.skipif(sys.platform == "win32", reason="file modes are a matter of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with await SqliteStore.open(path, busy_ms=10_000) as opened:
        yield opened


@pytest.fixture
def other_process(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection like another program's, that can hold locks and look at the file."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, timeout=5)) as connection:
        yield connection


async def eventually(is_so: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if is_so():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came to be so")


async def test_both_stores_are_all_that_the_engine_asks_for(store: SqliteStore) -> None:
    journals: Sequence[Journal] = (store, MemoryStore())
    shelves: Sequence[Shelf] = (store, MemoryStore())
    archives: Sequence[Archive] = (store, MemoryStore())
    assert len(journals) == len(shelves) == len(archives) == 2


# --- the file -------------------------------------------------------------------------------------


async def test_all_is_there_again_after_a_restart(path: Path) -> None:
    story = Story()
    async with await SqliteStore.open(path) as store:
        await store.append(*story.tell(3, definitions=(("h", b"text"),)))
    async with await SqliteStore.open(str(path)) as store:
        await store.append(*story.tell(3))
        assert first_break(Head("run_a"), await store.read("run_a")) == (story.head, None)
        assert await store.definition("h") == b"text"


async def test_closing_leaves_one_file_with_everything_in_it(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        await store.append(*Story().tell(3))
    assert [file.name for file in path.parent.iterdir()] == ["journal.db"]


async def test_closing_writes_what_is_queued(path: Path) -> None:
    store = await SqliteStore.open(path)
    story = Story()
    appends = [asyncio.ensure_future(store.append(*story.tell())) for _ in range(300)]
    await asyncio.sleep(0)
    await store.close()
    await asyncio.gather(*appends)
    async with await SqliteStore.open(path) as store:
        assert len(await store.read("run_a")) == 300


@POSIX_ONLY
async def test_only_the_owner_can_read_the_files_whatever_the_umask_is(tmp_path: Path) -> None:
    for umask in (0o000, 0o777):
        path = tmp_path / f"{umask:o}" / "deep" / "journal.db"
        before = os.umask(umask)
        try:
            async with await SqliteStore.open(path) as store:
                await store.append(*Story().tell())
                modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        finally:
            os.umask(before)
        assert modes == {"journal.db": 0o600, "journal.db-wal": 0o600, "journal.db-shm": 0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700


async def test_the_file_is_ours_and_synced_in_full(store: SqliteStore, other_process: sqlite3.Connection) -> None:
    assert other_process.execute("PRAGMA application_id").fetchone() == (sqlite_file.APPLICATION_ID,)
    assert other_process.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    writer = store._writer
    assert writer is not None
    settings = {"synchronous": 2, "secure_delete": 1, "foreign_keys": 1, "recursive_triggers": 1}
    for setting, value in settings.items():
        assert writer._connection.execute(f"PRAGMA {setting}").fetchone() == (value,), setting


async def test_the_schema_itself_refuses_to_change_history(
    store: SqliteStore, other_process: sqlite3.Connection
) -> None:
    await store.append(*Story().tell(2, definitions=(("h", b"text"),)))
    other_process.execute("PRAGMA recursive_triggers = ON")
    for forbidden in (
        "DELETE FROM event WHERE n = 2",
        "UPDATE event SET body = x'00' WHERE n = 1",
        "UPDATE event SET actor = 'someone', erased = x'00' WHERE n = 1",
        "UPDATE event SET seq = 9, erased = x'00' WHERE n = 1",
        "REPLACE INTO event SELECT 1, 'run_b', n, at, kind, actor, '', 1, 1, salt, body, hash, NULL FROM event",
        "DELETE FROM definition",
        "UPDATE definition SET body = x'00'",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="never"):
            other_process.execute(forbidden)
    other_process.execute("UPDATE event SET body = x'00', salt = x'', erased = x'01' WHERE n = 1")
    with pytest.raises(sqlite3.IntegrityError, match="only erased"):
        other_process.execute("UPDATE event SET body = x'02', erased = x'03' WHERE n = 1")


async def test_an_old_sqlite_is_refused_clearly(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    for read_only in (False, True):
        with pytest.raises(Unavailable, match=r"needs SQLite 3\.37 or newer"):
            await SqliteStore.open(path, read_only=read_only)
    assert list(path.parent.iterdir()) == []


async def test_questions_about_ends_and_statuses_walk_along_indexes(
    store: SqliteStore, other_process: sqlite3.Connection
) -> None:
    for query, parameters in (
        (queries.HEADS_OF_ALL, ()),
        (queries.HEADS_BEHIND, (5,)),
        (queries.END_OF_STREAM, ("run_a",)),
        (queries.runs_of(2), ("running", "", 9, "failed", "", 9, 9)),
        (queries.STREAM, ("run_a", 0, 9)),
        (queries.STEPS, ("run_a",)),
    ):
        plan = [row[3] for row in other_process.execute(f"EXPLAIN QUERY PLAN {query}", parameters)]
        assert not [line for line in plan if line.startswith(("SCAN event", "SCAN run", "SCAN step"))], (query, plan)
    behind = [row[3] for row in other_process.execute(f"EXPLAIN QUERY PLAN {queries.HEADS_BEHIND}", (5,))]
    assert any("INTEGER PRIMARY KEY (rowid>?)" in line for line in behind), behind


# --- the writer thread ----------------------------------------------------------------------------


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


async def test_nobody_is_answered_before_the_commit_has_returned(
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
    with pytest.raises(Limited, match="5 appends wait"):
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
    assert (await store.heads())[0] == 30


async def test_only_so_many_streams_are_remembered(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_append, "STREAMS_KNOWN", 4)
    monkeypatch.setattr(sqlite_append, "DEFINITIONS_KNOWN", 2)
    stories = [Story(f"run_{number}") for number in range(10)]
    for turn in range(3):
        for story in stories:
            await store.append(*story.tell(definitions=((f"{story.run}{turn}", b"text"),)))
    writer = store._writer
    assert writer is not None
    assert len(writer._appender._known) == 4
    assert len(writer._appender._definitions) <= 2
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
    assert (await store.heads())[0] == 3


async def test_a_caller_whose_event_loop_has_gone_disturbs_nobody(
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
    assert (await store.heads())[0] == 60


async def test_a_mistake_in_the_writer_is_told_to_all_who_wait_and_stops_the_store(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, change = Story("run_ok").tell()
    await store.append(records, change)
    monkeypatch.setattr(sqlite_append.Rows, "write", _mistake)
    stories = [Story(f"run_{number}") for number in range(20)]
    outcomes = await asyncio.gather(*(store.append(*story.tell()) for story in stories), return_exceptions=True)
    assert all(isinstance(outcome, Unavailable) for outcome in outcomes)
    monkeypatch.undo()
    with pytest.raises(Unavailable, match="takes no more events") as stopped:
        await store.append(*Story("run_later").tell())
    assert "restart" in stopped.value.hint
    assert await store.read("run_ok") == records
    assert (await store.heads())[0] == 1


def _mistake(*_: object) -> None:
    raise RuntimeError("a mistake of ours")


async def test_even_if_the_writer_thread_dies_nobody_waits_for_ever(
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
    with pytest.raises(IntegrityBroken, match="takes no more events"):
        await store.append(*Story("run_b").tell())


async def test_a_forked_process_is_told_to_open_the_store_itself(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_a_scan_that_is_cancelled_lets_its_view_go(store: SqliteStore) -> None:
    await store.append(*Story().tell(100))

    async def look() -> None:
        async for _ in store.scan(size=1):
            pass

    looking = asyncio.ensure_future(look())
    await asyncio.sleep(0.02)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    await store.append(*Story("run_b").tell())


# --- erasure --------------------------------------------------------------------------------------


def all_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_erased_words_are_in_no_file_any_more(store: SqliteStore, path: Path) -> None:
    """Rows of many sizes, so that pages split and leave copies of rows behind."""
    chance = random.Random(7)
    told: dict[tuple[str, int], tuple[Record, Change]] = {}
    stories = [Story(f"run_{number}", goal=f"goal of run_{number};") for number in range(20)]
    for number in range(400):
        story = chance.choice(stories)
        words = f"word{number:03};".encode() + b"." * chance.choice((5, 200, 900, 3_000, 9_000))
        records, change = story.tell(body=words)
        message = f"note{number:03};" + "n" * chance.choice((0, 30, 900))
        steps = (replace(change.steps[0], path=f"step/{records[0].n}", message=message),)
        told[story.run, records[0].n] = records[0], replace(change, steps=steps)
        await store.append(records, replace(change, steps=steps))
    note = Head("store")
    erased: list[bytes] = []
    for run, n in chance.sample(sorted(told), 8):
        record, change = told[run, n]
        erased += [record.body[:8], change.steps[0].message[:8].encode(), f"goal of {run};".encode()]
        told[run, n] = record, replace(change, steps=(replace(change.steps[0], message="[erased]"),))
        mine = [one for (owner, _), (_, one) in told.items() if owner == run]
        assert mine[-1].run is not None
        rest = Change(run=replace(mine[-1].run, goal="[erased]"), steps=tuple(one.steps[0] for one in mine))
        noted, _ = note_append(head=note)
        note = head_of(noted)
        await store.erase(without_words(record), noted, rest)
        left = all_bytes(path.parent)
        assert [words for words in erased if words in left] == []
    assert await store.flaws() == []


async def test_erasures_at_once_share_one_scrub(store: SqliteStore, path: Path) -> None:
    records, change = Story().tell(5, body=b"secret words")
    await store.append(records, change)
    statements: list[str] = []
    assert store._writer is not None
    store._writer._connection.set_trace_callback(statements.append)
    note, erasures = Head("store"), []
    for record in records:
        noted, _ = note_append(head=note)
        note = head_of(noted)
        erasures.append(store.erase(without_words(record), noted, change))
    await asyncio.gather(*erasures)
    assert b"secret words" not in all_bytes(path.parent)
    assert statements.count("VACUUM") <= 2


async def test_an_old_view_delays_the_scrub_and_the_caller_is_told(path: Path) -> None:
    async with await SqliteStore.open(path, busy_ms=20) as store:
        records, change = Story().tell(3, body=b"secret words")
        await store.append(records, change)
        scan = store.scan(size=1)
        await anext(scan)
        note, _ = note_append()
        with pytest.raises(Unavailable, match="the words are erased, but"):
            await store.erase(without_words(records[1]), note, change)
        assert (await store.read("run_a"))[1].erased is not None
        assert b"secret words" in all_bytes(path.parent)
        rest = [placed.record async for batch in scan for placed in batch]
        assert rest == records[1:]
        assert (await store.read("run_a"))[0].body == b"secret words"
        await store.erase(without_words(records[0]), note_append(head=head_of(note))[0], change)
        await store.erase(without_words(records[2]), note_append(head=Head("other"))[0], change)
        assert b"secret words" not in all_bytes(path.parent)


async def test_a_scrub_that_was_owed_when_the_process_died_is_made_good_by_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_writer.Writer, "_is_scrubbed", lambda *_, **__: False)  # as if killed right there
    store = await SqliteStore.open(path)
    records, change = Story().tell(3, body=b"secret words")
    await store.append(records, change)
    note = Head("store")
    for record in records:
        noted, _ = note_append(head=note)
        note = head_of(noted)
        with pytest.raises(Unavailable):
            await store.erase(without_words(record), noted, change)
    await store.close()
    monkeypatch.undo()
    looking = sqlite3.connect(path)
    assert looking.execute("PRAGMA user_version").fetchone() == (1,)
    async with await SqliteStore.open(path) as store:
        await store.append(*Story("run_b").tell())
        assert looking.execute("PRAGMA user_version").fetchone() == (0,)
        assert b"secret words" not in all_bytes(path.parent)


# --- reading only ---------------------------------------------------------------------------------


async def test_a_store_opened_for_reading_reads_and_refuses_every_write(path: Path, store: SqliteStore) -> None:
    story = Story()
    records, change = story.tell(3)
    await store.append(records, change)
    note, _ = note_append()
    async with await SqliteStore.open(path, read_only=True) as reader:
        assert await reader.read("run_a") == records
        writes: list[Awaitable[None]] = [
            reader.append(*story.tell()),
            reader.rebuild("run_a", change),
            reader.forget("run_b"),
            reader.erase(without_words(records[0]), note, NO_CHANGE),
        ]
        for write in writes:
            with pytest.raises(Forbidden, match="open for reading only"):
                await write
        later = Story("run_b").tell()
        await store.append(*later)
        assert await reader.read("run_b") == later[0]


async def test_reading_makes_no_file(path: Path) -> None:
    with pytest.raises(NotFound):
        await SqliteStore.open(path, read_only=True)
    assert list(path.parent.iterdir()) == []


async def test_an_empty_file_can_be_opened_for_writing_but_has_nothing_to_read(path: Path) -> None:
    path.open("x").close()
    with pytest.raises(Unavailable, match="empty or"):
        await SqliteStore.open(path, read_only=True)
    async with await SqliteStore.open(path) as store:
        await store.append(*Story().tell())


async def test_a_folder_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "journal.db").mkdir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "journal.db", tmp_path / "file" / "journal.db"):
        for read_only in (False, True):
            with pytest.raises(HandrailError, match=r"journal\.db") as refused:
                await SqliteStore.open(path, read_only=read_only)
            assert str(tmp_path) not in str(refused.value)


async def test_orphaned_rows_can_be_forgotten_and_do_not_stand_in_the_way(
    store: SqliteStore, other_process: sqlite3.Connection
) -> None:
    """After an accepted cut of the journal's end, rows may be left of runs that have no events any more."""
    for run in ("run_a", "run_b"):
        await store.append(*Story(run).tell(2))
    other_process.executescript("DROP TRIGGER event_is_never_removed; DELETE FROM event;")
    assert await store.run("run_a") is not None
    await store.forget("run_a")
    assert await store.run("run_a") is None
    assert await store.steps("run_a") == []
    (record,), _ = again = Story("run_b", goal="again").tell()
    await store.append(*again)
    assert await store.run("run_b") == run_row(record, goal="again")
    assert await store.steps("run_b") == [step_row(record), step_row(Story("run_b").tell(2)[0][1])]
