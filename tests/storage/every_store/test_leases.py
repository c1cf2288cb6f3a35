"""What every store promises about leases: of two who execute one run, the older is refused by the store itself."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from handrail.domain.errors import Forbidden, Invalid, JournalConflict, LeaseLost, Limited, Unavailable
from handrail.domain.journal.projection import Change
from handrail.engine.proving.projection_repair import difference
from handrail.engine.running.lease import Lease, LeaseHolder
from handrail.storage import admission, stream_cache
from handrail.storage.sqlite.store import SqliteStore
from storage.conformance import Store, everything
from storage.stories import Append, Story, head_of, note_append, without_words

ADA, BOB = "worker-ada", "worker-bob"


def as_run(told: Append, *, status: str = "running", mode: str = "run") -> Append:
    """What was told, with another status or mode in the run's row."""
    records, change = told
    assert change.run is not None
    is_open = status in {"running", "compensating", "paused"}
    row = replace(change.run, status=status, mode=mode, ended=None if is_open else records[-1].at)
    return records, Change(run=row, steps=change.steps)


async def started(store: Store, run: str = "run_a", *, lease: Lease | None = None) -> Story:
    story = Story(run)
    await store.append(*story.tell(), lease=lease)
    return story


async def seen(store: Store, run: str = "run_a") -> LeaseHolder:
    (one,) = [lease_holder for lease_holder in await store.lease_holders() if lease_holder.run == run]
    return one


async def taken_over(store: Store, run: str = "run_a") -> Lease:
    """Bob takes the run from whoever has it."""
    (lease,) = await store.claim(BOB, [await seen(store, run)])
    return lease


# --- appending under a lease ----------------------------------------------------------------------


async def test_a_run_can_be_started_and_claimed_in_one_append(store: Store) -> None:
    await store.beat(ADA)
    story = await started(store, lease=Lease("run_a", ADA))
    assert await store.lease_holders() == [LeaseHolder("run_a", 1, ADA, 1, 1)]
    await store.append(*story.tell(), lease=Lease("run_a", ADA))
    assert await store.lease_holders() == [LeaseHolder("run_a", 2, ADA, 1, 1)]


async def test_of_two_who_start_and_claim_one_run_the_second_is_refused(store: Store) -> None:
    story = await started(store, lease=Lease("run_a", ADA))
    with pytest.raises(LeaseLost):
        await store.append(*story.tell(), lease=Lease("run_a", BOB))
    assert (await seen(store)).owner == ADA


async def test_only_the_first_append_of_a_run_claims_it_and_only_in_the_first_epoch(store: Store) -> None:
    story = Story("run_a")
    told = story.tell()
    for epoch in (-1, 0, 2):
        with pytest.raises(LeaseLost):
            await store.append(*told, lease=Lease("run_a", ADA, epoch))
    await store.append(*told)
    with pytest.raises(LeaseLost):
        await store.append(*story.tell(), lease=Lease("run_a", ADA))
    assert await seen(store) == LeaseHolder("run_a", 1)


async def test_an_append_under_an_older_epoch_is_refused_and_nothing_of_it_is_written(store: Store) -> None:
    story = await started(store, lease=Lease("run_a", ADA))
    newer = await taken_over(store)
    before = await everything(store), await store.run("run_a"), await store.steps("run_a"), await seen(store)
    records, change = Story("run_a", story.head).tell(2, definitions=(("hash", b"text"),))
    with pytest.raises(LeaseLost, match="no longer held by 'worker-ada' in epoch 1") as refused:
        await store.append(records, change, lease=Lease("run_a", ADA))
    assert refused.value.hint == "another worker executes this run now; nothing was written"
    after = await everything(store), await store.run("run_a"), await store.steps("run_a"), await seen(store)
    assert after == before
    assert await store.definition("hash") is None
    await store.append(records, change, lease=newer)


async def test_the_same_owner_in_an_older_epoch_is_refused_too(store: Store) -> None:
    story = await started(store, lease=Lease("run_a", BOB))
    assert await taken_over(store) == Lease("run_a", BOB, 2)
    with pytest.raises(LeaseLost):
        await store.append(*story.tell(), lease=Lease("run_a", BOB, 1))


