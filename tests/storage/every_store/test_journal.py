"""What every store promises, asked of each in the list (conformance.py)."""

from __future__ import annotations

import asyncio
import random

import pytest
from msgspec.structs import replace

from handrail.domain.errors import Invalid, JournalConflict, Limited, Unavailable
from handrail.domain.journal.chain import GENESIS, Head, Record, chained, first_break
from handrail.domain.journal.projection import NO_CHANGE, Change
from handrail.storage import admission
from storage.conformance import Store, everything
from storage.stories import Story, chain_behind, head_of, note_append, plan_append, run_row, step_row, without_words

# --- append and read ------------------------------------------------------------------------------


async def test_what_was_appended_is_read_back_in_order(store: Store) -> None:
    records, change = Story().tell(3, body=b'{"step":"build"}')
    await store.append(records, change)
    assert await store.read("run_a") == records


async def test_a_stream_that_never_began_is_empty(store: Store) -> None:
    assert await store.read("run_nobody") == []


async def test_reading_goes_on_behind_a_number_and_stops_at_a_limit(store: Store) -> None:
    records, change = Story().tell(9)
    await store.append(records, change)
    assert await store.read("run_a", after=4) == records[4:]
    assert await store.read("run_a", after=2, limit=3) == records[2:5]
    assert await store.read("run_a", after=9) == []
    assert await store.read("run_a", after=-1, limit=1) == records[:1]
    assert await store.read("run_a", limit=0) == []
    assert await store.read("run_a", limit=-1) == []


async def test_every_field_of_a_record_survives(store: Store) -> None:
    odd = chained(GENESIS, Record("run_ü\0", 1, 2**53, "step_failed", "ä/1", None, None, 7, b"", b"\x00\xff", b""))
    await store.append([odd], NO_CHANGE)
    assert await store.read("run_ü\0") == [odd]


async def test_an_event_that_was_erased_elsewhere_can_be_appended_as_it_is(store: Store) -> None:
    records, change = Story().tell(3, body=b"words")
    records[1] = without_words(records[1])
    await store.append(records, change)
    assert await store.read("run_a") == records
    assert [record for _, record in await everything(store)] == records


async def test_the_second_of_two_racing_appends_is_refused(store: Store) -> None:
    first, second = Story().tell(body=b"1"), Story().tell(body=b"2")
    await store.append(*first)
    with pytest.raises(JournalConflict):
        await store.append(*second)
    assert await store.read("run_a") == first[0]


async def test_of_many_appends_racing_at_once_exactly_one_wins(store: Store) -> None:
    rivals = [Story().tell(body=str(number).encode()) for number in range(30)]
    outcomes = await asyncio.gather(*(store.append(*rival) for rival in rivals), return_exceptions=True)
    assert outcomes.count(None) == 1
    assert sum(isinstance(outcome, JournalConflict) for outcome in outcomes) == 29
    assert await store.read("run_a") == rivals[outcomes.index(None)][0]


async def test_an_append_that_leaves_a_gap_is_refused(store: Store) -> None:
    story = Story()
    await store.append(*story.tell())
    story.tell()
    with pytest.raises(JournalConflict):
        await store.append(*story.tell())
    assert len(await store.read("run_a")) == 1


async def test_an_append_with_the_right_number_behind_another_history_is_refused(store: Store) -> None:
    kept, other = Story(), Story()
    await store.append(*kept.tell(body=b"kept"))
    other.tell(body=b"other")
    with pytest.raises(JournalConflict):
        await store.append(*other.tell())


async def test_a_refused_append_leaves_nothing_of_its_change(store: Store) -> None:
    await store.append(*Story().tell())
    before = (await store.run("run_a"), await store.steps("run_a"), await store.definitions())
    with pytest.raises(JournalConflict):
        await store.append(*Story(status="failed").tell(4, body=b"x", definitions=(("h", b"text"),)))
    assert (await store.run("run_a"), await store.steps("run_a"), await store.definitions()) == before


async def test_an_append_whose_own_events_do_not_follow_each_other_is_refused_whole(store: Store) -> None:
    records, change = Story().tell(4)
    for wrong in (
        [records[0], records[2], records[3]],
        [records[0], records[2], records[1]],
        [records[0], replace(records[1], body=b"changed"), records[2]],
    ):
        with pytest.raises(Invalid):
            await store.append(wrong, change)
    assert await store.read("run_a") == []
    assert await store.run("run_a") is None
    await store.append(records, change)


async def test_an_append_queued_behind_a_refused_one_on_the_same_stream_is_refused_too(store: Store) -> None:
    """Dispatch counts on this: it decides on a state whose append is still under way."""
    await store.append(*Story().tell(body=b"someone else"))
    story = Story()
    outcomes = await asyncio.gather(*(store.append(*story.tell()) for _ in range(5)), return_exceptions=True)
    assert all(isinstance(outcome, JournalConflict) for outcome in outcomes)


