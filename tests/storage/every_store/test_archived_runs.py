"""What every store promises for archived runs: events leave and come back, and what proves them stays."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from handrail.domain.errors import Conflict, EventsDeleted, HandrailError, IntegrityBroken, JournalConflict
from handrail.domain.journal.archive_file import ArchiveHeader, PlacedRecord, digest_of, file_bytes, packed
from handrail.domain.journal.archived import Tombstone, archived_run
from handrail.domain.journal.chain import Head, Record
from handrail.domain.journal.event import STORE_STREAM
from handrail.domain.journal.projection import NO_CHANGE, Change
from storage.conformance import Store, everything
from storage.every_store.notices import notice_about, notices, put_notices
from storage.stories import NOW, Story, chain_behind

ARCHIVE = "arc_abcdefgh"


async def ended(store: Store, run: str, events: int = 3) -> list[Record]:
    """A run that has ended, in the store."""
    story = Story(run, status="completed")
    records, change = story.tell(events)
    assert change.run is not None
    await store.append(records, replace(change, run=replace(change.run, ended=NOW)))
    return records


def stone_of(records: Sequence[Record], archive: str = ARCHIVE) -> Tombstone:
    return Tombstone(records[-1].stream, records[-1].n, records[-1].hash, archive)


async def note(store: Store) -> list[Record]:
    """The next event of the store's own stream."""
    known = await store.read(STORE_STREAM)
    return chain_behind(Head(STORE_STREAM, known[-1].n, known[-1].hash) if known else Head(STORE_STREAM), [b"{}"])


async def write_archive(store: Store, *runs: Sequence[Record], archive: str = ARCHIVE) -> None:
    rest = packed([[PlacedRecord(1, record) for record in run] for run in runs], {})
    noted = tuple(archived_run(run) for run in runs)
    header = ArchiveHeader(archive=archive, store="s", made=NOW, runs=noted, digest=digest_of(rest), key="00")
    store.archives().files.write(archive, file_bytes(header, rest))


async def archived(store: Store, *runs: Sequence[Record]) -> None:
    await write_archive(store, *runs)
    await store.archives().archive([stone_of(run) for run in runs], await note(store))


async def test_an_archived_run_is_read_from_its_archive_and_its_row_stays(store: Store) -> None:
    story, row, steps = await ended(store, "run_a"), await store.run("run_a"), await store.steps("run_a")
    await ended(store, "run_b")
    await archived(store, story)
    assert await store.read("run_a") == story
    assert await store.read("run_a", after=1, limit=1) == story[1:2]
    assert await store.read("run_a", after=3) == []
    assert await store.run("run_a") == row
    assert steps
    assert await store.archives().tombstone("run_a") == stone_of(story)
    assert await store.archives().tombstone("run_b") is None
    assert await store.archives().tombstones() == [stone_of(story)]
    assert await store.archives().tombstones(after="run_a") == []


async def test_a_scan_leaves_out_archived_events_and_the_rows_keep_their_hashes(store: Store) -> None:
    one, other = await ended(store, "run_a"), await ended(store, "run_b")
    end = await store.end()
    before = [row async for batch in store.rows() for row in batch]
    await archived(store, one)
    assert [record for _, record in await everything(store)] == [*other, *await store.read(STORE_STREAM)]
    assert [placed.record.stream for placed in await store.latest()] == [STORE_STREAM, "run_b", "run_b", "run_b"]
    after = [row async for batch in store.rows() for row in batch]
    kept = [(*row[:4], row[12]) for row in after if row[2] != STORE_STREAM]
    assert kept == [(*row[:4], row[12]) for row in before]
    assert {row[5] for row in after if row[2] == "run_a"} == {None}
    assert (await store.end()).covers(end)
    assert await store.flaws() == []


async def test_the_end_of_an_archived_stream_stays_among_the_ends(store: Store) -> None:
    one, other = await ended(store, "run_a"), await ended(store, "run_b")
    await archived(store, one)
    _, heads = await store.heads()
    assert [head for head in heads if head.stream != STORE_STREAM] == [
        Head("run_a", 3, one[-1].hash),
        Head("run_b", 3, other[-1].hash),
    ]


async def test_nothing_can_be_appended_to_an_archived_run(store: Store) -> None:
    one = await ended(store, "run_a")
    await archived(store, one)
    more = chain_behind(Head("run_a", 3, one[-1].hash), [b"{}"])
    with pytest.raises(Conflict, match="run_a is archived"):
        await store.append(more, NO_CHANGE)
    with pytest.raises(HandrailError):
        await store.append(chain_behind(Head("run_a"), [b"{}"]), NO_CHANGE)
    assert await store.read("run_a") == one