async def test_a_lost_lease_is_reported_before_a_lost_race(store: Store) -> None:
    story = await started(store, lease=Lease("run_a", ADA))
    stale = Story("run_a", story.head).tell(body=b"stale")
    await store.append(*story.tell(), lease=await taken_over(store))
    with pytest.raises(LeaseLost):
        await store.append(*stale, lease=Lease("run_a", ADA))


async def test_a_lost_race_under_a_good_lease_is_a_conflict_and_claims_nothing(store: Store) -> None:
    await started(store)
    with pytest.raises(JournalConflict):
        await store.append(*Story("run_a").tell(body=b"late"), lease=Lease("run_a", ADA))
    assert (await seen(store)).owner == ""


async def test_an_append_without_a_lease_is_taken_even_when_someone_holds_the_run(store: Store) -> None:
    """Controls come from anywhere; the holder finds them in the journal."""
    story = await started(store, lease=Lease("run_a", ADA))
    await store.append(*story.tell())
    assert await seen(store) == LeaseHolder("run_a", 2, ADA, 1)
    await store.append(*story.tell(), lease=Lease("run_a", ADA))


async def test_a_lease_of_another_run_or_without_an_owner_is_invalid(store: Store) -> None:
    for lease in (Lease("run_b", ADA), Lease("run_a", "")):
        with pytest.raises(Invalid):
            await store.append(*Story("run_a").tell(), lease=lease)
    assert await everything(store) == []


async def test_many_appends_at_once_each_keep_to_their_lease(store: Store) -> None:
    stories = [await started(store, f"run_{number}", lease=Lease(f"run_{number}", ADA)) for number in range(20)]
    lost = {lease.run for lease in await store.claim(BOB, (await store.lease_holders())[::2])}
    assert len(lost) == 10
    told = [story.tell() for story in stories]
    outcomes = await asyncio.gather(
        *(store.append(*one, lease=Lease(one[0][0].stream, ADA)) for one in told), return_exceptions=True
    )
    assert {story.run for story, outcome in zip(stories, outcomes, strict=True) if outcome is not None} == lost
    assert sum(isinstance(outcome, LeaseLost) for outcome in outcomes) == 10


# --- the end of a run -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_held", [True, False])
async def test_the_end_of_a_run_frees_its_lease_by_any_append(store: Store, is_held: bool) -> None:
    lease = Lease("run_a", ADA)
    story = await started(store, lease=lease)
    await store.append(*as_run(story.tell(), status="completed"), lease=lease if is_held else None)
    assert await store.lease_holders() == []
    await store.append(*as_run(story.tell(), status="compensating"))
    assert await seen(store) == LeaseHolder("run_a", 3)


async def test_a_run_that_starts_and_ends_in_one_append_leaves_no_lease(store: Store) -> None:
    story = Story("run_a")
    await store.append(*as_run(story.tell(2), status="completed"), lease=Lease("run_a", ADA))
    await store.append(*as_run(story.tell(), status="compensating"))
    assert await seen(store) == LeaseHolder("run_a", 3)


async def test_claimed_ended_and_started_again_at_once_is_free_for_all(store: Store) -> None:
    story = Story("run_a")
    appends = [
        (story.tell(), Lease("run_a", ADA)),
        (as_run(story.tell(), status="failed"), Lease("run_a", ADA)),
        (as_run(story.tell(), status="compensating"), None),
    ]
    await asyncio.gather(*(store.append(*told, lease=lease) for told, lease in appends))
    assert await store.lease_holders() == [LeaseHolder("run_a", 3)]
    with pytest.raises(LeaseLost):  # whoever held it before its end must claim it like anybody
        await store.append(*story.tell(), lease=Lease("run_a", ADA))


async def test_a_paused_run_keeps_its_lease_and_is_not_listed(store: Store) -> None:
    story = await started(store, lease=Lease("run_a", ADA))
    await store.append(*as_run(story.tell(), status="paused"))
    assert await store.lease_holders() == []
    await store.append(*story.tell())
    assert await seen(store) == LeaseHolder("run_a", 3, ADA, 1)


# --- what can be seen -----------------------------------------------------------------------------


