"""What goes wrong below the store is told clearly; nothing is half-written, and it goes on when it can."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple

from handrail.domain.errors import Conflict, HandrailError, IntegrityBroken, Invalid, Unavailable
from handrail.domain.journal.chain import Head, Record, first_break
from handrail.storage.sqlite import file as sqlite_file
from handrail.storage.sqlite import reader as sqlite_reader
from handrail.storage.sqlite import rows as sqlite_rows
from handrail.storage.sqlite.faults import Fault, StoreLocation, fault_of, store_error
from handrail.storage.sqlite.store import SqliteStore
from storage.stories import Story, note_append, without_words

CONFINED = Path(__file__).parents[1] / "confined.py"
SEED = 20_261_115
FLIPS = 150


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with await SqliteStore.open(path, busy_ms=50) as opened:
        yield opened


def sqlite_error(code: int, words: str = "something") -> sqlite3.OperationalError:
    error = sqlite3.OperationalError(words)
    error.sqlite_errorcode = code
    return error


# --- busy -----------------------------------------------------------------------------------------


async def test_a_store_held_by_another_process_is_unavailable_and_nothing_is_written(
    store: SqliteStore, other_process: sqlite3.Connection
) -> None:
    stories = [Story(f"run_{number}") for number in range(10)]
    other_process.execute("BEGIN IMMEDIATE")
    outcomes = await asyncio.gather(*(store.append(*story.tell()) for story in stories), return_exceptions=True)
    for outcome in outcomes:
        assert isinstance(outcome, Unavailable)
        assert str(outcome) == "another handrail process has held the store journal.db for 0.05 s; nothing was written"
    assert len({id(outcome) for outcome in outcomes}) == 10
    other_process.execute("ROLLBACK")
    assert (await store.end()).events == 0
    await store.append(*Story("run_0").tell())


async def test_opening_waits_for_a_process_that_is_changing_the_file(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA application_id = 0x48524a4c")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Unavailable, match="another handrail process"):
            await SqliteStore.open(path, busy_ms=30)
        opening = asyncio.ensure_future(SqliteStore.open(path, busy_ms=10_000))
        await asyncio.sleep(0.05)
        assert not opening.done()
        other.execute("ROLLBACK")
        await (await opening).close()


async def test_opening_waits_for_a_process_that_reads_a_file_which_has_no_log_yet(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("PRAGMA application_id = 0x48524a4c")
        other.execute("BEGIN")
        other.execute("SELECT * FROM sqlite_schema").fetchall()
        with pytest.raises(Unavailable, match="another handrail process"):
            await SqliteStore.open(path, busy_ms=30)
        opening = asyncio.ensure_future(SqliteStore.open(path, busy_ms=10_000))
        await asyncio.sleep(0.05)
        assert not opening.done()
        other.execute("ROLLBACK")
        await (await opening).close()


async def test_a_store_can_be_opened_while_another_process_writes(
    store: SqliteStore, path: Path, other_process: sqlite3.Connection
) -> None:
    other_process.execute("BEGIN IMMEDIATE")
    async with await SqliteStore.open(path) as second:
        other_process.execute("ROLLBACK")
        await second.append(*Story().tell())


# --- full, read-only, broken ----------------------------------------------------------------------


async def test_a_full_disk_is_reported_and_the_store_goes_on_when_there_is_room(store: SqliteStore) -> None:
    story = Story()
    await store.append(*story.tell(5))
    kept = story.head
    assert store._writer is not None
    connection = store._writer._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(Unavailable, match=r"the disk is full: journal.db can't grow \(\d+ KiB are left\)") as full:
        await store.append(*story.tell(9, body=b"x" * 50_000))
    assert "free some space" in full.value.hint
    assert first_break(Head("run_a"), await store.read("run_a")) == (kept, None)
    small, change = Story("run_small").tell()
    await store.append(small, change)
    connection.execute("PRAGMA max_page_count = 1000000")
    story.head = kept
    await store.append(*story.tell(9, body=b"x" * 50_000))
    assert first_break(Head("run_a"), await store.read("run_a")) == (story.head, None)
    assert await store.flaws() == []


async def test_a_file_that_can_only_be_read_is_reported_at_opening(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = sqlite_file._connect
    monkeypatch.setattr(sqlite_file, "_connect", lambda place, _: real(place, "ro"))  # what SQLite does by itself
    with pytest.raises(Unavailable, match="is read-only"):
        await SqliteStore.open(path)


@pytest.mark.parametrize("scene", ["full", "read-only"])
def test_on_a_disk_of_its_own(scene: str, tmp_path: Path) -> None:
    """A real full disk, and a real read-only one: see confined.py."""
    unshare = shutil.which("unshare")
    if unshare is None or not sys.platform.startswith("linux"):
        pytest.skip("mount namespaces are a matter of Linux, and of its tool `unshare`")
    alone = [unshare, "--mount", "--map-root-user"]
    if subprocess.run([*alone, "mount", "-t", "tmpfs", "tmpfs", tmp_path], capture_output=True, check=False).returncode:
        pytest.skip("this system does not let us mount a disk of our own")
    done = subprocess.run(
        [*alone, sys.executable, CONFINED, scene, tmp_path], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == ("ok\n", 0), done.stderr


class Failing:
    """The writer's connection, on a disk whose sync fails when told so."""

    def __init__(self, connection: sqlite3.Connection, code: int) -> None:
        self._connection = connection
        self._code = code

    def execute(self, statement: str, *parameters: Any) -> sqlite3.Cursor:
        if statement == "COMMIT":
            raise sqlite_error(self._code, "disk I/O error")
        return self._connection.execute(statement, *parameters)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