async def test_an_unarchived_run_is_where_it_was(store: Store) -> None:
    one, _ = await ended(store, "run_a"), await ended(store, "run_b")
    before, steps = await everything(store), await store.steps("run_a")
    await archived(store, one)
    await store.archives().unarchive(
        [(one, Change(run=await store.run("run_a"), steps=tuple(steps)))], await note(store)
    )
    assert (await everything(store))[: len(before)] == before
    assert await store.steps("run_a") == steps
    assert await store.archives().tombstones() == []
    assert await store.flaws() == []
    await store.append(chain_behind(Head("run_a", 3, one[-1].hash), [b"{}"]), NO_CHANGE)


async def test_other_events_than_the_archived_ones_do_not_come_back(store: Store) -> None:
    one = await ended(store, "run_a")
    await archived(store, one)
    forged = chain_behind(Head("run_a"), [b'{"n":1}', b"{}", b"{}"])
    with pytest.raises(IntegrityBroken, match="not the ones that were archived"):
        await store.archives().unarchive([(forged, NO_CHANGE)], await note(store))
    assert await store.read("run_a") == one
    assert len(await store.read(STORE_STREAM)) == 1


async def test_a_run_that_has_not_ended_or_has_changed_is_not_archived(store: Store) -> None:
    records, change = Story("run_a").tell(2)
    await store.append(records, change)
    one = await ended(store, "run_b")
    changed = replace(stone_of(one), head=records[-1].hash)
    for stones in ([stone_of(records)], [changed], [stone_of(one), stone_of(records)]):
        with pytest.raises(Conflict):
            await store.archives().archive(stones, await note(store))
    assert await store.archives().tombstones() == []
    assert await store.read(STORE_STREAM) == []
    assert len(await everything(store)) == 5


async def test_a_note_that_comes_too_late_archives_nothing(store: Store) -> None:
    one = await ended(store, "run_a")
    late = await note(store)
    await store.append(chain_behind(Head(STORE_STREAM), [b'{"first":1}']), NO_CHANGE)
    await write_archive(store, one)
    with pytest.raises(JournalConflict):
        await store.archives().archive([stone_of(one)], late)
    assert await store.archives().tombstones() == []
    assert len(await everything(store)) == 4


async def test_a_deleted_archive_leaves_places_and_hashes(store: Store) -> None:
    one = await ended(store, "run_a")
    await archived(store, one)
    await put_notices(store, "ops", notice_about("run_a", 3, number=1), notice_about("run_b", 3, number=2))
    await store.archives().move([stone_of(one, ARCHIVE)], await note(store))
    assert await notices(store, "ops") == [("run_a", 3), ("run_b", 3)]
    await store.archives().move([stone_of(one, "")], await note(store))
    assert await notices(store, "ops") == [("run_b", 3)], "nothing tells of what was deleted"
    store.archives().files.remove(ARCHIVE)
    with pytest.raises(EventsDeleted, match="run_a were deleted"):
        await store.read("run_a")
    assert await store.steps("run_a") == []
    assert [row[2] async for batch in store.rows() for row in batch].count("run_a") == 3
    assert await store.flaws() == []


async def test_a_missing_archive_is_named(store: Store) -> None:
    one = await ended(store, "run_a")
    await archived(store, one)
    store.archives().files.remove(ARCHIVE)
    with pytest.raises(IntegrityBroken, match=ARCHIVE):
        await store.read("run_a")


async def test_only_the_own_row_of_an_archived_run_is_rebuilt(store: Store) -> None:
    one, row = await ended(store, "run_a"), await store.run("run_a")
    assert row is not None
    steps = await store.steps("run_a")
    await archived(store, one)
    await store.rebuild("run_a", Change(run=replace(row, goal="again"), steps=tuple(steps)))
    found = await store.run("run_a")
    assert found is not None
    assert found.goal == "again"
    with pytest.raises(Conflict):
        await store.forget("run_a")
    assert await store.flaws() == []


async def test_what_is_archived_is_counted_apart(store: Store) -> None:
    one, _ = await ended(store, "run_a"), await ended(store, "run_b", 2)
    await archived(store, one)
    size = await store.archives().size()
    assert (size.events, size.archived, size.archived_runs) == (3, 3, 1)
    assert await store.archives().compact(pages=10) == 0