async def test_the_runs_with_work_for_us_are_listed_by_id_in_pages(store: Store) -> None:
    for number in range(9):
        story = Story(f"run_{number}")
        status = ("running", "compensating", "completed")[number % 3]
        await store.append(*as_run(story.tell(), status=status, mode="record" if number in (3, 4) else "run"))
    runs = ["run_0", "run_1", "run_6", "run_7"]
    assert await store.lease_holders() == [LeaseHolder(run, 1) for run in runs]
    assert [one.run for one in await store.lease_holders(limit=3)] == runs[:3]
    assert [one.run for one in await store.lease_holders(after="run_1", limit=1)] == ["run_6"]
    assert await store.lease_holders(after="run_7") == []
    assert await store.lease_holders(limit=0) == []
    assert await store.lease_holders(limit=-1) == []


async def test_every_beat_is_counted_beside_the_leases_of_its_owner(store: Store) -> None:
    await started(store, "run_a", lease=Lease("run_a", ADA))
    await started(store, "run_b", lease=Lease("run_b", BOB))
    assert [one.beat for one in await store.lease_holders()] == [0, 0]
    for _ in range(3):
        await store.beat(ADA)
    await store.beat(BOB)
    assert [one.beat for one in await store.lease_holders()] == [3, 1]


# --- claiming -------------------------------------------------------------------------------------


async def test_a_free_run_is_claimed_in_the_first_epoch_and_its_claimer_is_there(store: Store) -> None:
    story = await started(store)
    assert await store.claim(ADA, [await seen(store)]) == [Lease("run_a", ADA, 1)]
    assert await seen(store) == LeaseHolder("run_a", 1, ADA, 1, 1)
    await store.append(*story.tell(), lease=Lease("run_a", ADA, 1))


async def test_a_claim_of_what_was_seen_is_refused_when_the_beat_went_on(store: Store) -> None:
    await store.beat(ADA)
    await started(store, lease=Lease("run_a", ADA))
    before = await seen(store)
    await store.beat(ADA)
    assert await store.claim(BOB, [before]) == []
    assert await seen(store) == LeaseHolder("run_a", 1, ADA, 1, 2)
    assert await store.claim(BOB, [await seen(store)]) == [Lease("run_a", BOB, 2)]


async def test_a_claim_is_refused_when_someone_else_claimed_first(store: Store) -> None:
    await started(store)
    before = await seen(store)
    outcomes = await asyncio.gather(*(store.claim(f"worker-{number}", [before]) for number in range(20)))
    (winner,) = [lease for leases in outcomes for lease in leases]
    assert await seen(store) == LeaseHolder("run_a", 1, winner.owner, 1, 1)


async def test_a_claim_is_refused_when_its_owner_released_and_took_it_again(store: Store) -> None:
    await started(store)
    (first,) = await store.claim(ADA, [await seen(store)])
    before = await seen(store)
    await store.release([first])
    await store.claim(ADA, [await seen(store)])
    assert await store.claim(BOB, [before]) == []


async def test_a_claim_is_refused_when_another_owner_started_again_behind_the_end_of_the_run(store: Store) -> None:
    story = await started(store, lease=Lease("run_a", ADA))
    before = await seen(store)
    await store.append(*as_run(story.tell(), status="failed"))
    await store.append(*as_run(story.tell(), status="compensating"))
    await store.claim("worker-cleo", [await seen(store)])
    assert await store.claim(BOB, [before]) == []
    assert (await seen(store)).owner == "worker-cleo"


async def test_events_of_others_do_not_hinder_a_claim(store: Store) -> None:
    story = await started(store)
    before = await seen(store)
    await store.append(*story.tell())
    assert await store.claim(ADA, [before]) == [Lease("run_a", ADA, 1)]


@pytest.mark.parametrize("status", ["completed", "paused"])
async def test_a_claim_is_refused_for_a_run_that_has_no_work_any_more(store: Store, status: str) -> None:
    story = await started(store)
    before = await seen(store)
    await store.append(*as_run(story.tell(), status=status))
    assert await store.claim(ADA, [before]) == []
    await store.append(*as_run(story.tell(), status="compensating"))
    assert await seen(store) == LeaseHolder("run_a", 3)