async def test_after_a_failed_sync_nothing_more_is_acknowledged_but_reading_goes_on(store: SqliteStore) -> None:
    records, change = Story().tell()
    await store.append(records, change)
    writer = store._writer
    assert writer is not None
    sound = writer._connection
    writer._connection = Failing(sound, sqlite3.SQLITE_IOERR_FSYNC)  # type: ignore[assignment]
    with pytest.raises(Unavailable, match="only a restart shows whether this was saved"):
        await store.append(*Story("run_b").tell())
    writer._connection = sound
    for _ in range(2):
        with pytest.raises(Unavailable, match="accepts no more events") as stopped:
            await store.append(*Story("run_c").tell())
        assert "restart" in stopped.value.hint
    assert await store.read("run_a") == records
    assert await store.read("run_b") == []


async def test_a_failed_sync_while_scrubbing_stops_the_store_too(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    records, change = Story().tell()
    await store.append(records, change)
    assert store._writer is not None
    scrubber = store._writer._scrubber
    monkeypatch.setattr(scrubber, "scrub", _raiser(sqlite_error(sqlite3.SQLITE_IOERR_FSYNC)))
    with pytest.raises(Unavailable, match="the text is erased, but"):
        await store.erase(without_words(records[0]), note_append()[0], change)
    with pytest.raises(Unavailable, match="accepts no more events"):
        await store.append(*Story("run_b").tell())


async def test_a_scrub_without_room_is_tried_again(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    records, change = Story().tell()
    await store.append(records, change)
    assert store._writer is not None
    scrubber = store._writer._scrubber
    with monkeypatch.context() as patched:
        patched.setattr(scrubber, "scrub", _raiser(sqlite_error(sqlite3.SQLITE_FULL)))
        with pytest.raises(Unavailable, match="the disk is full"):
            await store.erase(without_words(records[0]), note_append()[0], change)
        assert scrubber.is_pending
    await store.append(*Story("run_b").tell())
    await store.append(*Story("run_c").tell())
    assert not scrubber.is_pending


def _raiser(error: Exception) -> Any:
    def raise_it(**_: object) -> bool:
        raise error

    return raise_it


@pytest.mark.parametrize(
    ("code", "fault", "kind", "words"),
    [
        (sqlite3.SQLITE_CONSTRAINT_UNIQUE, Fault.REFUSED, Invalid, "can't store this append"),
        (sqlite3.SQLITE_TOOBIG, Fault.REFUSED, Invalid, "can't store this append"),
        (sqlite3.SQLITE_BUSY_RECOVERY, Fault.PASSING, Unavailable, "for 5 s"),
        (sqlite3.SQLITE_LOCKED, Fault.PASSING, Unavailable, "for 5 s"),
        (sqlite3.SQLITE_FULL, Fault.PASSING, Unavailable, "disk is full"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, Fault.PASSING, Unavailable, "disk is full"),
        (sqlite3.SQLITE_READONLY_DBMOVED, Fault.PASSING, Unavailable, "read-only"),
        (sqlite3.SQLITE_PERM, Fault.PASSING, Unavailable, "read-only"),
        (sqlite3.SQLITE_CANTOPEN, Fault.PASSING, HandrailError, "no store"),
        (sqlite3.SQLITE_IOERR_WRITE, Fault.LASTING, Unavailable, "only a restart shows"),
        (sqlite3.SQLITE_IOERR_FSYNC, Fault.LASTING, Unavailable, "only a restart shows"),
        (sqlite3.SQLITE_NOMEM, Fault.LASTING, Unavailable, "only a restart shows"),
        (sqlite3.SQLITE_CORRUPT_INDEX, Fault.LASTING, IntegrityBroken, "is damaged"),
        (sqlite3.SQLITE_NOTADB, Fault.LASTING, IntegrityBroken, "is damaged"),
    ],
)
def test_every_code_of_sqlite_has_a_meaning(
    code: int, fault: Fault, kind: type[HandrailError], words: str, path: Path
) -> None:
    error = sqlite_error(code)
    place = StoreLocation(path=path, busy_ms=5_000, read_only=False)
    assert fault_of(error) is fault
    assert isinstance(store_error(error, place), kind)
    assert words in str(store_error(error, place))
    assert str(path.parent) not in str(store_error(error, place))


def test_errors_that_are_not_sqlites_have_a_meaning_too() -> None:
    assert fault_of(OverflowError("too large")) is Fault.REFUSED
    assert fault_of(RuntimeError("a mistake of ours")) is Fault.LASTING
    assert fault_of(IntegrityBroken("damaged")) is Fault.LASTING
    assert fault_of(Conflict("not now")) is Fault.REFUSED


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_file_that_is_no_database_is_reported_as_damage(path: Path, read_only: bool) -> None:
    _put(path, b"these are words, not pages " * 400)
    with pytest.raises(IntegrityBroken, match=r"journal\.db"):
        await SqliteStore.open(path, read_only=read_only)


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_database_of_another_program_is_left_alone(
    path: Path, other_process: sqlite3.Connection, read_only: bool
) -> None:
    other_process.execute("CREATE TABLE theirs (x)")
    before = _bytes(path)
    with pytest.raises(IntegrityBroken, match="database of another program"):
        await SqliteStore.open(path, read_only=read_only)
    assert _bytes(path) == before


async def test_a_disk_without_write_ahead_logging_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uri = f"file:{path}?mode=rw&vfs=unix-none"  # a way of locking that has no shared memory
    monkeypatch.setattr("handrail.storage.sqlite.file._connect", lambda *_: sqlite3.connect(uri, uri=True))
    with pytest.raises(Unavailable, match="does not support write-ahead logging"):
        await SqliteStore.open(path)


DAMAGES = {
    "bytes where words should be": "UPDATE event SET actor = x'00' WHERE seq = 3",
    "words where bytes should be": "UPDATE event SET body = 'words' WHERE seq = 3",
    "text that is not UTF-8": "UPDATE event SET kind = CAST(x'fffe' AS TEXT) WHERE seq = 3",
    "bytes that became text that is not UTF-8": "UPDATE event SET body = CAST(x'fffe' AS TEXT) WHERE seq = 3",
    "nothing where a number should be": "UPDATE event SET at = NULL WHERE seq = 3",
    "a fraction where a number should be": "UPDATE event SET n = 3.5 WHERE seq = 3",
}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_event_is_reported_with_its_position(store: SqliteStore, path: Path, damage: str) -> None:
    await store.append(*Story().tell(5))
    _damage(path, DAMAGES[damage])
    with pytest.raises(IntegrityBroken, match="the event at position 3 can't be read"):
        await store.read("run_a")
    with pytest.raises(IntegrityBroken, match="the event at position 3 can't be read"):
        await _scanned(store)
    assert [record.n for record in await store.read("run_a", limit=2)] == [1, 2]


@pytest.mark.parametrize("damage", [one for one in DAMAGES if "UTF-8" not in one])
async def test_plain_columns_are_passed_on_whatever_is_in_them(store: SqliteStore, path: Path, damage: str) -> None:
    records, change = Story().tell(5)
    await store.append(records, change)
    _damage(path, DAMAGES[damage])
    columns = [row async for batch in store.rows(size=2) for row in batch]
    assert [row[1] for row in columns if row[2:] != astuple(records[row[1] - 1])] == [3]


async def test_columns_that_are_no_text_can_not_be_passed_on(store: SqliteStore, path: Path) -> None:
    await store.append(*Story().tell(5))
    _damage(path, DAMAGES["text that is not UTF-8"])
    rows = store.rows(size=2)
    assert [row[1] for row in await anext(rows)] == [1, 2]
    with pytest.raises(IntegrityBroken, match="the event at position 3 can't be read: its text is not UTF-8"):
        await anext(rows)


async def test_damaged_ends_rows_and_definitions_are_reported(store: SqliteStore, path: Path) -> None:
    await store.append(*Story().tell(5, definitions=(("h", b"text"),)))
    _damage(
        path,
        "UPDATE event SET hash = 'words' WHERE seq = 5",
        "UPDATE run SET started = 'words'",
        "UPDATE step SET message = CAST(x'ff' AS TEXT)",
        "UPDATE definition SET body = 'words'",
    )
    for question in (
        store.heads(),
        store.run("run_a"),
        store.steps("run_a"),
        store.definition("h"),
        store.definitions(),
    ):
        with pytest.raises(IntegrityBroken):
            await question
    story = Story()
    story.tell(5)
    with pytest.raises(IntegrityBroken, match="the last event of run_a is damaged"):
        await store.append(*story.tell())
    assert [flaw for flaw in await store.flaws() if "event" in flaw]


async def test_a_destroyed_page_is_reported_with_its_position(path: Path, tmp_path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        await store.append(*Story().tell(100, body=b"x" * 500))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        pages = connection.execute("SELECT pageno FROM dbstat WHERE name = 'event' AND pagetype = 'leaf'").fetchall()
    sound, (page,) = _bytes(path), pages[len(pages) // 2]
    _put(path, sound[: (page - 1) * 4_096] + b"\xff" * 4_096 + sound[page * 4_096 :])
    async with await SqliteStore.open(path, read_only=True) as store:
        with pytest.raises(IntegrityBroken, match=r"journal\.db is damaged: .* \(in the events after position \d+\)"):
            await _scanned(store)
        assert await store.flaws() != []


async def test_a_missing_table_is_reported_as_damage(store: SqliteStore, other_process: sqlite3.Connection) -> None:
    other_process.executescript("DROP TABLE event; DROP TABLE plan;")
    for question in (store.read("run_a"), store.plans(), _scanned(store), store.heads()):
        with pytest.raises(IntegrityBroken, match="no such table"):
            await question
    assert "no such table: event" in await store.flaws()


async def test_events_out_of_order_do_not_lead_in_circles(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.append(*Story().tell(3))
    real = sqlite_rows.event_rows_after
    monkeypatch.setattr(sqlite_reader, "event_rows_after", lambda connection, *_: real(connection, 0, 2))
    with pytest.raises(IntegrityBroken, match="after position 2 are out of order"):
        await _scanned(store)


async def test_gaps_and_stray_rows_are_found(store: SqliteStore, path: Path) -> None:
    await store.append(*Story().tell(9))
    _damage(path, "DELETE FROM event WHERE seq IN (1, 4, 5)", "DELETE FROM run")
    flaws = await store.flaws()
    assert flaws == [
        "the first event is at position 2 instead of 1",
        "an event is missing before position 6",
        "5 rows of table step refer to a missing row",
    ]


async def test_whatever_bit_flips_nothing_but_our_own_errors_comes_out(path: Path, tmp_path: Path) -> None:
    """Bits flip all over a file; reading either gives records or says that integrity is broken."""
    async with await SqliteStore.open(path) as store:
        stories = [Story(f"run_{number}") for number in range(12)]
        for story in stories * 3:
            await store.append(*story.tell(4, body=b'{"step":"build"}', definitions=(("h", b"text"),)))
    sound = _bytes(path)
    chance = random.Random(SEED)
    outcomes: list[str] = []
    for flip in range(FLIPS):
        damaged = bytearray(sound)
        for _ in range(chance.choice((1, 1, 3, 40))):
            damaged[chance.randrange(len(sound))] ^= 1 << chance.randrange(8)
        copy = tmp_path / f"copy-{flip}.db"
        _put(copy, bytes(damaged))
        outcomes.append(await _looked_at(copy))
    assert outcomes.count("damaged") > FLIPS // 10, (SEED, outcomes)
    assert outcomes.count("readable") > FLIPS // 10, (SEED, outcomes)


async def _looked_at(path: Path) -> str:
    """Ask everything of a damaged store; only our own errors may come out."""
    started = time.monotonic()
    try:
        async with await SqliteStore.open(path, read_only=True) as store:
            await store.flaws()
            await _scanned(store)
            await store.heads()
            for run in await store.runs():
                await store.read(run.id)
                await store.steps(run.id)
            await store.definitions()
            await store.plans()
    except (IntegrityBroken, Unavailable):
        return "damaged"
    finally:
        assert time.monotonic() - started < 20
    return "readable"


async def _scanned(store: SqliteStore) -> list[Record]:
    return [placed.record async for batch in store.scan(size=7) for placed in batch]


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _bytes(path: Path) -> bytes:
    return path.read_bytes()


def _damage(path: Path, *changes: str) -> None:
    """Change a file as a flipped bit could: past the triggers and the strict types of the schema."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (trigger,) in triggers:
            connection.execute(f"DROP TRIGGER {trigger}")
        before = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall()
        _rewrite(connection, [(name, sql.replace("STRICT, ", "").replace("STRICT", "")) for name, sql in before])
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for change in changes:
            connection.execute(change)
        _rewrite(connection, before)


def _rewrite(connection: sqlite3.Connection, schema: list[tuple[str, str]]) -> None:
    connection.execute("PRAGMA writable_schema = ON")
    for name, sql in schema:
        relaxed = sql.replace(" NOT NULL", "") if "STRICT" not in sql else sql
        connection.execute("UPDATE sqlite_schema SET sql = ? WHERE name = ?", (relaxed, name))
    (version,) = connection.execute("PRAGMA schema_version").fetchone()
    connection.execute(f"PRAGMA schema_version = {version + 1}")
    connection.execute("PRAGMA writable_schema = OFF")
