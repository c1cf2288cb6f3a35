"""What the SQLite store promises beyond what every store does: its file, its schema, and reading only."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import sys
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path

import pytest

from handrail.domain.errors import (
    Forbidden,
    HandrailError,
    NotFound,
    Unavailable,
)
from handrail.domain.journal.chain import Head, first_break
from handrail.domain.journal.projection import NO_CHANGE
from handrail.engine.journal import Archive, Journal, ProjectionReader
from handrail.storage.memory import MemoryStore
from handrail.storage.sqlite import file as sqlite_file
from handrail.storage.sqlite import queries
from handrail.storage.sqlite.rows import Parameters
from handrail.storage.sqlite.store import SqliteStore
from storage.stories import Story, note_append, run_row, step_row, without_words

POSIX_ONLY = pytest.mark.skipif(sys.platform == "win32", reason="file modes are a matter of POSIX")


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with await SqliteStore.open(path, busy_ms=10_000) as opened:
        yield opened


async def test_both_stores_are_all_that_the_engine_asks_for(store: SqliteStore) -> None:
    journals: Sequence[Journal] = (store, MemoryStore())
    shelves: Sequence[ProjectionReader] = (store, MemoryStore())
    archives: Sequence[Archive] = (store, MemoryStore())
    assert len(journals) == len(shelves) == len(archives) == 2


async def test_a_store_lets_itself_go_at_the_end_of_a_block(path: Path) -> None:
    async with MemoryStore() as memory, await SqliteStore.open(path) as sqlite:
        stores: Sequence[Journal] = (memory, sqlite)
    for store in stores:
        with pytest.raises(Unavailable, match="is closed"):
            await store.read("run_a")


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


async def test_closing_empties_the_log_even_if_someone_else_has_the_file_open(
    path: Path, other_process: sqlite3.Connection
) -> None:
    async with await SqliteStore.open(path) as store:
        assert other_process.execute("SELECT count(*) FROM event").fetchone() == (0,)
        await store.append(*Story().tell(3))
    assert [file.stat().st_size for file in path.parent.glob("*-wal")] == [0]


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
    asked: list[tuple[str, Parameters]] = [
        (queries.HEADS_OF_ALL, ()),
        (queries.HEADS_BEHIND, (5,)),
        (queries.END_OF_STREAM, {"stream": "run_a"}),
        (queries.runs_of(2), ("running", "", 9, "failed", "", 9, 9)),
        (queries.STREAM, ("run_a", 0, 9)),
        (queries.STEPS, ("run_a",)),
    ]
    for query, parameters in asked:
        plan = [row[3] for row in other_process.execute(f"EXPLAIN QUERY PLAN {query}", parameters)]
        assert not [line for line in plan if line.startswith(("SCAN event", "SCAN run", "SCAN step"))], (query, plan)
    behind = [row[3] for row in other_process.execute(f"EXPLAIN QUERY PLAN {queries.HEADS_BEHIND}", (5,))]
    assert any("INTEGER PRIMARY KEY (rowid>?)" in line for line in behind), behind


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