async def test_a_claim_takes_what_it_can_and_leaves_the_rest(store: Store) -> None:
    for run in ("run_a", "run_b", "run_c"):
        await started(store, run)
    before = await store.lease_holders()
    await store.claim(ADA, before[1:2])
    wanted = [*before, before[0], LeaseHolder("run_nowhere", 1)]
    assert await store.claim(BOB, wanted) == [Lease("run_a", BOB, 1), Lease("run_c", BOB, 1)]
    assert [one.owner for one in await store.lease_holders()] == [BOB, ADA, BOB]


async def test_a_claim_sees_what_was_appended_just_before_it(store: Store) -> None:
    story = await started(store)
    before = await seen(store)
    ended = as_run(story.tell(), status="completed")
    _, taken = await asyncio.gather(store.append(*ended), store.claim(ADA, [before]))
    assert taken == []


# --- giving back ----------------------------------------------------------------------------------


async def test_what_was_released_is_free_and_its_next_owner_stands_above(store: Store) -> None:
    story = await started(store, lease=Lease("run_a", ADA))
    await store.release([Lease("run_a", ADA)])
    assert await seen(store) == LeaseHolder("run_a", 1, "", 1)
    assert await taken_over(store) == Lease("run_a", BOB, 2)
    await store.append(*story.tell(), lease=Lease("run_a", BOB, 2))


async def test_an_owner_that_released_is_refused_even_while_the_run_is_free(store: Store) -> None:
    story = await started(store, lease=Lease("run_a", ADA))
    newer = await taken_over(store)
    await store.release([newer])
    assert await seen(store) == LeaseHolder("run_a", 1, "", 2)
    told = story.tell()
    for lease in (Lease("run_a", ADA, 1), newer, Lease("run_a", ADA, 2), Lease("run_a", ADA, 3)):
        with pytest.raises(LeaseLost):
            await store.append(*told, lease=lease)


async def test_release_of_a_lost_lease_changes_nothing(store: Store) -> None:
    await started(store, lease=Lease("run_a", ADA))
    await taken_over(store)
    before = await seen(store)
    await store.release([Lease("run_a", ADA, 1), Lease("run_a", ADA, 2), Lease("run_a", BOB, 1), Lease("run_x", BOB)])
    assert await seen(store) == before


async def test_a_run_that_rests_is_awake_again_when_something_happens_to_it(store: Store) -> None:
    stories = [await started(store, f"run_{number}", lease=Lease(f"run_{number}", ADA)) for number in range(4)]
    leases = [Lease(story.run, ADA) for story in stories]
    await store.append(*stories[2].tell())  # not seen by who says that it rests
    await store.release(leases[:3], resting={"run_0": 1, "run_1": 1, "run_2": 1})
    await store.append(*stories[1].tell())
    awake = {one.run for one in await store.lease_holders(is_awake=True)}
    assert {"run_1", "run_2", "run_3"} <= awake
    assert {one.run for one in await store.lease_holders()} == {"run_0", "run_1", "run_2", "run_3"}
    (again,) = await store.claim(BOB, [one for one in await store.lease_holders() if one.run == "run_0"])
    assert again == Lease("run_0", BOB, 2)


async def test_a_run_that_rests_until_an_instant_is_awake_from_then_on(store: Store) -> None:
    for run in ("run_a", "run_b", "run_c"):
        await started(store, run, lease=Lease(run, ADA))
    leases = [Lease(run, ADA) for run in ("run_a", "run_b", "run_c")]
    await store.release(leases, resting={"run_a": 1, "run_b": 1}, until={"run_a": 5_000, "run_c": 5_000})
    early, late = [[one.run for one in await store.lease_holders(is_awake=True, now=now)] for now in (4_999, 5_000)]
    assert {"run_c"} <= set(early)
    assert {"run_a", "run_c"} <= set(late)
    if "run_b" not in late:  # a store that leaves out runs that rest does so until they are due, and not longer
        assert (early, late) == (["run_c"], ["run_a", "run_c"])


