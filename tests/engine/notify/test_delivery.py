"""At least once, in order per run, however the receiver behaves: hours and days of virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from engine.notify.serving import DAY_S, Receiver, kept, now_ms, server_of
from handrail.domain.notify.conditions import NoticeCondition
from handrail.domain.notify.rules import NotifyRule, NotifyWhen
from handrail.engine.notify.channel_server import ChannelServer
from handrail.engine.notify.control import Channels
from handrail.engine.notify.sender import NotSent
from handrail.storage.memory import MemoryStore
from storage.stories import Story
from virtual_time import in_virtual_time

RUNS = tuple(f"run_{letter}" for letter in "abcde")
EVENTS = 6


async def happen(store: MemoryStore, *, every_s: float = 0.0) -> None:
    """Five runs with six events each, mixed."""
    stories = {run: Story(run) for run in RUNS}
    for _ in range(EVENTS):
        for story in stories.values():
            await store.append(*story.tell())
            await asyncio.sleep(every_s)


@pytest.fixture
def looks_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    """For days of virtual time: what is looked at each second costs a test a minute."""
    monkeypatch.setattr("handrail.engine.notify.channel_server.LOOK_S", 30.0)


def play(scene: Callable[[MemoryStore, Receiver], Awaitable[Any]], receiver: Receiver, **given: Any) -> Any:
    """Play a scene while a channel is served."""

    async def whole() -> Any:
        store = MemoryStore()
        task = asyncio.ensure_future(server_of(store, receiver, **given).serve())
        try:
            return await scene(store, receiver)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return in_virtual_time(whole)


async def all_arrive(store: MemoryStore, receiver: Receiver, *, within_s: float) -> None:
    end = asyncio.get_running_loop().time() + within_s
    while len({one.id for one in receiver.arrived}) < len(RUNS) * EVENTS:
        assert asyncio.get_running_loop().time() < end, await kept(store)
        await asyncio.sleep(1)
    for run in RUNS:
        assert receiver.of(run) == list(range(1, EVENTS + 1)), "in order"
    await asyncio.sleep(1)
    assert (await kept(store)).waiting == 0


def test_what_happens_arrives_once_and_in_order_when_nothing_fails() -> None:
    async def scene(store: MemoryStore, receiver: Receiver) -> None:
        await happen(store)
        await all_arrive(store, receiver, within_s=60)
        assert len(receiver.arrived) == len(RUNS) * EVENTS
        assert (await kept(store)).state.sent == len(RUNS) * EVENTS

    play(scene, Receiver())


def test_a_receiver_that_is_away_for_an_hour_gets_everything_afterwards() -> None:
    def away(_: object, now_s: float) -> NotSent | None:
        return NotSent("it can't be reached") if now_s < 1_000 + 3_600 else None

    async def scene(store: MemoryStore, receiver: Receiver) -> None:
        await happen(store, every_s=60)
        await asyncio.sleep(3_600)
        await all_arrive(store, receiver, within_s=7_200)
        early = [at for at, _ in receiver.tries if at < 1_000 + 3_600]
        assert len(early) < 40, "it is left alone more and more"

    play(scene, Receiver(away))


def test_a_receiver_that_hangs_and_one_that_is_slow_get_everything() -> None:
    seen: set[str] = set()

    def hangs_first(notice: Any, _: float) -> float | None:
        is_first = notice.id not in seen
        seen.add(notice.id)
        return 1_000_000.0 if is_first else 3.0

    async def scene(store: MemoryStore, receiver: Receiver) -> None:
        await happen(store)
        await all_arrive(store, receiver, within_s=3_600 * 4)

    play(scene, Receiver(hangs_first))


@pytest.mark.usefixtures("looks_seldom")
def test_one_notice_that_is_always_refused_keeps_only_its_own_run_waiting() -> None:
    def refuses(notice: Any, _: float) -> NotSent | None:
        return NotSent("answered 500") if notice.subject == "run_b" and notice.data["n"] == 2 else None

    async def scene(store: MemoryStore, receiver: Receiver) -> None:
        await happen(store)
        await asyncio.sleep(3_600)
        assert receiver.of("run_b") == [1]
        assert all(receiver.of(run) == [1, 2, 3, 4, 5, 6] for run in RUNS if run != "run_b")
        await asyncio.sleep(4 * DAY_S)
        assert receiver.of("run_b") == [1, 3, 4, 5, 6], "given up after three days: the rest follows"
        (dead,) = await store.outbox().messages("ops", is_dead=True)
        assert (dead.notice.subject, dead.notice.data["n"], dead.error) == ("run_b", 2, "answered 500")
        assert dead.attempts > 50
        receiver.behaviour = lambda _notice, _now: None
        channels = Channels(store.outbox(), {"ops"})
        assert await channels.resend("ops", [dead.notice.id], actor="person:ada") == 1
        await asyncio.sleep(60)
        assert receiver.of("run_b") == [1, 3, 4, 5, 6, 2]
        assert (await kept(store)).dead == 0

    play(scene, Receiver(refuses))


def test_a_receiver_that_says_that_it_is_gone_or_busy_is_heard() -> None:
    def gone(notice: Any, now_s: float) -> NotSent | None:
        if notice.subject == "run_a":
            return NotSent("answered 410", is_final=True)
        return NotSent("answered 429", retry_after_ms=200_000) if now_s < 1_010 else None

    async def scene(store: MemoryStore, receiver: Receiver) -> None:
        await happen(store)
        await asyncio.sleep(3_600)
        assert (await kept(store)).dead == EVENTS
        assert not any(1_010 < at < 1_200 for at, _ in receiver.tries)
        assert receiver.of("run_c") == [1, 2, 3, 4, 5, 6]

    play(scene, Receiver(gone))


@pytest.mark.usefixtures("looks_seldom")
def test_nothing_is_sent_after_a_channel_was_disabled_and_nothing_is_lost_when_it_is_enabled() -> None:
    async def scene(store: MemoryStore, receiver: Receiver) -> None:
        channels = Channels(store.outbox(), {"ops"})
        await happen(store)
        await asyncio.sleep(60)
        await channels.disable("ops", actor="person:ada", at=now_ms(), reason="too many")
        before = len(receiver.tries)
        late = Story("run_late")
        await store.append(*late.tell())
        await asyncio.sleep(DAY_S)
        assert len(receiver.tries) == before
        await channels.enable("ops", actor="person:ada")
        await asyncio.sleep(60)
        assert receiver.of("run_late") == [1]
        await channels.disable("ops", actor="person:ada", at=now_ms(), reason="again")
        await store.append(*late.tell())
        await channels.enable("ops", actor="person:ada", end=await store.end())
        await store.append(*late.tell())
        await asyncio.sleep(60)
        assert receiver.of("run_late") == [1, 3], "--skip leaves out what happened meanwhile"

    play(scene, Receiver())


def test_a_process_that_takes_over_goes_on_where_the_first_stopped() -> None:
    async def scene() -> None:
        store, receiver = MemoryStore(), Receiver(lambda _notice, _now: NotSent("no"))
        first, second = server_of(store, receiver), server_of(store, receiver, owner="two")
        await happen(store)
        await first.round()
        assert not await second.round()
        assert (await kept(store)).waiting == len(RUNS) * EVENTS
        await store.outbox().release("one")
        receiver.behaviour = lambda _notice, _now: None
        task = asyncio.ensure_future(second.serve())
        await all_arrive(store, receiver, within_s=600)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    in_virtual_time(scene)


def test_a_process_that_ends_before_it_noted_an_arrival_sends_it_again_under_the_same_id() -> None:
    async def scene() -> None:
        store, receiver = MemoryStore(), Receiver(lambda _notice, _now: 5.0)
        await store.append(*Story("run_a").tell())
        task = asyncio.ensure_future(server_of(store, receiver).serve())
        await asyncio.sleep(4)
        task.cancel()  # the receiver has it half
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(10)
        await server_of(store, receiver).round()
        assert len({at for at, _ in receiver.tries}) == 2
        assert len({one for _, one in receiver.tries}) == 1

    in_virtual_time(scene)


def test_a_condition_is_told_once_as_long_as_it_lasts_and_again_when_it_comes_back() -> None:
    present: list[NoticeCondition] = []
    full = NoticeCondition(key="disk", when=NotifyWhen.DISK, subject="home", text="full")

    async def scene(store: MemoryStore, receiver: Receiver) -> None:
        for change in ([full], [], [full]):
            present[:] = change
            await asyncio.sleep(600)
        assert [one.text for one in receiver.arrived] == ["full", "full"]
        assert len({one.id for one in receiver.arrived}) == 2

    async def whole() -> None:
        store, receiver = MemoryStore(), Receiver()
        rule = NotifyRule(when=NotifyWhen.DISK, to=("ops",))
        task = asyncio.ensure_future(server_of(store, receiver, rule, conditions=lambda: list(present)).serve())
        await scene(store, receiver)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    in_virtual_time(whole)


def test_with_too_much_waiting_the_journal_is_read_no_further_and_nothing_is_lost(monkeypatch: Any) -> None:
    monkeypatch.setattr("handrail.engine.notify.channel_server.WAITING_MAX", 10)
    monkeypatch.setattr("handrail.engine.notify.reading_events.NOTICES_MAX", 5)
    monkeypatch.setattr("handrail.engine.notify.reading_events.BATCH", 5)

    async def scene(store: MemoryStore, receiver: Receiver) -> None:
        await happen(store)
        await asyncio.sleep(600)
        assert (await kept(store)).waiting <= 15
        receiver.behaviour = lambda _notice, _now: None
        await all_arrive(store, receiver, within_s=3_600)

    play(scene, Receiver(lambda _notice, _now: NotSent("no")))


def test_a_store_that_is_away_is_asked_again() -> None:
    async def scene() -> None:
        store, receiver = MemoryStore(), Receiver()
        server: ChannelServer = server_of(store, receiver)
        await store.append(*Story("run_a").tell())
        store._is_closed = True
        task = asyncio.ensure_future(server.serve())
        await asyncio.sleep(30)
        assert receiver.arrived == []
        store._is_closed = False
        await asyncio.sleep(30)
        assert receiver.of("run_a") == [1]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    in_virtual_time(scene)
