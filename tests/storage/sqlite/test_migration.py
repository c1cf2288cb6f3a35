"""The schema moves in whole steps: by one process at a time, never half, never backwards."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from handrail.domain.errors import IntegrityBroken, Unavailable
from handrail.storage.migrations import Migration
from handrail.storage.sqlite.faults import StoreLocation
from handrail.storage.sqlite.file import keep_before_upgrade, open_writer
from handrail.storage.sqlite.migration import migrate, pending, shipped, statements
from handrail.storage.sqlite.store import SqliteStore
from storage.stories import Story

FIRST = Migration(1, "first", "CREATE TABLE a (x);\nINSERT INTO a VALUES (1);\nINSERT INTO a VALUES (2);")
SECOND = Migration(2, "second", "ALTER TABLE a ADD COLUMN y;\n-- a word\nUPDATE a SET y = x;\n")
MIGRATING = Path(__file__).parents[1] / "migrating.py"
KILLS = 24
SEED = 20_261_115


def connected(path: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(path, isolation_level=None))


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_what_is_missing_is_applied_in_order_and_once(path: Path) -> None:
    with connected(path) as connection:
        migrate(connection, [FIRST])
        migrate(connection, [FIRST])
        assert connection.execute("SELECT x FROM a").fetchall() == [(1,), (2,)]
        migrate(connection, [FIRST, SECOND])
        assert connection.execute("SELECT x, y FROM a").fetchall() == [(1, 1), (2, 2)]
        applied = connection.execute("SELECT number, name, digest, at > 0 FROM migration").fetchall()
        assert applied == [(1, "first", FIRST.digest, 1), (2, "second", SECOND.digest, 1)]
        assert pending(connection, [FIRST, SECOND]) == []


def test_a_migration_that_fails_leaves_nothing_behind(path: Path) -> None:
    failing = Migration(2, "failing", "CREATE TABLE b (x);\nINSERT INTO a VALUES (3);\nINSERT INTO nowhere VALUES (1);")
    with connected(path) as connection:
        migrate(connection, [FIRST])
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, [FIRST, failing])
        assert tables(connection) == {"a", "migration"}
        assert connection.execute("SELECT x FROM a").fetchall() == [(1,), (2,)]
        assert pending(connection, [FIRST, failing]) == [failing]
        migrate(connection, [FIRST, SECOND])


def test_a_new_database_gets_all_migrations_or_none(path: Path) -> None:
    failing = Migration(2, "failing", "INSERT INTO nowhere VALUES (1);")
    with connected(path) as connection:
        with pytest.raises(sqlite3.OperationalError):
            migrate(connection, [FIRST, failing])
        assert tables(connection) == set()
        migrate(connection, [FIRST, SECOND])
        assert pending(connection, [FIRST, SECOND]) == []


def test_copies_from_before_an_upgrade_that_others_write_are_left_alone(path: Path) -> None:
    with connected(path) as connection:
        migrate(connection, [FIRST])
        older, left, written = (path.with_name(f"{path.name}.schema-{end}") for end in ("0", "1.aa.part", "1.bb.part"))
        for copy in (older, left, written):
            copy.write_bytes(b"copy")
        os.utime(left, (1, 1))
        keep_before_upgrade(connection, path, 1)
    assert sorted(copy.name for copy in path.parent.glob("*.schema-*")) == [f"{path.name}.schema-1", written.name]


def test_a_database_newer_than_the_program_is_refused(path: Path) -> None:
    with connected(path) as connection:
        migrate(connection, [FIRST, SECOND])
        with pytest.raises(Unavailable, match=r"written by a newer handrail \(schema 2; this one knows 1\)"):
            migrate(connection, [FIRST])


def test_a_database_made_by_another_text_is_refused(path: Path) -> None:
    with connected(path) as connection:
        migrate(connection, [FIRST])
        with pytest.raises(IntegrityBroken, match="a different version of migration 1"):
            migrate(connection, [Migration(1, "first", FIRST.text + "\n")])


def test_statements_are_split_even_inside_triggers_words_and_comments() -> None:
    text = (
        "-- a comment; with a semicolon\nCREATE TABLE a (x DEFAULT ';'); -- behind\n"
        "CREATE TRIGGER t BEFORE DELETE ON a\nBEGIN\n    SELECT 1;\n    SELECT 2;\nEND;\nSELECT 3;"
    )
    parts = [statement.strip() for statement in statements(text)]
    assert [part.splitlines()[-1] for part in parts] == [
        "CREATE TABLE a (x DEFAULT ';'); -- behind",
        "END;",
        "SELECT 3;",
    ]
    with pytest.raises(ValueError, match="inside a statement"):
        list(statements("SELECT 1;\nSELECT"))


def test_the_shipped_migrations_are_numbered_without_gaps() -> None:
    assert [migration.number for migration in shipped()] == list(range(1, len(shipped()) + 1))


async def test_a_store_of_a_newer_or_older_handrail_is_refused_at_opening(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        await store.append(*Story().tell())
    with connected(path) as connection:
        connection.execute("INSERT INTO migration VALUES (99, 'later', '', 0)")
    for read_only in (False, True):
        with pytest.raises(Unavailable, match="newer handrail"):
            await SqliteStore.open(path, read_only=read_only)
    with connected(path) as connection:
        connection.execute("DELETE FROM migration")
    with pytest.raises(Unavailable, match="older handrail"):
        await SqliteStore.open(path, read_only=True)


async def test_processes_that_open_a_new_store_at_once_make_it_once(path: Path) -> None:
    stores = await asyncio.gather(*(SqliteStore.open(path) for _ in range(8)))
    await asyncio.gather(*(store.append(*Story(f"run_{number}").tell()) for number, store in enumerate(stores)))
    assert (await stores[0].end()).events == 8
    for store in stores:
        await store.close()
    with connected(path) as connection:
        assert connection.execute("SELECT count(*) FROM migration").fetchone() == (len(shipped()),)


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9 is a matter of POSIX")
def test_a_kill_in_the_middle_leaves_the_old_schema_or_the_new_one(path: Path) -> None:
    """Child processes apply slow migrations and are killed at random moments; the next one goes on from there."""
    chance = random.Random(SEED)
    seen: set[int] = set()
    for round_ in range(KILLS):
        with subprocess.Popen([sys.executable, str(MIGRATING), str(path)], stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "begun\n"
            time.sleep(chance.uniform(0, 0.06))
            os.kill(child.pid, signal.SIGKILL)
        with connected(path) as connection:
            applied = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'migration'").fetchone()[0]
            numbers = [n for (n,) in connection.execute("SELECT number FROM migration")] if applied else []
            assert numbers == list(range(1, len(numbers) + 1)), (SEED, round_)
            assert tables(connection) - {"migration"} == {f"t{n}_{part}" for n in numbers for part in range(20)}
            for n in numbers:
                for part in range(20):
                    assert connection.execute(f"SELECT count(*) FROM t{n}_{part}").fetchone() == (500,), (SEED, round_)
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        seen.add(len(numbers))
    assert len(seen) > 1, "no kill ever fell between two migrations"


def test_opening_brings_a_file_to_the_present_schema(path: Path) -> None:
    place = StoreLocation(path=path, busy_ms=1_000, read_only=False)
    with contextlib.closing(open_writer(place, shipped())) as connection:
        assert {"event", "run", "step", "plan", "definition", "migration"} <= tables(connection)