async def test_an_owner_that_retires_releases_everything_and_is_forgotten(store: Store) -> None:
    stories = [await started(store, run, lease=Lease(run, ADA)) for run in ("run_a", "run_b")]
    await started(store, "run_c", lease=Lease("run_c", BOB))
    await store.beat(ADA)
    await store.beat(ADA)
    await store.retire(ADA)
    free = [LeaseHolder("run_a", 1, "", 1), LeaseHolder("run_b", 1, "", 1), LeaseHolder("run_c", 1, BOB, 1)]
    assert await store.lease_holders() == free
    with pytest.raises(LeaseLost):
        await store.append(*stories[0].tell(), lease=Lease("run_a", ADA))
    assert await store.claim(ADA, free[:1]) == [Lease("run_a", ADA, 2)]
    assert (await seen(store)).beat == 1
    await store.retire("worker-nobody")


async def test_an_owner_without_a_name_is_invalid(store: Store) -> None:
    with pytest.raises(Invalid):
        await store.beat("")
    with pytest.raises(Invalid):
        await store.claim("", [])
    with pytest.raises(Invalid):
        await store.retire("")


async def test_more_leases_than_others_should_wait_for_are_limited(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "LEASES_MAX", 2)
    with pytest.raises(Limited):
        await store.claim(ADA, [LeaseHolder(f"run_{number}", 1) for number in range(3)])
    with pytest.raises(Limited):
        await store.release([Lease(f"run_{number}", ADA) for number in range(3)])


async def test_a_closed_store_answers_no_question_about_leases(store: Store) -> None:
    await store.close()
    for call in (store.beat(ADA), store.lease_holders(), store.claim(ADA, []), store.release([]), store.retire(ADA)):
        with pytest.raises(Unavailable):
            await call


# --- beside the events ----------------------------------------------------------------------------


async def test_rebuilding_and_erasing_leave_leases_alone(store: Store) -> None:
    story = Story("run_a")
    records, change = story.tell(2, body=b"words")
    await store.append(records, change, lease=Lease("run_a", ADA))
    await store.rebuild("run_a", change)
    note, _ = note_append()
    await store.erase(without_words(records[0]), note, change)
    assert await seen(store) == LeaseHolder("run_a", 2, ADA, 1)
    await store.append(*story.tell(), lease=Lease("run_a", ADA))
    ended = as_run(story.tell(), status="completed")[1]
    await store.rebuild("run_a", ended)  # rows can be rewritten to anything: only an append ends a run
    await store.rebuild("run_a", change)
    assert await seen(store) == LeaseHolder("run_a", 2, ADA, 1)


async def test_leases_are_no_part_of_what_is_proved(store: Store) -> None:
    records, change = Story("run_a").tell(3, body=b'{"step":"step/1"}')
    await store.append(records, change, lease=Lease("run_a", ADA))
    await store.beat(ADA)
    assert await difference(store, "run_a", fold=lambda *_: change) is None
    end, heads = await store.heads()
    assert (end.events, heads) == (3, [head_of(records)])
    assert await store.flaws() == []


# --- two stores on one file -----------------------------------------------------------------------


@pytest.fixture
async def two(path: Path) -> AsyncIterator[tuple[SqliteStore, SqliteStore]]:
    async with await SqliteStore.open(path) as ours, await SqliteStore.open(path) as theirs:
        yield ours, theirs


async def test_an_old_owner_is_refused_after_another_process_claimed(two: tuple[SqliteStore, SqliteStore]) -> None:
    ours, theirs = two
    story = await started(ours, lease=Lease("run_a", ADA))
    await ours.append(*story.tell(), lease=Lease("run_a", ADA))
    newer = await taken_over(theirs)
    told = story.tell()
    with pytest.raises(LeaseLost):
        await ours.append(*told, lease=Lease("run_a", ADA))
    await theirs.append(*told, lease=newer)
    await theirs.release([newer])
    (back,) = await ours.claim(ADA, [await seen(ours)])
    await ours.append(*story.tell(), lease=back)
    with pytest.raises(LeaseLost):
        await theirs.append(*story.tell(), lease=newer)


async def test_of_two_processes_that_claim_at_once_exactly_one_wins(two: tuple[SqliteStore, SqliteStore]) -> None:
    for number in range(30):
        await started(two[0], f"run_{number:02}")
    before = await two[0].lease_holders()
    first, second = await asyncio.gather(two[0].claim(ADA, before), two[1].claim(BOB, before[::-1]))
    assert sorted(lease.run for lease in first + second) == [one.run for one in before]


