"""A copy that follows a home: equal at every step, whenever it is killed, and refused when the two differ."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from handrail.assembly.backups.follow import following, verify_copy
from handrail.assembly.opening import open_reader, open_store
from handrail.domain.errors import Conflict, IntegrityBroken, Unavailable
from handrail.domain.journal.projection import NO_CHANGE
from handrail.domain.journal.store_event import BreakerProbed
from handrail.engine.proving.erasure import erase_payload
from handrail.engine.stream_pages import end_of
from handrail.settings import Settings
from storage.backups.test_under_load import under_load
from storage.backups.worn_home import fill_home, settings_in

TABLES = ("event", "run", "step", "plan", "definition")


def content(file: Path) -> dict[str, list[tuple[object, ...]]]:
    with closing(sqlite3.connect(file)) as database:
        return {table: database.execute(f"select * from {table} order by 1, 2").fetchall() for table in TABLES}


async def followed(settings: Settings, target: Path) -> None:
    with following(settings, target) as follower:
        await follower.step()


async def erase(settings: Settings, stream: str, n: int) -> None:
    async with open_store(settings) as opened:
        writer = opened.record_writer
        await erase_payload(
            opened.store,
            opened.store,
            stream,
            n,
            reason="a name",
            actor="person:ada",
            clock=writer.clock,
            entropy=writer.entropy,
            secrets=writer.secrets,
            within=None,
            is_forced=True,
        )


async def test_the_copy_is_equal_after_every_step(tmp_path: Path) -> None:
    settings, target = settings_in(tmp_path), tmp_path / "copy"
    known = await fill_home(tmp_path, runs=3, turns=range(1))
    await followed(settings, target)
    assert content(target / "journal.db") == content(settings.journal)
    for turn in (1, 2):
        known = await fill_home(tmp_path, runs=3, turns=range(turn, turn + 1), known=known)  # the same runs go on
        await followed(settings, target)
        assert content(target / "journal.db") == content(settings.journal)
    assert await verify_copy(target) > 0
    assert not (target / "keys" / "journal.key").exists()
    assert (target / "keys" / "journal.pub").exists()


async def more_runs(settings: Settings, seed: int) -> None:
    async with open_store(settings) as opened:
        stream = f"server/prj_a/s{seed}"
        records, _ = opened.record_writer.write(
            await end_of(opened.store, stream), [BreakerProbed(server="s")] * 7, actor="handrail"
        )
        await opened.journal.append(records, NO_CHANGE)


async def test_another_store_at_the_same_place_is_refused(tmp_path: Path) -> None:
    settings, target = settings_in(tmp_path), tmp_path / "copy"
    await fill_home(tmp_path, runs=2)
    await followed(settings, target)
    shutil.rmtree(settings.home)
    await fill_home(tmp_path, runs=2)  # another store at the same place
    with pytest.raises(Conflict, match="another store"):
        await followed(settings, target)


async def test_an_erasure_reaches_the_copy_and_leaves_no_bytes(tmp_path: Path) -> None:
    settings, target = settings_in(tmp_path), tmp_path / "copy"
    streams = await fill_home(tmp_path, runs=2, seed=5)
    long = next(record for record in streams["run_00000001"] if b"y" * 300 in record.body)
    await followed(settings, target)
    await erase(settings, "run_00000001", long.n)
    with following(settings, target) as follower:  # still open: closing would empty its log
        await follower.step()
        assert long.salt not in b"".join(file.read_bytes() for file in target.glob("journal.db*"))
    assert content(target / "journal.db") == content(settings.journal)
    assert await verify_copy(target) > 0


async def test_a_copy_or_a_journal_that_was_written_to_is_refused(tmp_path: Path) -> None:
    settings, target = settings_in(tmp_path), tmp_path / "copy"
    await fill_home(tmp_path, runs=2)
    await followed(settings, target)
    shutil.copytree(settings.home, tmp_path / "older")
    await more_runs(settings, 1)
    await followed(settings, target)
    ahead = (target / "journal.db").read_bytes()
    shutil.rmtree(settings.home)
    shutil.copytree(tmp_path / "older", settings.home)  # an older state was restored over the home
    with pytest.raises(IntegrityBroken, match="does not have"):
        await followed(settings, target)
    await more_runs(settings, 2)  # and went on: as many events, but others
    with pytest.raises(IntegrityBroken, match="does not have"):
        await followed(settings, target)
    assert (target / "journal.db").read_bytes() == ahead


async def test_an_event_that_was_changed_is_not_copied(tmp_path: Path) -> None:
    settings, target = settings_in(tmp_path), tmp_path / "copy"
    await fill_home(tmp_path, runs=2)
    await followed(settings, target)
    await more_runs(settings, 1)
    with closing(sqlite3.connect(settings.journal)) as database:
        for (trigger,) in database.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            database.execute(f"drop trigger {trigger}")
        database.execute("update event set actor = 'person:eve' where seq = (select max(seq) - 2 from event)")
        database.commit()
    before = content(target / "journal.db")
    with pytest.raises(IntegrityBroken, match="was not copied"):
        await followed(settings, target)
    assert content(target / "journal.db") == before, "all of a step or nothing"


async def test_a_home_and_a_strange_folder_are_never_followed_into(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    await fill_home(tmp_path, runs=2)
    with pytest.raises(Conflict):
        await followed(settings, settings.home)
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "following.json").write_text("{")
    for target in ("copy", "copy/following.json"):
        with pytest.raises(Conflict, match="is not a copy of a home"):
            await followed(settings, tmp_path / target)


async def test_one_process_follows_into_a_folder(tmp_path: Path) -> None:
    settings, target = settings_in(tmp_path), tmp_path / "copy"
    await fill_home(tmp_path, runs=2)
    with following(settings, target) as first:
        await first.step()
        with pytest.raises(Unavailable, match="another process"), following(settings, target):
            pass


def test_a_follower_that_is_killed_again_and_again_under_load_leaves_a_journal_that_verifies(tmp_path: Path) -> None:
    settings, target = settings_in(tmp_path), tmp_path / "copy"
    environment = {**os.environ, "HANDRAIL_HOME": str(settings.home)}
    command = [sys.executable, "-m", "handrail", "db", "follow", str(target), "--every", "100ms"]
    with under_load(settings.home) as load:
        for delay_s in (0.6, 0.9, 1.3, 2.5):
            with subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL) as process:
                time.sleep(delay_s)
                process.kill()
            load.wait_for_more(1)
        before = load.acknowledged()
    asyncio.run(followed(settings, target))
    assert asyncio.run(verify_copy(target)) > 0
    assert content(target / "journal.db") == content(settings.journal)
    with closing(sqlite3.connect(target / "journal.db")) as database:
        for stream, (n, _) in before.items():
            assert database.execute("select count(*) from event where stream = ?", (stream,)).fetchone()[0] >= n


async def test_the_copy_takes_over_as_a_home_with_its_keys(tmp_path: Path) -> None:
    settings, target = settings_in(tmp_path), tmp_path / "second" / "home"
    await fill_home(tmp_path, runs=2)
    with following(settings, target, with_keys=True) as follower:
        await follower.step()
    shutil.rmtree(settings.home)
    second = settings_in(tmp_path / "second")
    await more_runs(second, 3)
    async with open_reader(second) as look:
        assert (await look.verify(replay=True)).ok
