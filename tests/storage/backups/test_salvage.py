"""Salvage of damaged files: what can be proved comes out byte for byte, what is lost is named, nothing is made up."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from handrail.assembly.backups.salvaging import SalvageReport, salvage_journal
from handrail.assembly.opening import open_reader
from handrail.domain.errors import Conflict, IntegrityBroken, NotFound, Unavailable
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.codec import entry_of
from handrail.domain.journal.event import RunStarted
from handrail.domain.journal.projection import NO_CHANGE
from handrail.settings import read_settings
from handrail.storage.backups.damaged import read_damaged
from handrail.storage.sqlite.pages import PageFile
from handrail.storage.sqlite.store import SqliteStore
from storage.backups.worn_home import PAGE, fill_home, overwrite, settings_in
from storage.stories import chain_behind

WHO = "person:ada"


async def salvaged(folder: Path) -> tuple[SalvageReport, dict[str, list[Record]]]:
    """What a salvage brings out: its report, and the streams of the new home, which verifies."""
    target = folder / "salvaged"
    report = await salvage_journal(folder / "home" / "journal.db", target, reason="disk", actor=WHO)
    settings = read_settings({"home": str(target), "project": str(folder)}, {})
    async with open_reader(settings) as look:
        verdict = await look.verify(replay=True)
        assert verdict.breaks == ()
        streams = {head.stream: await look.store.read(head.stream) for head in (await look.store.heads())[1]}
    return report, streams


def pages_by_stream(file: Path) -> dict[str, set[int]]:
    """In which pages the rows of each stream are, with the definition it is pinned to."""
    with closing(PageFile(file)) as pages:
        rows = list(pages.rows())
    damaged = read_damaged(file)
    definitions = {row.values[0]: row.page for row in rows if len(row.values) == 2}
    found: dict[str, set[int]] = {}
    for row in rows:
        if len(row.values) == 13 and isinstance(row.values[1], str):
            found.setdefault(row.values[1], set()).add(row.page)
    for one in damaged.events:
        event = entry_of(one.record).event
        if isinstance(event, RunStarted):
            found[one.record.stream].add(definitions[event.definition])
    return found


async def test_the_rows_of_an_intact_file_are_all_found_without_sqlite(tmp_path: Path) -> None:
    streams = await fill_home(tmp_path)
    damaged = read_damaged(tmp_path / "home" / "journal.db")
    found: dict[str, list[Record]] = {}
    for one in sorted(damaged.events, key=lambda one: one.seq):
        found.setdefault(one.record.stream, []).append(one.record)
    assert found == streams
    assert len(damaged.definitions) == 10
    assert {head.stream for head in damaged.rows} == streams.keys() - {"store"}


@pytest.mark.parametrize("case", range(20))
async def test_whatever_pages_are_overwritten_all_that_verifies_is_brought_out(tmp_path: Path, case: int) -> None:
    streams = await fill_home(tmp_path, seed=case)
    journal = tmp_path / "home" / "journal.db"
    draw = random.Random(case)
    pages = list(range(1, journal.stat().st_size // PAGE + 1))
    hit = draw.sample(pages, k=(1, 2, 5, 12)[case % 4])
    touched = pages_by_stream(journal)
    overwrite(journal, hit, seed=case)
    damaged = journal.read_bytes()
    report, out = await salvaged(tmp_path)
    lost = {one.stream for one in report.lost}
    for stream, records in out.items():
        if stream in lost:
            continue  # the store's own stream begins again
        assert records[: len(streams.get(stream, []))] == streams.get(stream, records[:0]), stream
    assert {*out, *lost} >= streams.keys(), "every stream is brought out or named"
    assert not (out.keys() & lost) - {"store"}
    for stream, own in touched.items():
        # A row that does not fit into its page goes on in others, which only reading shows.
        if not own & set(hit) and not any(len(one.body) > PAGE // 2 for one in streams[stream]):
            assert stream in out, f"no page of {stream} was overwritten"
    assert journal.read_bytes() == damaged, "the damaged file is only read"


async def test_events_that_are_only_in_the_write_ahead_log_are_brought_out(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"
    async with await SqliteStore.open(journal) as store:
        await store.append(chain_behind(Head("server/p/ci"), [b"{}"] * 50), NO_CHANGE)
        assert journal.with_name("journal.db-wal").stat().st_size > PAGE
        found = {one.record.n for one in read_damaged(journal).events}
    assert found == set(range(1, 51))


async def test_the_end_of_a_run_that_is_gone_is_noticed_by_its_row_and_its_checkpoint(tmp_path: Path) -> None:
    streams = await fill_home(tmp_path, runs=3)
    journal = tmp_path / "home" / "journal.db"
    shutil.copytree(tmp_path / "home", tmp_path / "kept")
    # Without its newest events the file is one that handrail could have written: only what is known beside it tells.
    with closing(sqlite3.connect(journal)) as database:
        for (trigger,) in database.execute("select name from sqlite_master where type = 'trigger'").fetchall():
            database.execute(f"drop trigger {trigger}")
        last = streams["run_00000002"][-1].n
        database.execute("delete from event where stream = 'run_00000002' and n = ?", (last,))
        database.commit()
    report, out = await salvaged(tmp_path)
    assert [(one.stream, one.events, one.proved) for one in report.lost] == [("run_00000002", last, last - 1)]
    assert "run_00000002" not in out, "an older state must not be executed again"
    (partial,) = (tmp_path / "salvaged" / "salvaged").iterdir()
    assert len(partial.read_text().splitlines()) == last - 1


async def test_the_new_journal_says_what_was_lost_and_keeps_the_key(tmp_path: Path) -> None:
    await fill_home(tmp_path)
    journal = tmp_path / "home" / "journal.db"
    size = journal.stat().st_size // PAGE
    overwrite(journal, list(range(size // 2, size // 2 + 6)), seed=1)
    report, out = await salvaged(tmp_path)
    assert report.lost
    accepted = [entry_of(record) for record in out["store"] if record.kind == "journal_accepted"]
    assert accepted[0].actor == WHO
    assert report.lost[0].stream in getattr(accepted[0].event, "found", "")
    keys = [folder / "keys" / "journal.key" for folder in (tmp_path / "home", tmp_path / "salvaged")]
    assert keys[0].read_bytes() == keys[1].read_bytes()


async def test_a_file_without_anything_that_can_be_proved_is_refused(tmp_path: Path) -> None:
    (tmp_path / "noise.db").write_bytes(random.Random(1).randbytes(40 * PAGE))
    with pytest.raises(IntegrityBroken, match="no stream"):
        await salvage_journal(tmp_path / "noise.db", tmp_path / "new", reason="disk", actor=WHO)
    with pytest.raises(NotFound):
        await salvage_journal(tmp_path / "none.db", tmp_path / "new", reason="disk", actor=WHO)
    assert not (tmp_path / "new").exists()


async def test_an_existing_home_is_never_changed_by_a_salvage(tmp_path: Path) -> None:
    await fill_home(tmp_path, runs=2)
    with pytest.raises(Conflict):
        await salvage_journal(tmp_path / "home" / "journal.db", tmp_path / "home", reason="disk", actor=WHO)


async def test_a_copy_of_the_file_elsewhere_brings_no_neighbours_along(tmp_path: Path) -> None:
    await fill_home(tmp_path, runs=2)
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(tmp_path / "home" / "journal.db", tmp_path / "elsewhere")
    (tmp_path / "elsewhere" / "holiday.jpg").write_text("x")
    report = await salvage_journal(tmp_path / "elsewhere" / "journal.db", tmp_path / "new", reason="disk", actor=WHO)
    assert report.lost == ()
    assert not (tmp_path / "new" / "holiday.jpg").exists()
    assert settings_in(tmp_path).home.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes are POSIX's")
async def test_a_pipe_in_place_of_a_journal_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "journal.db")
    with pytest.raises(Unavailable, match="is not a regular file"):
        await salvage_journal(tmp_path / "journal.db", tmp_path / "new", reason="tried", actor=WHO)