async def test_appends_to_one_stream_that_are_under_way_together_follow_each_other(store: Store) -> None:
    story = Story()
    await asyncio.gather(*(store.append(*story.tell(2)) for _ in range(50)))
    assert first_break(Head("run_a"), await store.read("run_a")) == (Head("run_a", 100, story.head.hash), None)


async def test_64_writers_keep_the_order_of_every_stream_and_answers_come_in_the_order_of_numbers(store: Store) -> None:
    answered: list[tuple[str, int]] = []

    async def write(story: Story) -> None:
        for _ in range(12):
            records, change = story.tell(random.Random(story.run).randint(1, 3))
            await store.append(records, change)
            answered.extend((record.stream, record.n) for record in records)

    stories = [Story(f"run_{number}") for number in range(64)]
    await asyncio.gather(*map(write, stories))
    kept = await everything(store)
    assert [seq for seq, _ in kept] == sorted({seq for seq, _ in kept})
    assert (await store.end()).events == len(kept) == len(answered)
    assert [(record.stream, record.n) for _, record in kept] == answered
    for story in stories:
        records = await store.read(story.run)
        assert first_break(Head(story.run), records) == (story.head, None)
        assert await store.run(story.run) == run_row(records[-1])


async def test_a_big_append_is_kept_whole(store: Store) -> None:
    records, change = Story().tell(admission.RECORDS_MAX, body=b"x" * 3_000)
    await store.append(records, change)
    assert await store.read("run_a") == records


async def test_a_caller_that_goes_away_disturbs_no_other_caller(store: Store) -> None:
    story = Story()
    leaving = [asyncio.ensure_future(store.append(*Story(f"run_{number}").tell())) for number in range(20)]
    staying = [asyncio.ensure_future(store.append(*story.tell())) for _ in range(20)]
    await asyncio.sleep(0)
    for task in leaving:
        task.cancel()
    await asyncio.gather(*leaving, return_exceptions=True)
    await asyncio.gather(*staying)
    assert len(await store.read("run_a")) == 20
    for number in range(20):  # each of them happened once or never
        assert len(await store.read(f"run_{number}")) in (0, 1)


# --- limits ---------------------------------------------------------------------------------------


async def test_too_much_in_one_append_is_limited_and_nothing_is_written(store: Store) -> None:
    many = Story().tell(admission.RECORDS_MAX + 1)
    large = Story().tell(body=b"x" * (admission.BODY_BYTES_MAX + 1))
    heavy = Story().tell(17, body=b"x" * admission.BODY_BYTES_MAX)
    wordy = Story().tell(definitions=(("h", b"x" * admission.APPEND_BYTES_MAX),), body=b"x")
    for records, change in (many, large, heavy, wordy):
        with pytest.raises(Limited):
            await store.append(records, change)
    assert await everything(store) == []


async def test_the_largest_body_fits(store: Store) -> None:
    records, change = Story().tell(body=b"x" * admission.BODY_BYTES_MAX)
    await store.append(records, change)
    assert await store.read("run_a") == records


async def test_an_append_must_be_of_one_stream_and_its_change_must_belong_to_it(store: Store) -> None:
    (record,), change = Story().tell()
    (stranger,), strange_change = Story("run_b").tell()
    _, plan_change = plan_append("p")
    for records, wrong in (
        ([], change),
        ([record, stranger], change),
        ([record], strange_change),
        ([record], replace(change, run=strange_change.run)),
        ([record], replace(change, steps=strange_change.steps)),
        ([record], plan_change),
    ):
        with pytest.raises(Invalid):
            await store.append(records, wrong)
    assert await everything(store) == []


async def test_steps_of_a_run_that_has_no_row_are_refused(store: Store) -> None:
    (record,), change = Story().tell()
    with pytest.raises(Invalid):
        await store.append([record], replace(change, run=None))
    assert await everything(store) == []


async def test_a_record_of_impossible_fields_is_refused_and_disturbs_no_other_caller(store: Store) -> None:
    (record,), change = Story("run_b").tell()
    impossible = [
        replace(record, actor="\ud800"),
        replace(record, at=object()),
        chained(GENESIS, replace(record, at=2**63)),
        chained(GENESIS, replace(record, attempt=1.5)),
    ]
    good = [Story(f"run_{number}").tell() for number in range(4)]
    appends = [*((([bad], change)) for bad in impossible), *good]
    outcomes = await asyncio.gather(*(store.append(*append) for append in appends), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Invalid] * 4 + [type(None)] * 4
    assert len(await everything(store)) == 4


# --- the shelf ------------------------------------------------------------------------------------