async def test_a_store_for_reading_only_shows_leases_and_takes_none(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        await started(store, lease=Lease("run_a", ADA))
    async with await SqliteStore.open(path, read_only=True) as reading:
        assert await reading.lease_holders() == [LeaseHolder("run_a", 1, ADA, 1)]
        with pytest.raises(Forbidden):
            await reading.beat(BOB)


async def test_leases_survive_the_end_of_the_process(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        await store.beat(ADA)
        story = await started(store, lease=Lease("run_a", ADA))
    async with await SqliteStore.open(path) as store:
        assert await seen(store) == LeaseHolder("run_a", 1, ADA, 1, 1)
        with pytest.raises(LeaseLost):
            await store.append(*story.tell(), lease=Lease("run_a", BOB))


# --- what it costs --------------------------------------------------------------------------------


def statements_of(store: SqliteStore) -> list[str]:
    """What the writer asks of SQLite from now on."""
    asked: list[str] = []
    writer = store._writer
    assert writer is not None
    writer._connection.set_trace_callback(asked.append)
    return asked


async def test_neither_a_lease_nor_a_beat_nor_a_claim_costs_a_later_append_a_question(path: Path) -> None:
    async with await SqliteStore.open(path) as store:
        story, other = await started(store, lease=Lease("run_a", ADA)), await started(store, "run_b")
        await store.append(*story.tell(), lease=Lease("run_a", ADA))
        plain = statements_of(store)
        await store.append(*other.tell())
        asked = statements_of(store)
        await store.append(*story.tell(), lease=Lease("run_a", ADA))
        assert len(asked) == len(plain)
        await store.beat(ADA)
        (newer,) = await store.claim(BOB, [await seen(store)])
        (free,) = await store.claim(ADA, [await seen(store, "run_b")])
        await store.release([free])
        asked = statements_of(store)
        await store.append(*story.tell(), lease=newer)
        assert len(asked) == len(plain)
        with pytest.raises(LeaseLost):
            await store.append(*other.tell(), lease=free)
        assert not any("FROM event" in one or "FROM lease" in one for one in asked)


async def test_what_is_forgotten_of_a_stream_is_asked_again_with_its_lease(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_cache, "STREAMS_KNOWN", 2)
    async with await SqliteStore.open(path) as store:
        stories = [await started(store, f"run_{number}", lease=Lease(f"run_{number}", ADA)) for number in range(5)]
        for story in stories:
            await taken_over(store, story.run)
            with pytest.raises(LeaseLost):
                await store.append(*Story(story.run, story.head).tell(), lease=Lease(story.run, ADA))
            await store.append(*story.tell(), lease=Lease(story.run, BOB, 2))


async def together(store: SqliteStore, other_process: sqlite3.Connection, calls: Sequence[Awaitable[None]]) -> None:
    """Let calls gather until the writer takes them all at once."""
    inbox = store._writer._inbox if store._writer else None
    assert inbox is not None
    other_process.execute("BEGIN IMMEDIATE")
    waiting = [asyncio.ensure_future(store.append(*Story("run_first").tell()))]
    await asyncio.sleep(0)
    while inbox._waiting:  # until the writer has it in its hands, and waits for the lock
        await asyncio.sleep(0.001)
    waiting += [asyncio.ensure_future(call) for call in calls]
    await asyncio.sleep(0)
    other_process.execute("ROLLBACK")
    await asyncio.gather(*waiting)


async def test_beats_share_their_sync_with_the_appends_around_them(
    path: Path, other_process: sqlite3.Connection
) -> None:
    async with await SqliteStore.open(path) as store:
        asked = statements_of(store)
        calls: list[Awaitable[None]] = []
        for number in range(20):
            calls += [store.append(*Story(f"run_{number}").tell()), store.beat(ADA)]
        await together(store, other_process, calls)
        assert asked.count("COMMIT") == 2


async def test_claimed_and_ended_in_one_transaction_leaves_no_lease(
    path: Path, other_process: sqlite3.Connection
) -> None:
    async with await SqliteStore.open(path) as store:
        story, lease = Story("run_a"), Lease("run_a", ADA)
        first, second = story.tell(), as_run(story.tell(), status="completed")
        await together(store, other_process, [store.append(*told, lease=lease) for told in (first, second)])
        assert other_process.execute("SELECT count(*) FROM lease").fetchone() == (0,)
