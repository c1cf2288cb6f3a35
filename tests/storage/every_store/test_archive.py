"""What every store promises for proof and repair: the whole store, its ends, and erasure. See test_conformance.py."""

from __future__ import annotations

import pytest
from msgspec.structs import astuple, replace

from handrail.domain.errors import Conflict, HandrailError, Invalid, JournalConflict, NotFound
from handrail.domain.journal.chain import GENESIS, Head, Record, first_break
from handrail.domain.journal.mark import START, Mark
from handrail.domain.journal.projection import NO_CHANGE, Change
from storage.conformance import Store, everything
from storage.every_store.notices import notice_about, notices, put_notices
from storage.stories import NOW, Story, head_of, note_append, plan_append, run_row, step_row, without_words

# --- the archive ----------------------------------------------------------------------------------


async def test_a_scan_gives_every_record_by_place_in_batches(store: Store) -> None:
    stories = [Story(f"run_{number}") for number in range(3)]
    expected: list[Record] = []
    marks: list[Mark] = []
    for _ in range(4):
        for story in stories:
            records, change = story.tell(2)
            await store.append(records, change)
            expected += records
            marks.append(await store.end())
    placed = await everything(store, size=5)
    assert [record for _, record in placed] == expected
    assert [seq for seq, _ in placed] == sorted({seq for seq, _ in placed})
    assert await everything(store, after=marks[9]) == placed[20:]
    assert await everything(store, after=marks[-1]) == []
    assert marks[-1].events == 24
    assert [len(batch) async for batch in store.scan(size=10)] == [10, 10, 4]
    assert [len(batch) async for batch in store.scan(after=marks[-2], size=0)] == [1, 1]


async def test_the_newest_records_come_first_up_to_any_position(store: Store) -> None:
    for story in (Story("run_a"), Story("run_b"), Story("run_c")):
        await store.append(*story.tell(3))
    placed = list(reversed(await everything(store)))
    assert [(one.seq, one.record) for one in await store.latest()] == placed
    assert [(one.seq, one.record) for one in await store.latest(until=placed[4][0], size=2)] == placed[4:6]
    assert [(one.seq, one.record) for one in await store.latest(until=placed[-1][0])] == placed[-1:]
    assert await store.latest(until=0) == []


async def test_the_mark_of_an_instant_leaves_no_later_event_behind(store: Store) -> None:
    for story in (Story("run_a"), Story("run_b")):
        await store.append(*story.tell(5))
    assert await store.mark_at(0) == START
    assert (await store.mark_at(NOW + 6)) == await store.end()
    story = Story("run_c")
    await store.append(*story.tell(20))
    behind = await everything(store, after=await store.mark_at(NOW + 10))
    assert [record.n for _, record in behind] == list(range(10, 21))


async def test_the_same_can_be_had_as_plain_columns(store: Store) -> None:
    for story in (Story("run_a"), Story("run_b")):
        await store.append(*story.tell(5))
    mark = await store.end()
    await store.append(*Story("run_c").tell(5))
    placed = [one async for batch in store.scan() for one in batch]
    columns = [(one.lane, one.number or one.seq, *astuple(one.record)) for one in placed]
    assert [row async for batch in store.rows(size=3) for row in batch] == columns
    assert [row async for batch in store.rows(after=mark, stops=[mark]) for row in batch] == columns[10:]


async def test_a_scan_does_not_see_what_is_appended_while_it_goes_on(store: Store) -> None:
    story = Story()
    await store.append(*story.tell(10))
    seen = []
    async for batch in store.scan(size=4):
        await store.append(*story.tell(3))
        seen += [placed.record.n for placed in batch]
        assert len(seen) <= 10
    assert seen == list(range(1, 11))
    assert len(await store.read("run_a")) == 19


async def test_a_scan_may_be_left_in_the_middle(store: Store) -> None:
    await store.append(*Story().tell(10))
    scan = store.scan(size=2)
    async for _ in scan:
        break
    await store.append(*Story("run_b").tell())
    assert len(await everything(store)) == 11


async def test_heads_are_the_ends_of_the_streams_that_changed_behind_a_place(store: Store) -> None:
    assert await store.heads() == (START, [])
    a, b, c = Story("run_a"), Story("run_b"), Story("run_c")
    marks = []
    for story in (a, b, c, a, b, a):
        await store.append(*story.tell())
        marks.append(await store.end())
    end = marks[-1]
    assert [mark.events for mark in marks] == [1, 2, 3, 4, 5, 6]
    assert await store.heads() == (end, [a.head, b.head, c.head])
    assert await store.heads(after=marks[2]) == (end, [a.head, b.head])
    assert await store.heads(after=marks[4]) == (end, [a.head])
    assert await store.heads(after=end) == (end, [])


async def test_an_intact_store_has_no_flaws(store: Store) -> None:
    await store.append(*Story().tell(20))
    assert await store.flaws() == await store.flaws(thorough=False) == []