async def test_the_rows_of_a_run_and_its_steps_are_those_of_its_last_change(store: Store) -> None:
    story = Story()
    await store.append(*story.tell(3))
    records, change = story.tell(1)
    await store.append(records, change)
    assert await store.run("run_a") == change.run
    assert [(step.path, step.ended) for step in await store.steps("run_a")] == [
        ("step/1", records[0].at - 3),
        ("step/2", records[0].at - 2),
        ("step/3", records[0].at - 1),
        ("step/4", records[0].at),
    ]
    story.status, story.goal = "completed", "shipped"
    records, change = story.tell()
    await store.append(records, change)
    assert await store.run("run_a") == run_row(records[-1], status="completed", goal="shipped")


async def test_of_several_changes_under_way_together_the_last_one_stays(store: Store) -> None:
    story = Story()
    appends = []
    for status in ("running", "paused", "paused", "running", "running", "completed"):
        story.status = status
        appends.append(story.tell())
    await asyncio.gather(*(store.append(*append) for append in appends))
    assert await store.run("run_a") == appends[-1][1].run


async def test_a_step_may_change_without_its_run(store: Store) -> None:
    story = Story()
    await store.append(*story.tell())
    (record,), _ = story.tell()
    await store.append([record], Change(steps=(step_row(record, message="late"),)))
    assert [step.message for step in await store.steps("run_a")] == ["", "late"]
    assert await store.run("run_b") is None
    assert await store.steps("run_b") == []


async def test_runs_are_listed_by_id_and_status_a_page_at_a_time(store: Store) -> None:
    for number, status in enumerate(["running", "failed", "completed", "running", "failed", "paused"]):
        await store.append(*Story(f"run_{number}", status=status).tell())

    async def ids(**asked: object) -> list[str]:
        return [row.id for row in await store.runs(**asked)]  # type: ignore[arg-type]

    assert await ids() == [f"run_{number}" for number in range(6)]
    assert await ids(after="run_1", limit=2) == ["run_2", "run_3"]
    assert await ids(status=["running"]) == ["run_0", "run_3"]
    assert await ids(status=["failed", "running", "failed"]) == ["run_0", "run_1", "run_3", "run_4"]
    assert await ids(status=["failed", "running"], after="run_0", limit=2) == ["run_1", "run_3"]
    assert await ids(status=["nowhere"]) == []
    assert await ids(limit=0) == await ids(status=["failed"], limit=-1) == []


async def test_plans_are_kept_and_listed(store: Store) -> None:
    records, change = plan_append("deploy")
    await store.append(records, change)
    await store.append(*plan_append("clean"))
    retired = plan_append("deploy", head_of(records), retired=7)
    await store.append(*retired)
    assert await store.plan("deploy") == retired[1].plan
    assert await store.plan("nothing") is None
    assert [plan.id for plan in await store.plans()] == ["clean", "deploy"]
    assert [plan.id for plan in await store.plans(after="clean", limit=1)] == ["deploy"]
    assert await store.plans(limit=0) == []


async def test_definitions_are_kept_once_and_never_change(store: Store) -> None:
    story = Story()
    await store.append(*story.tell(definitions=(("h1", b"first"), ("h2", b"second"))))
    await store.append(*story.tell(definitions=(("h1", b"changed"), ("h3", b"third"))))
    assert await store.definition("h1") == b"first"
    assert await store.definition("h9") is None
    assert await store.definitions() == [("h1", b"first"), ("h2", b"second"), ("h3", b"third")]


# --- the end --------------------------------------------------------------------------------------


async def test_a_closed_store_refuses_every_call(store: Store) -> None:
    records, change = Story().tell()
    await store.append(records, change)
    await store.close()
    await store.close()
    note, _ = note_append()
    for call in (
        store.append(*Story("run_b").tell()),
        store.read("run_a"),
        store.definition("h"),
        store.run("run_a"),
        store.runs(),
        store.steps("run_a"),
        store.plan("p"),
        store.plans(),
        everything(store),
        store.heads(),
        store.definitions(),
        store.flaws(),
        store.rebuild("run_a", change),
        store.forget("run_b"),
        store.erase(without_words(records[0]), note, change),
    ):
        with pytest.raises(Unavailable):
            await call


async def test_a_store_that_closes_during_a_scan_says_so(store: Store) -> None:
    await store.append(*Story().tell(10))
    scan = store.scan(size=2)
    await anext(scan)
    await store.close()
    with pytest.raises(Unavailable):
        await anext(scan)


async def test_a_chain_can_be_made_of_any_mix_of_appends(store: Store) -> None:
    """Racing writers that retry after each conflict lose nothing and repeat nothing."""
    words = [f"word {number}".encode() for number in range(60)]

    async def write(mine: list[bytes]) -> None:
        for word in mine:
            while True:
                stored = await store.read("run_a")
                head = head_of(stored) if stored else Head("run_a")
                try:
                    await store.append(chain_behind(head, [word]), NO_CHANGE)
                    break
                except JournalConflict:
                    continue

    await asyncio.gather(*(write(words[start::6]) for start in range(6)))
    kept = await store.read("run_a")
    assert sorted(record.body for record in kept) == sorted(words)
    assert first_break(Head("run_a"), kept)[1] is None
