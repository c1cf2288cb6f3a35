"""Erased words are in no file any more: not in the store's, not in its log, not even after a crash."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.domain.errors import Unavailable
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.projection import Change
from handrail.storage.sqlite import writer as sqlite_writer
from handrail.storage.sqlite.store import SqliteStore
from storage.stories import Story, head_of, note_append, without_words


@pytest.fixture
async def store(path: Path) -> AsyncIterator[SqliteStore]:
    async with await SqliteStore.open(path, busy_ms=10_000) as opened:
        yield opened


def all_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_erased_words_are_in_no_file_any_more(store: SqliteStore, path: Path) -> None:
    """Rows of many sizes, so that pages split and leave copies of rows behind; with this chance they surely do."""
    chance = random.Random(3)
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


async def test_an_old_view_delays_the_scrub_and_the_caller_gets_an_error(path: Path) -> None:
    async with await SqliteStore.open(path, busy_ms=20) as store:
        records, change = Story().tell(3, body=b"secret words")
        await store.append(records, change)
        scan = store.scan(size=1)
        await anext(scan)
        note, _ = note_append()
        with pytest.raises(Unavailable, match="the text is erased, but"):
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
    with contextlib.closing(sqlite3.connect(path)) as looking:
        assert looking.execute("PRAGMA user_version").fetchone() == (1,)
        async with await SqliteStore.open(path) as store:
            await store.append(*Story("run_b").tell())
            assert looking.execute("PRAGMA user_version").fetchone() == (0,)
            assert b"secret words" not in all_bytes(path.parent)