async def test_rebuilding_puts_a_streams_projections_in_place_of_what_is_there(store: Store) -> None:
    story = Story()
    await store.append(*story.tell(4))
    (last,), change = story.tell()
    await store.append([last], change)
    rebuilt = Change(run=run_row(last, goal="as the events say"), steps=(step_row(last, message="rebuilt"),))
    await store.rebuild("run_a", rebuilt)
    assert await store.run("run_a") == rebuilt.run
    assert await store.steps("run_a") == list(rebuilt.steps)
    await store.append(*story.tell())
    assert len(await store.steps("run_a")) == 2
    records, plan_change = plan_append("deploy")
    await store.append(records, plan_change)
    await store.rebuild("plan/deploy", NO_CHANGE)
    assert await store.plan("deploy") is None


async def test_rebuilding_needs_events_and_rows_that_belong_to_them(store: Store) -> None:
    (record,), change = Story().tell()
    with pytest.raises(NotFound):
        await store.rebuild("run_a", change)
    await store.append([record], change)
    with pytest.raises(Invalid):
        await store.rebuild("run_b", change)
    with pytest.raises(Invalid):
        await store.rebuild("run_a", replace(change, run=None))
    assert await store.run("run_a") == change.run


async def test_only_a_stream_without_events_can_be_forgotten(store: Store) -> None:
    await store.append(*Story().tell())
    with pytest.raises(Conflict):
        await store.forget("run_a")
    await store.forget("run_b")
    assert await store.run("run_a") is not None


# --- erasure --------------------------------------------------------------------------------------


async def test_no_notice_has_the_words_of_an_erased_event(store: Store) -> None:
    records, change = Story(goal="the goal").tell(3)
    await store.append(records, change)
    told = [("run_a", 1), ("run_b", 2), ("run_a", 2), ("run_a", 3)]
    await put_notices(store, "ops", *(notice_about(run, n, number=i) for i, (run, n) in enumerate(told, 1)))
    sent = notice_about("run_a", 2, number=1)
    await put_notices(store, "other", sent)
    await put_notices(store, "other", replace(sent, attempts=4, tried=1, is_dead=True))
    assert await notices(store, "other", is_dead=True) == [("run_a", 2)]
    note, _ = note_append()
    await store.erase(without_words(records[1], b"{}"), note, replace(change, run=run_row(records[-1])))
    assert await notices(store, "ops") == [("run_a", 1), ("run_b", 2), ("run_a", 3)]
    assert await notices(store, "other", is_dead=True) == []


async def test_an_erased_event_keeps_its_place_and_the_chain_holds(store: Store) -> None:
    story = Story(goal="the secret goal")
    records, change = story.tell(3, body=b'{"output":"secret words"}')
    await store.append(records, change)
    erased = without_words(records[1], b'{"output":"[erased]"}')
    note, _ = note_append()
    rewritten = replace(change, run=run_row(records[-1], goal="[erased]"))
    await store.erase(erased, note, rewritten)
    kept = await store.read("run_a")
    assert kept == [records[0], erased, records[2]]
    assert first_break(Head("run_a"), kept) == (story.head, None)
    assert await store.read("store") == note
    assert await store.run("run_a") == rewritten.run
    assert await store.steps("run_a") == list(change.steps)
    await store.append(*story.tell())
    assert (await store.end()).events == 5


async def test_an_erasure_that_is_not_that_event_without_its_words_changes_nothing(store: Store) -> None:
    story = Story()
    records, change = story.tell(3, body=b"words")
    await store.append(records, change)
    note, _ = note_append()
    erased = without_words(records[1])
    wrong: list[tuple[Record, type[HandrailError]]] = [
        (replace(erased, n=9), NotFound),
        (replace(erased, stream="run_b"), NotFound),
        (replace(erased, actor="someone"), Invalid),
        (replace(erased, hash=GENESIS), Invalid),
        (replace(erased, erased=GENESIS), Invalid),
        (records[1], Invalid),
    ]
    for record, error in wrong:
        with pytest.raises(error):
            await store.erase(record, note, replace(NO_CHANGE))
    with pytest.raises(Invalid):
        await store.erase(erased, [], NO_CHANGE)
    with pytest.raises(Invalid):
        await store.erase(erased, note, Story("run_b").tell()[1])
    with pytest.raises(Invalid):
        await store.erase(erased, note, replace(change, run=None))
    assert await store.read("run_a") == records
    assert await store.read("store") == []
    assert await store.run("run_a") == change.run


async def test_an_erasure_whose_note_comes_too_late_changes_nothing(store: Store) -> None:
    records, change = Story().tell(2)
    await store.append(records, change)
    note, _ = note_append()
    await store.append(note, NO_CHANGE)
    with pytest.raises(JournalConflict):
        await store.erase(without_words(records[0]), note, change)
    assert await store.read("run_a") == records


async def test_an_event_is_erased_once(store: Store) -> None:
    records, change = Story().tell(2)
    await store.append(records, change)
    note, _ = note_append()
    await store.erase(without_words(records[0]), note, change)
    second, _ = note_append(head=head_of(note))
    with pytest.raises(Conflict):
        await store.erase(without_words(records[0]), second, change)
    assert await store.read("store") == note
