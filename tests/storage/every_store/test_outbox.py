"""What every store promises about the outbox: nothing is lost, one process at a time serves a channel, and of each
subject only the first that waits may be sent."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from handrail.domain.notify.notice import Message, Notice
from handrail.engine.notify.outbox import ChannelState, ChannelSwitch
from handrail.storage.memory import MemoryStore
from storage.conformance import Store

TTL_MS = 60_000


def message(number: int, subject: str = "run_a", **said: object) -> Message:
    notice = Notice(
        id=f"ntc_{number}", when="event", at=5, subject=subject, text="\N{SNOWMAN}\0", source="s", data={"n": number}
    )
    return Message(number=number, notice=notice, **said)  # type: ignore[arg-type]


async def put(store: Store, *messages: Message) -> None:
    outbox = store.outbox()
    assert await outbox.claim("ops", "one", ttl_ms=TTL_MS) is not None
    assert await outbox.write("ops", "one", ChannelState(number=len(messages)), put=messages)


async def numbers(store: Store, now: int = 10, limit: int = 10) -> list[int]:
    return [one.number for one in await store.outbox().due("ops", now=now, limit=limit)]


async def test_a_channel_is_served_by_one_process_until_it_lets_go(store: Store) -> None:
    outbox = store.outbox()
    assert await outbox.channels() == []
    first = await outbox.claim("ops", "one", ttl_ms=TTL_MS)
    assert first is not None
    assert first.state == ChannelState()
    assert await outbox.claim("ops", "two", ttl_ms=TTL_MS) is None
    assert await outbox.claim("other", "two", ttl_ms=TTL_MS) is not None
    assert not await outbox.write("ops", "two", ChannelState(mark="7"), put=[message(1)])
    assert await outbox.write("ops", "one", ChannelState(mark="8", reported={"disk": 4}))
    again = await outbox.claim("ops", "one", ttl_ms=TTL_MS)
    assert again is not None
    assert again.state == ChannelState(mark="8", reported={"disk": 4})
    await outbox.release("one")
    taken = await outbox.claim("ops", "two", ttl_ms=TTL_MS)
    assert taken is not None
    assert (taken.state.mark, taken.waiting) == ("8", 0)


async def test_of_each_subject_only_the_first_that_waits_may_be_sent(store: Store) -> None:
    await put(store, message(1), message(2), message(3, "run_b"), message(4, "run_c", due=50))
    assert await numbers(store) == [1, 3]
    assert await numbers(store, limit=1) == [1]
    assert await numbers(store, now=50) == [1, 3, 4]
    outbox = store.outbox()
    (first, _) = await outbox.due("ops", now=10, limit=10)
    assert first == message(1)
    late = replace(first, due=100, attempts=1, tried=7, error="no \0 answer")
    assert await outbox.write("ops", "one", ChannelState(number=4, failures=1), put=[late], drop=[3])
    assert await numbers(store) == []  # the second about run_a waits for the first
    assert await numbers(store, now=100) == [1, 4]
    assert [one.number for one in await outbox.messages("ops", is_dead=False)] == [1, 2, 4]
    assert (await outbox.due("ops", now=100, limit=1))[0] == late
    (kept,) = await outbox.channels()
    assert (kept.waiting, kept.dead, kept.state.failures, kept.owner) == (3, 0, 1, "one")


async def test_dead_letters_keep_nothing_waiting_and_are_sent_again_or_discarded(store: Store) -> None:
    await put(store, message(1), message(2), message(3))
    outbox = store.outbox()
    dead = [message(n, attempts=4, tried=1, due=90, error="gone", is_dead=True) for n in (1, 2)]
    assert await outbox.write("ops", "one", ChannelState(number=3), put=dead)
    assert await numbers(store) == [3]
    assert await outbox.messages("ops", is_dead=True) == dead
    assert [one.dead for one in await outbox.channels()] == [2]
    assert await outbox.revive("ops", ["ntc_2", "ntc_3", "nothing"]) == 1
    assert await numbers(store) == [2]
    (again,) = await outbox.due("ops", now=10, limit=1)
    assert (again.attempts, again.tried, again.due, again.is_dead) == (0, 0, 0, False)
    assert await outbox.discard("ops", []) == 1
    assert await outbox.messages("ops", is_dead=True) == []
    assert await outbox.revive("ops", []) == 0


async def test_what_was_removed_meanwhile_is_not_put_again(store: Store) -> None:
    await put(store, message(1))
    outbox = store.outbox()
    assert await outbox.write("ops", "one", ChannelState(), drop=[1])
    assert await outbox.write("ops", "one", ChannelState(), put=[message(1, attempts=1, due=3)])
    assert await outbox.messages("ops", is_dead=False) == []


async def test_nothing_is_due_for_a_channel_that_is_disabled(store: Store) -> None:
    await put(store, message(1))
    outbox = store.outbox()
    switch = ChannelSwitch(by="person:ada", at=4, reason="too many")
    assert not await outbox.switch("other", switch)
    assert await outbox.switch("ops", switch)
    assert await numbers(store) == []
    (kept,) = await outbox.channels()
    assert kept.disabled == switch
    assert await outbox.switch("ops", None)
    assert await numbers(store) == [1]


async def test_skipping_drops_what_waits_and_whoever_serves_has_to_look_again(store: Store) -> None:
    await put(store, message(1), message(2, attempts=0, is_dead=False))
    outbox = store.outbox()
    await outbox.write("ops", "one", ChannelState(sent=3, mark="2"), put=[message(2, attempts=1, is_dead=True)])
    await outbox.skip("ops", "9")
    assert not await outbox.write("ops", "one", ChannelState(mark="3"))
    assert await outbox.messages("ops", is_dead=False) == []
    (kept,) = await outbox.channels()
    assert (kept.state.mark, kept.state.sent, kept.dead) == ("9", 3, 1)
    await outbox.skip("other", "9")
    assert len(await outbox.channels()) == 1


async def test_a_claim_that_was_not_renewed_is_another_processs(store: Store) -> None:
    if isinstance(store, MemoryStore):
        pytest.skip("a store in memory has no clock and one process")
    outbox = store.outbox()
    assert await outbox.claim("ops", "one", ttl_ms=1) is not None
    await asyncio.sleep(0.05)
    assert await outbox.claim("ops", "two", ttl_ms=TTL_MS) is not None
    assert await outbox.claim("ops", "one", ttl_ms=TTL_MS) is None
    assert not await outbox.write("ops", "one", ChannelState(), put=[message(1)])
